// What the log of a session holds, as far as the mirror has to know it: the order of the objects, and a digest of each.

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { deterministic } from "@turnwire/client";
import {
  type Assistant,
  AssistantSchema,
  type Entry,
  type EntryInput,
  type MessageSummary,
  MessageSummarySchema,
  type PromptPart,
  PromptPartSchema,
  type Revert,
  type SessionProperties,
  type User,
  UserSchema,
} from "@turnwire/client/v1";
import { sha256 } from "../mapping/ids.js";
import { comparePlaces, isUser, type Place, PROGRAM } from "../mapping/index.js";
import { milliseconds } from "../mapping/values.js";
import { type Mark, markOf, SOURCE, unmarked } from "./marks.js";

export type Payload = EntryInput["payload"];

export interface PartView {
  readonly id: string;
  /** Of its content; empty once text was added to it, until it is put whole again. */
  digest: string;
  callId: string | undefined;
  /** Whether the plugin brought it. */
  ours: boolean;
  /** How many bytes of text it has, while text that is streamed can be added to it. */
  open: number | undefined;
}

export interface MessageView extends Place {
  readonly isUser: boolean;
  /** Of the header. */
  digest: string;
  turnId: string;
  summary: string | undefined;
  ours: boolean;
  readonly parts: PartView[];
}

/** A log, entry by entry. */
export class LogView {
  /** 0: the session does not exist. */
  revision = 0n;
  /** Without the mark. */
  properties: SessionProperties | undefined;
  revert: Revert | undefined;
  readonly turns = new Set<string>();
  /** In the order of the log. */
  readonly messages: MessageView[] = [];
  /** What was taken out, and is refused if it is put again. */
  readonly removedParts = new Set<string>();
  /** Whether anything of it came from opencode. */
  isOpencodes = false;
  readonly #byId = new Map<string, MessageView>();
  readonly #owners = new Map<string, MessageView>();

  message(id: string): MessageView | undefined {
    return this.#byId.get(id);
  }

  part(id: string): PartView | undefined {
    return this.#owners.get(id)?.parts.find((part) => part.id === id);
  }

  /** Takes in the next entry that was read; `mark` is the last one before it. Returns the mark that holds then. */
  read(entry: Entry, mark: Mark | undefined): Mark | undefined {
    let found = mark;
    if (entry.payload.case === "session") {
      const own = markOf(entry.payload.value);
      found = own?.revision === entry.revision ? own : mark;
    }
    const claimed = found !== undefined && entry.revision <= found.revision + BigInt(found.entries);
    this.isOpencodes ||= claimed && found?.program === PROGRAM;
    this.apply(entry.payload, claimed && found?.source === SOURCE);
    this.revision = entry.revision;
    return found;
  }

  /** Takes in an entry. `ours`: the plugin brought it. */
  apply(payload: Payload | Entry["payload"], ours: boolean): void {
    switch (payload.case) {
      case "session":
        this.properties = unmarked(payload.value);
        break;
      case "turn":
        this.turns.add(payload.value.id);
        break;
      case "user":
        this.#putMessage(payload.value.user, payload.value.beforeId, ours);
        break;
      case "assistant":
        this.#putMessage(payload.value.assistant, payload.value.beforeId, ours);
        break;
      case "part":
        this.#putPart(payload.value.messageId, payload.value.part, payload.value.beforeId, ours);
        break;
      case "delta":
        this.#addText(payload.value.partId, payload.value.target.value ?? "");
        break;
      case "summary": {
        const message = this.message(payload.value.messageId);
        if (message !== undefined) {
          message.summary = summaryDigest(payload.value);
        }
        break;
      }
      case "removal":
        this.#remove(payload.value.target.case, payload.value.target.value);
        break;
      case "revert":
        this.revert = payload.value;
        break;
      case "revertClear":
        this.revert = undefined;
        break;
    }
  }

  /** Says that no text can be added to any part: whether streamed text is in what was read, nobody knows. */
  closeParts(): void {
    for (const part of this.messages.flatMap(({ parts }) => parts)) {
      part.open = undefined;
    }
  }

  /** The id of the message before which one goes; undefined: at the end. */
  before(place: Place): string | undefined {
    const last = this.messages.at(-1);
    if (last === undefined || comparePlaces(last, place) < 0) {
      return undefined;
    }
    return this.messages.find((message) => comparePlaces(message, place) > 0)?.id;
  }

  #putMessage(header: User | Assistant | undefined, beforeId: string | undefined, ours: boolean): void {
    if (header === undefined) {
      return;
    }
    if (this.revert !== undefined) {
      this.#finishRevert(this.revert);
    }
    const digest = headerDigest(header);
    let there = this.message(header.id);
    if (there === undefined) {
      const created = header.time?.created ? milliseconds(header.time.created) : 0;
      const { id, turnId } = header;
      there = { id, created, isUser: isUser(header), digest, turnId, summary: undefined, ours, parts: [] };
      insert(this.messages, there, beforeId);
      this.#byId.set(id, there);
    }
    there.digest = digest;
    there.turnId = header.turnId;
    there.ours ||= ours;
    for (const part of header.parts) {
      this.#putPart(header.id, part, undefined, ours);
    }
  }

  #putPart(messageId: string, part: PromptPart | undefined, beforeId: string | undefined, ours: boolean): void {
    const message = this.message(messageId);
    if (part === undefined || message === undefined) {
      return;
    }
    let there = message.parts.find(({ id }) => id === part.id);
    if (there === undefined) {
      there = { id: part.id, digest: "", callId: undefined, ours, open: undefined };
      insert(message.parts, there, beforeId);
      this.#owners.set(part.id, message);
    }
    there.digest = partDigest(part);
    there.callId = part.kind.case === "tool" ? part.kind.value.callId : undefined;
    there.ours ||= ours;
    there.open = openAt(part);
  }

  #addText(partId: string, text: string): void {
    const part = this.part(partId);
    if (part !== undefined) {
      part.digest = "";
      part.open = part.open === undefined ? undefined : part.open + Buffer.byteLength(text);
    }
  }

  #remove(kind: "messageId" | "partId" | undefined, id: string | undefined): void {
    const message = kind === "messageId" ? this.message(id ?? "") : this.#owners.get(id ?? "");
    if (message === undefined || id === undefined) {
      return;
    }
    const gone = kind === "messageId" ? message.parts.splice(0) : take(message.parts, id);
    if (kind === "messageId") {
      take(this.messages, id);
      this.#byId.delete(id);
    }
    for (const part of gone) {
      this.#owners.delete(part.id);
      this.removedParts.add(part.id);
    }
  }

  /** A message that is put while a revert is open takes out what it hides. */
  #finishRevert({ messageId, partId }: Revert): void {
    this.revert = undefined;
    const from = this.messages.findIndex(({ id }) => id === messageId);
    const message = this.messages[from];
    if (message === undefined) {
      return;
    }
    for (const { id } of this.messages.slice(partId === undefined ? from : from + 1)) {
      this.#remove("messageId", id);
    }
    const at = partId === undefined ? -1 : message.parts.findIndex(({ id }) => id === partId);
    for (const { id } of at < 0 ? [] : message.parts.slice(at)) {
      this.#remove("partId", id);
    }
  }
}

/** How many bytes of text a part has to which text can be added. */
export function openAt({ kind }: PromptPart): number | undefined {
  return kind.case === "text" || kind.case === "reasoning" ? Buffer.byteLength(kind.value.text) : undefined;
}

/** The digest of a header without its parts. */
export function headerDigest(header: User | Assistant): string {
  return isUser(header)
    ? digestOf(UserSchema, { ...header, parts: [] })
    : digestOf(AssistantSchema, { ...header, parts: [] });
}

export function partDigest(part: PromptPart): string {
  return digestOf(PromptPartSchema, part);
}

export function summaryDigest(summary: MessageSummary): string {
  return digestOf(MessageSummarySchema, summary);
}

function digestOf<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): string {
  return sha256(deterministic(schema, message)).slice(0, 32);
}

function insert<T extends { readonly id: string }>(items: T[], item: T, beforeId: string | undefined): void {
  const at = beforeId === undefined ? -1 : items.findIndex(({ id }) => id === beforeId);
  items.splice(at < 0 ? items.length : at, 0, item);
}

function take<T extends { readonly id: string }>(items: T[], id: string): T[] {
  const at = items.findIndex((item) => item.id === id);
  return at < 0 ? [] : items.splice(at, 1);
}
