// The `info` of opencode's sessions as session properties, and its `revert`.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Revert, RevertSchema, type SessionProperties, SessionPropertiesSchema } from "@turnwire/client/v1";
import { BESIDE, compare, extraJson, ofSpaces, SPACE, spacesOf } from "./extras.js";
import { legalId } from "./ids.js";
import { revertTree, sessionTree } from "./shape.js";
import { defined, isTree, type Json, type Tree, textOf, timeOf, treeOf } from "./values.js";

export const PROGRAM = "opencode";
const CHARACTERS = 4096;

/**
 * The order in which `opencode export` writes the members of a session's `info`. The events and the API have others;
 * the extras keep the order of what they were made from, and shall not differ for that.
 */
const ORDER: readonly string[] = [
  ...["id", "slug", "projectID", "workspaceID", "directory", "path", "parentID", "title", "agent", "model", "version"],
  ...["summary", "cost", "tokens", "share", "metadata", "revert", "permission", "time"],
];
const INNER: Record<string, readonly string[]> = {
  model: ["id", "providerID", "variant"],
  summary: ["additions", "deletions", "files", "diffs"],
  tokens: ["input", "output", "reasoning", "cache"],
  revert: ["messageID", "partID", "snapshot", "diff"],
  time: ["created", "updated", "compacting", "archived"],
};

function inOrder(info: Tree): Tree {
  return Object.fromEntries(
    sorted(info, ORDER).map(([key, value]) => {
      const order = INNER[key];
      return [key, order && isTree(value) ? Object.fromEntries(sorted(value, order)) : value];
    }),
  );
}

/** The members in an order; those that it does not name stay behind, as they are. */
function sorted(tree: Tree, order: readonly string[]): [string, Json][] {
  return inRank(Object.entries(tree), order);
}

function inRank<T>(members: [string, T][], order: readonly string[]): [string, T][] {
  const rank = (key: string) => (order.includes(key) ? order.indexOf(key) : order.length);
  return members.toSorted(([a], [b]) => rank(a) - rank(b));
}

/** What is known of a session beside its `info`. */
export interface SessionFacts {
  /** The properties as they are stored: what is not opencode's in them stays. */
  readonly stored?: SessionProperties | undefined;
  /** Whether the revert is an entry of its own. */
  readonly hasRevert?: boolean;
  /** The tool part of the parent session that started this one. */
  readonly parentPart?: string | undefined;
  /** The project that the session belongs to, as JSON text. */
  readonly project?: string | undefined;
  /** Its todo list, which may be empty; undefined: not known. */
  readonly todo?: readonly Json[] | undefined;
}

/** What stands beside a session, in the order in which Turnwire's importer writes it. */
const BESIDE_ORDER: readonly string[] = ["todo", "share", "project"];
/** The members of a todo in the order of opencode's database. */
const TODO_ORDER: readonly string[] = ["content", "status", "priority"];

/** The properties of a session. */
export function mapSession(given: Tree, facts: SessionFacts = {}): SessionProperties {
  const info = inOrder(given);
  const { time, share, parentID } = info;
  const parent = textOf(parentID);
  const properties = create(
    SessionPropertiesSchema,
    defined({
      title: textOf(info.title, CHARACTERS),
      directory: textOf(info.directory, CHARACTERS),
      created: timeOf(treeOf(time).created) ?? { seconds: 0n, nanos: 0 },
      archived: timeOf(treeOf(time).archived),
      origin: defined({ program: PROGRAM, version: textOf(info.version, 256) }),
      shareUrl: textOf(treeOf(share).url),
      parent: parent ? { sessionId: legalId(parent) } : undefined,
    }) as MessageInitShape<typeof SessionPropertiesSchema>,
  );
  const { revert, ...rest } = info;
  const own = extraJson(compare(facts.hasRevert ? rest : info, sessionTree(String(info.id), properties)), info);
  const { stored } = facts;
  const spaces = new Map([...spacesOf(own), ...spacesBut(stored?.extraJson ?? "", SPACE)]);
  const beside = besideOf(spaces.get(BESIDE) ?? "", facts);
  if (beside) {
    spaces.set(BESIDE, beside);
  } else {
    spaces.delete(BESIDE);
  }
  properties.extraJson = ofSpaces(spaces);
  properties.labels = { ...stored?.labels };
  if (properties.parent !== undefined) {
    const known = stored?.parent?.sessionId === properties.parent.sessionId ? stored.parent.partId : undefined;
    const partId = facts.parentPart ?? known;
    if (partId !== undefined) {
      properties.parent.partId = partId;
    }
  }
  return properties;
}

/** What is kept beside a session: what is stored of it, with what is known now. */
function besideOf(stored: string, { project, todo }: SessionFacts): string {
  const members = spacesOf(stored);
  if (project !== undefined && !members.has("project")) {
    members.set("project", project);
  }
  if (todo !== undefined && todo.length > 0) {
    const items = todo.map((item) => (isTree(item) ? Object.fromEntries(sorted(item, TODO_ORDER)) : item));
    members.set("todo", JSON.stringify(items));
  } else if (todo !== undefined) {
    members.delete("todo");
  }
  return ofSpaces(inRank([...members], BESIDE_ORDER));
}

function spacesBut(extraJson: string, name: string): Map<string, string> {
  const spaces = spacesOf(extraJson);
  spaces.delete(name);
  return spaces;
}

/** The open revert of a session; undefined if it names no message that is there. */
export function mapRevert(
  value: Json | undefined,
  isThere: (messageId: string, partId?: string) => boolean,
): Revert | undefined {
  if (!isTree(value) || typeof value.messageID !== "string") {
    return undefined;
  }
  const messageId = legalId(value.messageID);
  if (!isThere(messageId)) {
    return undefined;
  }
  const named = typeof value.partID === "string" ? value.partID : undefined;
  const hasPart = named !== undefined && isThere(messageId, legalId(named));
  const revert = create(
    RevertSchema,
    defined({
      messageId,
      partId: hasPart ? legalId(named) : undefined,
      snapshot: textOf(value.snapshot, 1024),
      diff: textOf(value.diff),
    }),
  );
  const derived = revertTree(revert, value.messageID, hasPart ? named : undefined);
  revert.extraJson = extraJson(compare(value, derived), value);
  return revert;
}
