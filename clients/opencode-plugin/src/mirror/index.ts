export { type BusEvent, Mirror } from "./mirror.js";
export { type Change, Pending } from "./pending.js";
export type { SessionRecord, Surroundings } from "./session.js";
