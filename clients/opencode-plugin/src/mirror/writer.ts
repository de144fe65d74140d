// Makes the entries of an append: each method adds what the log does not hold yet, and takes it into the view at once.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { deterministic, type EntryInit, entry } from "@turnwire/client";
import {
  type Assistant,
  type EntryInput,
  EntryInputSchema,
  type MessageSummary,
  MessageSummarySchema,
  type PromptPart,
  type Revert,
  RevertSchema,
  type SessionProperties,
  SessionPropertiesSchema,
  type Turn,
  type User,
} from "@turnwire/client/v1";
import { sha256 } from "../mapping/ids.js";
import { compareIds, isUser, type Place } from "../mapping/index.js";
import { GONE, marked } from "./marks.js";
import { headerDigest, type LogView, openAt, partDigest, summaryDigest } from "./view.js";

/** What one append carries at most, its mark aside. One entry may be larger by itself. */
const MOST_ENTRIES = 900;
const MOST_BYTES = 4 * 1024 * 1024;

/** One append, which is the same each time that it is sent. */
export interface Append {
  readonly sessionId: string;
  readonly requestId: string;
  readonly expectedRevision: bigint;
  readonly create: SessionProperties | undefined;
  readonly entries: EntryInput[];
}

/** The entries of one append. */
export class Writer {
  readonly view: LogView;
  readonly #refused: ReadonlySet<string>;
  #entries: EntryInput[] = [];
  #bytes = 0;
  /** Whether something is new, so that a mark has to say where it comes from. */
  #claims = false;
  #revert: Revert | null | undefined;

  /** `refused` are the keys of objects that the server does not take; see keyOf. */
  constructor(view: LogView, refused: ReadonlySet<string>) {
    this.view = view;
    this.#refused = refused;
  }

  get isFull(): boolean {
    return this.#entries.length >= MOST_ENTRIES || this.#bytes >= MOST_BYTES;
  }

  turn(turn: Turn): void {
    if (!this.view.turns.has(turn.id)) {
      this.#add(entry.turn(turn));
    }
  }

  header(header: User | Assistant, place: Place): void {
    const there = this.view.message(header.id);
    if (there?.digest === headerDigest(header) || this.#refused.has(`message/${header.id}`)) {
      return;
    }
    const before = there === undefined ? this.view.before(place) : undefined;
    this.#add(isUser(header) ? entry.user(header, before) : entry.assistant(header, before), there === undefined);
  }

  /** Undefined: the message has no summary, or no longer. */
  summary(messageId: string, summary: MessageSummary | undefined): void {
    const there = this.view.message(messageId);
    const wanted =
      summary ??
      (there?.summary === undefined ? undefined : create(MessageSummarySchema, { messageId, extraJson: GONE }));
    const differs = wanted !== undefined && there !== undefined && there.summary !== summaryDigest(wanted);
    if (differs && !this.#refused.has(`summary/${messageId}`)) {
      this.#add(entry.summary(wanted), true);
    }
  }

  part(messageId: string, part: PromptPart): void {
    const message = this.view.message(messageId);
    const there = message?.parts.find(({ id }) => id === part.id);
    const isOut = this.view.removedParts.has(part.id) || this.#refused.has(`part/${part.id}`);
    if (message === undefined || isOut) {
      return;
    }
    if (there?.digest === partDigest(part)) {
      there.open = openAt(part);
      return;
    }
    const before = there === undefined ? message.parts.find(({ id }) => compareIds(id, part.id) > 0)?.id : undefined;
    this.#add(entry.part(messageId, part, before), there === undefined);
  }

  /** Text that was streamed to the end of a part. Left out if it does not fit: the part comes whole later. */
  text(partId: string, text: string): void {
    const there = this.view.part(partId);
    if (there?.open === undefined) {
      return;
    }
    if (text.isWellFormed()) {
      this.#add(entry.delta(partId, BigInt(there.open), "text", text));
    } else {
      there.open = undefined;
    }
  }

  removeMessage(id: string): void {
    if (this.view.message(id) !== undefined) {
      this.#add(entry.removal({ case: "messageId", value: id }), true);
    }
  }

  removePart(id: string): void {
    if (this.view.part(id) !== undefined) {
      this.#add(entry.removal({ case: "partId", value: id }), true);
    }
  }

  /** The open revert is in the way of every other change: it is cleared first, and opened again at the end. */
  revert(target: Revert | undefined): void {
    const there = this.view.revert;
    const wanted = target && this.#refused.has(`revert/${target.messageId}`) ? undefined : target;
    const same = there && wanted && sameRevert(there, wanted);
    if (there !== undefined && !(same && this.#entries.length === 0)) {
      const clear = create(EntryInputSchema, entry.revertClear() as MessageInitShape<typeof EntryInputSchema>);
      this.#entries.unshift(clear);
      this.view.apply(clear.payload, true);
      this.#revert = null;
      this.#claims = true;
    }
    if (wanted !== undefined && this.view.revert === undefined) {
      this.#add(entry.revert(wanted), true);
      this.#revert = wanted;
    }
  }

  /** The append of what was added, with these properties; undefined: there is none. Call it once, at the end. */
  append(sessionId: string, properties: SessionProperties): Append | undefined {
    const { view } = this;
    const expectedRevision = view.revision;
    const isNew = expectedRevision === 0n;
    this.#claims ||= view.properties === undefined || !sameProperties(view.properties, properties);
    if (this.#entries.length === 0 && !this.#claims) {
      return undefined;
    }
    const own = this.#claims
      ? marked(properties, expectedRevision + 1n, this.#entries.length, this.#revert)
      : undefined;
    const entries = [...this.#entries];
    if (own !== undefined) {
      view.apply({ case: "session", value: own }, true);
      if (!isNew) {
        entries.unshift(create(EntryInputSchema, entry.session(own)));
      }
    }
    view.isOpencodes = true;
    view.revision += BigInt(entries.length + (isNew ? 1 : 0));
    const bytes = entries.map((each) => deterministic(EntryInputSchema, each));
    const requestId = `${sessionId}/${sha256(String(expectedRevision), ...bytes).slice(0, 32)}`;
    return { sessionId, requestId, expectedRevision, create: isNew ? own : undefined, entries };
  }

  #add(init: EntryInit, isNew = false): void {
    const made = create(EntryInputSchema, init as MessageInitShape<typeof EntryInputSchema>);
    this.view.apply(made.payload, true);
    this.#entries.push(made);
    this.#bytes += deterministic(EntryInputSchema, made).length;
    this.#claims ||= isNew;
  }
}

/** The object that an entry is about, by which it can be refused; undefined: it is none that can be left out. */
export function keyOf({ payload }: EntryInput): string | undefined {
  switch (payload.case) {
    case "user":
      return `message/${payload.value.user?.id}`;
    case "assistant":
      return `message/${payload.value.assistant?.id}`;
    case "part":
      return `part/${payload.value.part?.id}`;
    case "summary":
      return `summary/${payload.value.messageId}`;
    case "revert":
      return `revert/${payload.value.messageId}`;
    default:
      return undefined;
  }
}

function sameRevert(a: Revert, b: Revert): boolean {
  return Buffer.compare(deterministic(RevertSchema, a), deterministic(RevertSchema, b)) === 0;
}

function sameProperties(a: SessionProperties, b: SessionProperties): boolean {
  const [one, other] = [a, b].map(({ forkedFrom: _, ...rest }) => create(SessionPropertiesSchema, rest as never));
  return (
    one !== undefined &&
    other !== undefined &&
    Buffer.compare(deterministic(SessionPropertiesSchema, one), deterministic(SessionPropertiesSchema, other)) === 0
  );
}
