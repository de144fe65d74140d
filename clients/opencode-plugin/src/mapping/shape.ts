// Sessions and the heads of messages as opencode writes them: what would be written from the fields alone.

import type {
  Assistant,
  FileDiff,
  MessageSummary,
  OutputFormat,
  Revert,
  SessionProperties,
  TurnRequest,
  Usage,
  User,
} from "@turnwire/client/v1";
import { ResultKind } from "@turnwire/client/v1";
import { toError } from "./failures.js";
import { Document, defined, type Json, milliseconds, type Tree } from "./values.js";

/** The ids that messages and parts repeat, as they stand in opencode. */
export interface Owner {
  readonly sessionId: string;
  readonly messageId: string;
}

/** The `info` of a session, without its revert. */
export function sessionTree(sessionId: string, properties: SessionProperties): Tree {
  const { directory, parent, title, origin, shareUrl, created, archived } = properties;
  return defined({
    id: sessionId,
    directory,
    parentID: parent?.sessionId,
    title,
    version: origin?.version,
    share: shareUrl === undefined ? undefined : { url: shareUrl },
    time: defined({
      created: created && milliseconds(created),
      archived: archived && milliseconds(archived),
    }) as Tree,
  }) as Tree;
}

/** The `revert` of a session; the ids are opencode's. */
export function revertTree({ snapshot, diff }: Revert, messageID: string, partID: string | undefined): Tree {
  return defined({ messageID, partID, snapshot, diff }) as Tree;
}

/** The `info` of a user message with the settings of its turn, without its summary. */
export function userTree(user: User, request: TurnRequest, owner: Owner): Tree {
  const { agent, model, variant, format, system, tools } = request;
  return defined({
    id: user.id,
    sessionID: owner.sessionId,
    role: "user",
    time: { created: user.time?.created ? milliseconds(user.time.created) : 0 },
    agent,
    model: defined({ providerID: model?.providerId, modelID: model?.modelId, variant }) as Tree,
    format: format && formatTree(format),
    system,
    tools: Object.keys(tools).length > 0 ? { ...tools } : undefined,
  }) as Tree;
}

function formatTree({ kind }: OutputFormat): Json {
  if (kind.case !== "jsonSchema") {
    return { type: "text" };
  }
  const { schemaJson, retryCount } = kind.value;
  return defined({ type: "json_schema", schema: new Document(schemaJson), retryCount }) as Tree;
}

/** The `summary` of a user message; `restored` gives back each diff. */
export function summaryTree({ title, body, diffs }: MessageSummary, originals: readonly Json[]): Tree {
  // A diff's own differences are in its own extras, so that what comes back of it is the original.
  return defined({ title, body, diffs: diffs.map((_, index) => originals[index] as Json) }) as Tree;
}

/** One file's diff. */
export function diffTree({ path, patch, before, after, additions, deletions, status }: FileDiff): Tree {
  return defined({
    file: path,
    patch,
    before,
    after,
    additions: additions === undefined ? undefined : Number(additions),
    deletions: deletions === undefined ? undefined : Number(deletions),
    status,
  }) as Tree;
}

/** The `info` of an assistant message; `parentID` is opencode's. */
export function assistantTree(assistant: Assistant, owner: Owner, parentID: string | undefined): Tree {
  const { time, result, run, usage } = assistant;
  return defined({
    id: assistant.id,
    sessionID: owner.sessionId,
    role: "assistant",
    time: defined({
      created: time?.created && milliseconds(time.created),
      completed: time?.completed && milliseconds(time.completed),
    }) as Tree,
    error: result?.failure && toError(result.failure),
    parentID,
    modelID: run?.model?.modelId,
    providerID: run?.model?.providerId,
    mode: run?.agent,
    agent: run?.agent,
    path: run?.path && { cwd: run.path.cwd, root: run.path.root },
    summary: result?.kind === ResultKind.SUMMARY ? true : undefined,
    ...usageTree(usage),
    structured: result?.structuredJson ? new Document(result.structuredJson) : undefined,
    variant: run?.variant,
    finish: result?.finish,
  }) as Tree;
}

/** `cost` and `tokens`, as far as they are known. */
export function usageTree(usage: Usage | undefined): Tree {
  const { cost, tokens } = usage ?? {};
  return defined({
    cost,
    tokens: tokens && {
      ...defined({ total: tokens.total === undefined ? undefined : Number(tokens.total) }),
      input: Number(tokens.input),
      output: Number(tokens.output),
      reasoning: Number(tokens.reasoning),
      ...(tokens.cache && { cache: { read: Number(tokens.cache.read), write: Number(tokens.cache.write) } }),
    },
  }) as Tree;
}
