/**
 * Turnwire for TypeScript. The messages are in "@turnwire/client/v1", the AI SDK's form of a prompt in
 * "@turnwire/client/ai".
 */
export type { CallOptions } from "./client/calls.js";
export { Client, type StoredMessage, type TailOptions } from "./client/client.js";
export { messagesOf, type Prompt, type Rendering } from "./client/prompts.js";
export { type ReplayItem, SessionHistory } from "./client/replay.js";
export { fromStatus } from "./client/status.js";
export { type EntryInit, entry } from "./entry.js";
export { TurnwireError, type Violation } from "./errors.js";
export { Reason } from "./gen/turnwire/v1/errors_pb.js";
export { chain, chainLink, chainStart } from "./log/chain.js";
export { Folded, fold } from "./log/fold.js";
export { type Assembly, assemble } from "./prompt/assembly.js";
export {
  type Content,
  filePart,
  promptMessage,
  type RoleLike,
  textPart,
  toolPart,
} from "./prompt/build.js";
export { promptDigest } from "./prompt/digest.js";
export { type EditorOptions, PromptEditor } from "./prompt/editor.js";
export { type Fate, type Fates, History, type HistoryFacts } from "./prompt/history.js";
export { readMessage } from "./reading.js";
export { type CheckOptions, check, requireValid } from "./rules/index.js";
export { checkJson, JSON_DEPTH, type JsonFault } from "./rules/json.js";
export { deterministic } from "./wire.js";
