export { type BusEvent, Mirror } from "./mirror.js";
export type { SessionRecord, Surroundings } from "./session.js";
