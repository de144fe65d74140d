// A whole session as opencode's own API gives it, as what Turnwire is to hold of it.

import { isMessage } from "@bufbuild/protobuf";
import {
  type Assistant,
  type MessageSummary,
  type PromptPart,
  type Revert,
  type SessionProperties,
  type Turn,
  type User,
  UserSchema,
} from "@turnwire/client/v1";
import { mapAssistant, mapUser, type Settings, settingsOf, turnOf, type UserMessage } from "./heads.js";
import { legalId } from "./ids.js";
import { mapPart, type Role } from "./parts.js";
import { mapRevert, mapSession, type SessionFacts } from "./session.js";
import { callIdOf } from "./tools.js";
import { isTree, type Json, type Tree, treeOf } from "./values.js";

/** A message as opencode's API and its export give it. */
export interface MessageRecord {
  readonly info: Tree;
  readonly parts: readonly Tree[];
}

/** A message as Turnwire is to hold it: its turn, its header without parts, its parts in order. */
export interface WholeMessage {
  readonly turn: Turn;
  readonly header: User | Assistant;
  readonly summary: MessageSummary | undefined;
  readonly parts: PromptPart[];
}

/** A session as Turnwire is to hold it; the messages are in opencode's order: by time of creation, then id. */
export interface WholeSession {
  readonly properties: SessionProperties;
  readonly messages: WholeMessage[];
  readonly revert: Revert | undefined;
}

/** What opencode orders messages by. */
export interface Place {
  readonly created: number;
  readonly id: string;
}

/** The place of a message in its session, by its `info`. */
export function placeOf(info: Tree): Place {
  const { created } = treeOf(info.time);
  return { created: typeof created === "number" ? created : 0, id: String(info.id) };
}

/** Orders messages as opencode does. */
export function comparePlaces(a: Place, b: Place): number {
  return a.created - b.created || compareIds(a.id, b.id);
}

/** Orders parts of a message as opencode does. */
export function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The role of a message; undefined for what is neither a user's nor an assistant's. */
export function roleOf({ role }: Tree): Role | undefined {
  return role === "user" || role === "assistant" ? role : undefined;
}

/** Maps a whole session. */
export function mapWhole(info: Tree, records: readonly MessageRecord[], facts: SessionFacts = {}): WholeSession {
  const ordered = records
    .filter((record) => roleOf(record.info) !== undefined)
    .toSorted((a, b) => comparePlaces(placeOf(a.info), placeOf(b.info)));
  const users = mapUsers(ordered);
  const earlier = new Set<string>();
  const messages: WholeMessage[] = [];
  let turn: Turn | undefined;
  for (const record of ordered) {
    const mapped = mapHead(record.info, users, turn);
    turn = mapped.next;
    messages.push({ ...mapped, parts: mapParts(record, (id) => earlier.has(id)) });
    earlier.add(mapped.header.id);
  }
  const byId = new Map(messages.map((message) => [message.header.id, message]));
  const isThere = (messageId: string, partId?: string) => {
    const message = byId.get(messageId);
    return message !== undefined && (partId === undefined || message.parts.some(({ id }) => id === partId));
  };
  const revert = mapRevert(info.revert, isThere);
  return { properties: mapSession(info, { ...facts, hasRevert: revert !== undefined }), messages, revert };
}

/** The user messages by opencode's ids. */
function mapUsers(records: readonly MessageRecord[]): Map<string, UserMessage> {
  const answers = new Map<Json | undefined, Tree>();
  for (const { info } of records) {
    if (roleOf(info) === "assistant" && !answers.has(info.parentID)) {
      answers.set(info.parentID, info);
    }
  }
  const users = new Map<string, UserMessage>();
  for (const { info } of records) {
    if (roleOf(info) === "user") {
      const answer = info.agent && info.model ? undefined : answers.get(info.id);
      const settings: [Settings?] = answer === undefined ? [] : [settingsOf(answer)];
      users.set(String(info.id), mapUser(info, ...settings));
    }
  }
  return users;
}

function mapHead(info: Tree, users: Map<string, UserMessage>, before: Turn | undefined) {
  const user = roleOf(info) === "user" ? users.get(String(info.id)) : undefined;
  if (user !== undefined) {
    return { turn: user.turn, header: user.user, summary: user.summary, next: user.turn };
  }
  const asked = typeof info.parentID === "string" ? users.get(info.parentID) : undefined;
  const header = mapAssistant(info, asked !== undefined);
  const next = before ?? asked?.turn ?? turnOf(header);
  const turn = asked?.turn ?? next;
  header.turnId = turn.id;
  return { turn, header, summary: undefined, next };
}

function mapParts({ info, parts }: MessageRecord, isEarlier: (id: string) => boolean): PromptPart[] {
  const role = roleOf(info) ?? "assistant";
  const owner = { sessionId: String(info.sessionID), messageId: String(info.id) };
  const calls = new Set<string>();
  return parts
    .filter((part) => isTree(part) && typeof part.id === "string")
    .toSorted((a, b) => compareIds(String(a.id), String(b.id)))
    .map((part) => {
      const callId = callIdOf(part);
      const repeatsCall = callId !== undefined && calls.has(callId);
      if (callId !== undefined) {
        calls.add(callId);
      }
      return mapPart(part, { role, owner, repeatsCall, isEarlier });
    });
}

/** Whether a header is a user's. */
export function isUser(header: User | Assistant): header is User {
  return isMessage(header, UserSchema);
}

/** The id in Turnwire of the user message that an assistant's `info` names as its parent. */
export function parentOf({ parentID }: Tree): string | undefined {
  return typeof parentID === "string" ? legalId(parentID) : undefined;
}
