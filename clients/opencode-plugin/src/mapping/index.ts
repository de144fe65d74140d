/** opencode's sessions, messages and parts as Turnwire's: pure, and equal to what `turnwire import opencode` makes. */
export { mapAssistant, mapUser, type Settings, settingsOf, turnOf, type UserMessage } from "./heads.js";
export { legalId } from "./ids.js";
export { mapPart, type PartContext, type Role } from "./parts.js";
export { mapRevert, mapSession, PROGRAM, type SessionFacts } from "./session.js";
export { callIdOf } from "./tools.js";
export type { Json, Tree } from "./values.js";
export {
  compareIds,
  comparePlaces,
  isUser,
  type MessageRecord,
  mapWhole,
  type Place,
  parentOf,
  placeOf,
  roleOf,
  type WholeMessage,
  type WholeSession,
} from "./whole.js";
