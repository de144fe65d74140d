// opencode's parts as PromptPart: all twelve kinds, and an extension for what is none of them.

import { create } from "@bufbuild/protobuf";
import { type PromptPart, PromptPartSchema } from "@turnwire/client/v1";
import { compare, extraJson, SPACE } from "./extras.js";
import { toFailure } from "./failures.js";
import { fileOf, spanOf } from "./files.js";
import { legalId } from "./ids.js";
import { type Made, modelOf, periodOf, providerOf, usageOf, withDocuments } from "./making.js";
import type { Owner } from "./shape.js";
import { EXTENSION, partTree } from "./shapeParts.js";
import { toolOf } from "./tools.js";
import { countOf, defined, flagOf, INT32, isStorable, nameOf, type Tree, textOf, timeOf, treeOf } from "./values.js";

const TYPE_CHARACTERS = 256;
const MANY_FILES = 100_000;

/** The role of the message that holds a part. */
export type Role = "user" | "assistant";

/** What a part's message and session tell of it. */
export interface PartContext {
  readonly role: Role;
  readonly owner: Owner;
  /** Whether a tool call of the same id stands in another part of the message. */
  readonly repeatsCall: boolean;
  /** Whether a message stands before this one, by its id. */
  isEarlier(messageId: string): boolean;
}

type Maker = (tree: Tree, context: PartContext) => Made;

/** The part for a part object. The order of keys aside, the fields and the extras give the object back. */
export function mapPart(tree: Tree, context: PartContext): PromptPart {
  const id = legalId(String(tree.id));
  const known = typeof tree.type === "string" && Object.hasOwn(KINDS, tree.type) ? KINDS[tree.type] : undefined;
  const made = known?.[0].includes(context.role) ? known[1](tree, context) : undefined;
  if (made === undefined) {
    return extension(tree, id);
  }
  const part = create(PromptPartSchema, { id, kind: made.kind });
  const kept = part.kind.case === "compaction" ? part.kind.value.tailStartId : undefined;
  const tailStart = kept === undefined ? undefined : String(tree.tail_start_id);
  const derived = partTree(part, context.owner, tailStart);
  if (derived !== undefined) {
    part.extraJson = extraJson(compare(withDocuments(tree, made.documents ?? []), restoring(tree, derived)), tree);
  }
  return part;
}

/** What is derived of a part, with its attachments as their own extras give them back. */
function restoring(tree: Tree, derived: Tree): Tree {
  const state = treeOf(derived.state);
  return state.attachments === undefined
    ? derived
    : { ...derived, state: { ...state, attachments: treeOf(tree.state).attachments ?? null } };
}

function extension(tree: Tree, id: string): PromptPart {
  const type = typeof tree.type === "string" && tree.type.isWellFormed() ? tree.type : "part";
  const name = EXTENSION + (EXTENSION.length + type.length > TYPE_CHARACTERS ? "part" : type);
  const text = JSON.stringify(tree);
  const dataJson = isStorable(text) ? text : "null";
  const part = create(PromptPartSchema, { id, kind: { case: "extension", value: { type: name, dataJson } } });
  if (dataJson !== text) {
    part.extraJson = `{"${SPACE}":{"text":{"":${JSON.stringify(text)}}}}`;
  }
  return part;
}

const text: Maker = (tree, { role }) => {
  // The metadata of a user's text is opencode's own and nothing that a provider returned: it goes to the extras.
  const { provider, documents } = role === "assistant" ? providerOf(tree) : { documents: [] };
  const value = defined({
    text: textOf(tree.text) ?? "",
    synthetic: flagOf(tree.synthetic),
    ignored: flagOf(tree.ignored),
    time: periodOf(tree.time),
    provider,
  });
  return { kind: { case: "text", value }, documents };
};

const reasoning: Maker = (tree) => {
  const { provider, documents } = providerOf(tree);
  const value = defined({ text: textOf(tree.text) ?? "", time: periodOf(tree.time), provider });
  return { kind: { case: "reasoning", value }, documents };
};

const file: Maker = (tree) => {
  const value = fileOf(tree);
  return value && { kind: { case: "file", value } };
};

const tool: Maker = (tree, { owner, repeatsCall }) => (repeatsCall ? undefined : toolOf(tree, owner));

const subtask: Maker = (tree) => {
  const value = defined({
    prompt: textOf(tree.prompt) ?? "",
    description: textOf(tree.description) ?? "",
    agent: nameOf(tree.agent, "unknown"),
    model: modelOf(tree.model),
    command: textOf(tree.command),
  });
  return { kind: { case: "subtask", value } };
};

const agent: Maker = (tree) => {
  const value = defined({ name: nameOf(tree.name, "unknown"), source: spanOf(tree.source) });
  return { kind: { case: "agent", value } };
};

const stepStart: Maker = ({ snapshot }) => {
  return { kind: { case: "stepStart", value: defined({ snapshot: textOf(snapshot, 1024) }) } };
};

const stepFinish: Maker = (tree) => {
  const value = defined({
    reason: textOf(tree.reason, 256) ?? "",
    snapshot: textOf(tree.snapshot, 1024),
    usage: usageOf(tree),
  });
  return { kind: { case: "stepFinish", value } };
};

const snapshot: Maker = (tree) => {
  return { kind: { case: "snapshot", value: { snapshot: textOf(tree.snapshot, 1024) ?? "" } } };
};

const patch: Maker = ({ hash, files }) => {
  const taken = Array.isArray(files) && files.length <= MANY_FILES ? files.map((one) => textOf(one) ?? "") : [];
  return { kind: { case: "patch", value: { hash: textOf(hash, 1024) ?? "", files: taken } } };
};

const retry: Maker = (tree) => {
  const value = defined({
    attempt: countOf(tree.attempt, INT32) ?? 0,
    failure: toFailure(tree.error) ?? { kind: { case: "unknown" as const, value: {} } },
    created: timeOf(treeOf(tree.time).created),
  });
  return { kind: { case: "retry", value } };
};

const compaction: Maker = (tree, { isEarlier }) => {
  const { tail_start_id: tail } = tree;
  const value = defined({
    auto: flagOf(tree.auto) ?? false,
    overflow: flagOf(tree.overflow),
    tailStartId: typeof tail === "string" && isEarlier(legalId(tail)) ? legalId(tail) : undefined,
  });
  return { kind: { case: "compaction", value } };
};

// The roles are those of the option `held_by` of PromptPart.kind.
const KINDS: Record<string, [readonly Role[], Maker]> = {
  text: [["user", "assistant"], text],
  reasoning: [["assistant"], reasoning],
  file: [["user", "assistant"], file],
  tool: [["assistant"], tool],
  subtask: [["user"], subtask],
  agent: [["user"], agent],
  "step-start": [["assistant"], stepStart],
  "step-finish": [["assistant"], stepFinish],
  snapshot: [["assistant"], snapshot],
  patch: [["assistant"], patch],
  retry: [["assistant"], retry],
  compaction: [["user"], compaction],
};
