// The `info` of opencode's messages as turn, user message, summary and assistant message.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { deterministic } from "@turnwire/client";
import {
  type Assistant,
  AssistantSchema,
  type FileDiff,
  FileDiffSchema,
  type MessageSummary,
  MessageSummarySchema,
  type OutputFormatSchema,
  ResultKind,
  type ResultSchema,
  type RunSchema,
  type Turn,
  TurnSchema,
  type User,
  UserSchema,
} from "@turnwire/client/v1";
import { compare, extraJson } from "./extras.js";
import { toFailure } from "./failures.js";
import { legalId, sha256 } from "./ids.js";
import { modelOf, usageOf, withDocuments } from "./making.js";
import { assistantTree, diffTree, type Owner, summaryTree, userTree } from "./shape.js";
import {
  bigOf,
  countOf,
  defined,
  documentOf,
  isTree,
  type Json,
  nameOf,
  type Time,
  type Tree,
  textOf,
  timeOf,
  treeOf,
} from "./values.js";

/** Members of a user message's `info` that are settings of its turn. */
const SETTINGS = new Set(["agent", "model", "variant", "format", "system", "tools"]);
const EPOCH: Time = { seconds: 0n, nanos: 0 };
const MANY_DIFFS = 100_000;
const RETRIES = 1000;
const NAME = 256;

/** What one user message of opencode becomes. */
export interface UserMessage {
  readonly turn: Turn;
  readonly user: User;
  readonly summary: MessageSummary | undefined;
}

/** What stands in for settings that a user message of an old version lacks: those of its answer. */
export interface Settings {
  readonly agent: string;
  readonly providerId: string;
  readonly modelId: string;
}

const UNKNOWN: Settings = { agent: "unknown", providerId: "unknown", modelId: "unknown" };

/** A user message and its turn, both without parts. */
export function mapUser(info: Tree, fallback: Settings = UNKNOWN): UserMessage {
  const id = legalId(String(info.id));
  const owner: Owner = { sessionId: String(info.sessionID), messageId: String(info.id) };
  const created = timeOf(treeOf(info.time).created) ?? EPOCH;
  const { format, schema } = formatOf(info.format);
  const [model, variant] = isTree(info.model)
    ? [modelOf(info.model), info.model.variant ?? info.variant]
    : [{ providerId: fallback.providerId, modelId: fallback.modelId }, info.variant];
  const tools = Object.entries(treeOf(info.tools)).flatMap(([name, on]): [string, boolean][] =>
    typeof on === "boolean" && name && Array.from(name).length <= NAME ? [[name.toWellFormed(), on]] : [],
  );
  const turn = create(TurnSchema, {
    created,
    request: defined({
      agent: nameOf(info.agent, fallback.agent),
      model,
      variant: textOf(variant, NAME),
      system: textOf(info.system),
      tools: Object.fromEntries(tools),
      format,
    }),
  });
  const user = create(UserSchema, { id, time: { created } });
  const summary = isTree(info.summary) ? summaryOf(info.summary, id) : undefined;
  if (turn.request !== undefined) {
    const original = withDocuments(info, schema ? [[["format", "schema"], schema]] : []);
    if (summary !== undefined) {
      delete original.summary;
    }
    const found = compare(original, userTree(user, turn.request, owner));
    turn.extraJson = extraJson(found, info, (key) => SETTINGS.has(key));
    user.extraJson = extraJson(found, info, (key) => !SETTINGS.has(key));
  }
  turn.id = turnId(id, turn);
  user.turnId = turn.id;
  return { turn, user, summary };
}

/** The id of the turn of a message: the message's id, and a digest of everything that the turn holds. */
function turnId(messageId: string, turn: Turn): string {
  const digest = sha256(messageId, "\0", deterministic(TurnSchema, turn)).slice(0, 16);
  return `trn_${messageId.replace(/^msg_/, "").slice(0, 100)}_${digest}`;
}

function formatOf(value: Json | undefined): { format?: MessageInitShape<typeof OutputFormatSchema>; schema: string } {
  const { type, schema, retryCount } = treeOf(value);
  if (type === "text") {
    return { format: { kind: { case: "text", value: {} } }, schema: "" };
  }
  const text = type === "json_schema" ? documentOf(schema) : "";
  if (!text) {
    return { schema: "" };
  }
  const jsonSchema = defined({ schemaJson: text, retryCount: countOf(retryCount, RETRIES) });
  return { format: { kind: { case: "jsonSchema", value: jsonSchema } }, schema: text };
}

function summaryOf(tree: Tree, messageId: string): MessageSummary {
  const { diffs } = tree;
  const listed = Array.isArray(diffs) && diffs.length <= MANY_DIFFS && diffs.every(isTree) ? diffs : [];
  const summary = create(
    MessageSummarySchema,
    defined({ messageId, title: textOf(tree.title), body: textOf(tree.body), diffs: listed.map(diffOf) }),
  );
  summary.extraJson = extraJson(compare(tree, summaryTree(summary, listed)), tree);
  return summary;
}

function diffOf(tree: Tree): FileDiff {
  const diff = create(
    FileDiffSchema,
    defined({
      path: textOf(tree.file),
      patch: textOf(tree.patch),
      additions: bigOf(tree.additions),
      deletions: bigOf(tree.deletions),
      status: textOf(tree.status, NAME),
      before: textOf(tree.before),
      after: textOf(tree.after),
    }),
  );
  diff.extraJson = extraJson(compare(tree, diffTree(diff)), tree);
  return diff;
}

/** An assistant message without its turn and its parts. `hasParent`: its parent is a user message of the session. */
export function mapAssistant(info: Tree, hasParent: boolean): Assistant {
  const { time, structured, parentID } = info;
  const structuredJson = documentOf(structured);
  const parent = hasParent && typeof parentID === "string" ? parentID : undefined;
  const assistant = create(
    AssistantSchema,
    defined({
      id: legalId(String(info.id)),
      parentId: parent === undefined ? undefined : legalId(parent),
      time: defined({
        created: timeOf(treeOf(time).created) ?? EPOCH,
        completed: timeOf(treeOf(time).completed),
      }),
      run: runOf(info),
      usage: usageOf(info),
      result: resultOf(info, structuredJson),
    }),
  );
  const original = withDocuments(info, structuredJson ? [[["structured"], structuredJson]] : []);
  const owner: Owner = { sessionId: String(info.sessionID), messageId: String(info.id) };
  assistant.extraJson = extraJson(compare(original, assistantTree(assistant, owner, parent)), info);
  return assistant;
}

function runOf(info: Tree): MessageInitShape<typeof RunSchema> {
  const { path } = info;
  return defined({
    // Until `agent` came, `mode` held the agent's name; both are written since.
    agent: nameOf(info.agent || info.mode, "unknown"),
    model: modelOf(info),
    variant: textOf(info.variant, NAME),
    path: isTree(path) ? { cwd: textOf(path.cwd) ?? "", root: textOf(path.root) ?? "" } : undefined,
  }) as MessageInitShape<typeof RunSchema>;
}

function resultOf(info: Tree, structuredJson: string): MessageInitShape<typeof ResultSchema> | undefined {
  const finish = textOf(info.finish, NAME);
  const failure = toFailure(info.error);
  const isSummary = info.summary === true;
  if (finish === undefined && failure === undefined && !structuredJson && !isSummary) {
    return undefined;
  }
  const kind = isSummary ? ResultKind.SUMMARY : ResultKind.UNSPECIFIED;
  return defined({ finish, failure, structuredJson, kind }) as MessageInitShape<typeof ResultSchema>;
}

/** The settings that an answer tells of the user message that it answers. */
export function settingsOf(answer: Tree): Settings {
  return {
    agent: nameOf(answer.agent || answer.mode, "unknown"),
    providerId: nameOf(answer.providerID, "unknown"),
    modelId: nameOf(answer.modelID, "unknown"),
  };
}

/** The turn of an assistant message that no user message stands before: made from what it ran with. */
export function turnOf({ id, time, run }: Assistant): Turn {
  const request = defined({ agent: run?.agent, model: run?.model, variant: run?.variant });
  const turn = create(TurnSchema, defined({ created: time?.created, request }) as MessageInitShape<typeof TurnSchema>);
  turn.id = turnId(id, turn);
  return turn;
}
