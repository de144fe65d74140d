import { clone, create } from "@bufbuild/protobuf";
import { TurnwireError } from "../errors.js";
import type { Entry, PartDelta, Removal } from "../gen/turnwire/v1/entry_pb.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import type { Assistant, MessageSummary, User } from "../gen/turnwire/v1/message_pb.js";
import { type PromptPart, PromptPartSchema } from "../gen/turnwire/v1/part_pb.js";
import type { PromptRecord } from "../gen/turnwire/v1/prompt_pb.js";
import {
  type OpenRevert,
  OpenRevertSchema,
  type Revert,
  type SessionProperties,
  SessionPropertiesSchema,
} from "../gen/turnwire/v1/session_pb.js";
import type { Turn } from "../gen/turnwire/v1/turn_pb.js";
import { History } from "../prompt/history.js";
import { Places } from "./places.js";

interface FoldedPart {
  readonly id: string;
  put: PromptPart;
  deltas: PartDelta[];
  /** By the open revert, which starts before it in its message. */
  hidden: boolean;
}

interface FoldedMessage {
  readonly id: string;
  /** Without parts. */
  header: User | Assistant;
  readonly parts: Places<FoldedPart>;
  summary: MessageSummary | undefined;
  /** By the open revert. */
  hidden: boolean;
}

/**
 * Applies the entries 1 to `revision` (unset: all) of a log, in order, and gives the state of the session there. The
 * entries are taken as admitted: nothing is checked again. They are not changed.
 *
 * Throws UNKNOWN_PAYLOAD at an entry of a later schema that does not say it is ignorable.
 */
export function fold(entries: Iterable<Entry>, revision?: number | bigint): Folded {
  const folded = new Folded();
  for (const entry of entries) {
    if (revision !== undefined && entry.revision > BigInt(revision)) {
      break;
    }
    folded.apply(entry);
  }
  return folded;
}

/** The state of a session at a revision. `apply` takes it to the next. */
export class Folded {
  revision = 0n;
  properties: SessionProperties = create(SessionPropertiesSchema);
  /** By id, in the order of the log. */
  readonly turns = new Map<string, Turn>();
  /** By id, in the order of the log. */
  readonly prompts = new Map<string, PromptRecord>();
  revert: OpenRevert | undefined;
  /** All messages that were ever put, and the message of every part that ever was. */
  readonly #messageIds = new Set<string>();
  readonly #owners = new Map<string, FoldedMessage>();
  readonly #places = new Places<FoldedMessage>();

  /** The messages that are shown, in order, whole: each is made anew. */
  get messages(): (User | Assistant)[] {
    return [...this.#shown()].map(({ header, parts }) => ({ ...header, parts: [...parts].filter(isShown).map(built) }));
  }

  /** The summaries of the messages that are shown, by the id of the message. */
  get summaries(): Map<string, MessageSummary> {
    const found = new Map<string, MessageSummary>();
    for (const { id, summary } of this.#shown()) {
      if (summary !== undefined) {
        found.set(id, summary);
      }
    }
    return found;
  }

  /** The same for a PromptEditor. Unlike a replay's it knows what was removed, so that its errors tell. */
  history(): History {
    const messages = this.messages;
    const live = new Set(messages.map((message) => message.id));
    const liveParts = new Set(messages.flatMap((message) => message.parts.map((part) => part.id)));
    return new History(messages, {
      turns: this.turns.values(),
      removedMessages: new Set([...this.#messageIds].filter((id) => !live.has(id))),
      removedParts: new Set([...this.#owners.keys()].filter((id) => !liveParts.has(id))),
    });
  }

  /** Applies the next entry. Throws UNKNOWN_PAYLOAD, as fold does. */
  apply(entry: Entry): void {
    const { payload, revision } = entry;
    switch (payload.case) {
      case "session":
        this.properties = payload.value;
        break;
      case "turn":
        this.turns.set(payload.value.id, payload.value);
        break;
      case "user":
        this.#putMessage(payload.value.user, payload.value.beforeId);
        break;
      case "assistant":
        this.#putMessage(payload.value.assistant, payload.value.beforeId);
        break;
      case "part":
        this.#putPart(this.#message(payload.value.messageId), payload.value.part, payload.value.beforeId);
        break;
      case "delta":
        this.#part(payload.value.partId).deltas.push(payload.value);
        break;
      case "summary":
        this.#message(payload.value.messageId).summary = payload.value;
        break;
      case "removal":
        this.#remove(payload.value.target);
        break;
      case "revert":
        this.revert = create(OpenRevertSchema, { revision, revert: payload.value });
        this.#hide(payload.value);
        break;
      case "revertClear":
        this.#show();
        break;
      case "prompt":
        this.prompts.set(payload.value.id, payload.value);
        break;
      case "context":
      case "rendering":
        break; // nothing of the history depends on them
      default:
        if (!entry.ignorable) {
          const text = `entry ${revision} has a payload of a later schema`;
          throw new TurnwireError(Reason.UNKNOWN_PAYLOAD, text, { metadata: { revision: String(revision) } });
        }
    }
    this.revision = revision;
  }

  *#shown(): Iterable<FoldedMessage> {
    for (const message of this.#places) {
      if (!message.hidden) {
        yield message;
      }
    }
  }

  #putMessage(message: User | Assistant | undefined, beforeId: string | undefined): void {
    if (message === undefined) {
      throw new Error("a log that was admitted has no put without a message");
    }
    if (this.revert !== undefined) {
      this.#finish();
    }
    const header = { ...message, parts: [] };
    let there = this.#places.get(message.id);
    if (there === undefined) {
      there = { id: message.id, header, parts: new Places(), summary: undefined, hidden: false };
      this.#places.insert(message.id, there, beforeId);
      this.#messageIds.add(message.id);
    } else {
      there.header = header;
    }
    for (const part of message.parts) {
      this.#putPart(there, part, undefined);
    }
  }

  #putPart(message: FoldedMessage, part: PromptPart | undefined, beforeId: string | undefined): void {
    if (part === undefined) {
      throw new Error("a log that was admitted has no put without a part");
    }
    const there = message.parts.get(part.id);
    if (there !== undefined) {
      there.put = part;
      there.deltas = [];
      return;
    }
    message.parts.insert(part.id, { id: part.id, put: part, deltas: [], hidden: false }, beforeId);
    this.#owners.set(part.id, message);
  }

  #remove(target: Removal["target"]): void {
    if (target.case === "messageId") {
      this.#places.remove(target.value);
    } else if (target.case === "partId") {
      this.#owners.get(target.value)?.parts.remove(target.value);
    }
  }

  /** Hides what is there from a place on. No message comes into being while a revert is open. */
  #hide(revert: Revert): void {
    let behind = false;
    for (const message of this.#places) {
      if (behind) {
        message.hidden = true;
      } else if (message.id === revert.messageId) {
        behind = true;
        if (revert.partId === undefined) {
          message.hidden = true;
        } else {
          hideFrom(message.parts, revert.partId);
        }
      }
    }
  }

  #show(): void {
    this.revert = undefined;
    for (const message of this.#places) {
      message.hidden = false;
      for (const part of message.parts) {
        part.hidden = false;
      }
    }
  }

  /** Takes out what the open revert hides. */
  #finish(): void {
    this.revert = undefined;
    for (const message of [...this.#places]) {
      if (message.hidden) {
        this.#places.remove(message.id);
      }
      for (const part of [...message.parts]) {
        if (part.hidden) {
          message.parts.remove(part.id);
        }
      }
    }
  }

  #message(id: string): FoldedMessage {
    const message = this.#places.get(id);
    if (message === undefined) {
      throw new Error(`a log that was admitted has message ${id}`);
    }
    return message;
  }

  #part(id: string): FoldedPart {
    const part = this.#owners.get(id)?.parts.get(id);
    if (part === undefined) {
      throw new Error(`a log that was admitted has part ${id}`);
    }
    return part;
  }
}

function hideFrom(parts: Places<FoldedPart>, partId: string): void {
  let behind = false;
  for (const part of parts) {
    behind ||= part.id === partId;
    part.hidden = behind;
  }
}

function isShown(part: FoldedPart): boolean {
  return !part.hidden;
}

/** The part with its open deltas. */
function built({ put, deltas }: FoldedPart): PromptPart {
  if (deltas.length === 0) {
    return put;
  }
  const texts = { text: "", rawInput: "", output: "" };
  for (const { target } of deltas) {
    if (target.case !== undefined) {
      texts[target.case] += target.value;
    }
  }
  const part = clone(PromptPartSchema, put);
  if (part.kind.case === "text" || part.kind.case === "reasoning") {
    part.kind.value.text += texts.text;
  } else if (part.kind.case === "tool") {
    const tool = part.kind.value;
    if (texts.rawInput) {
      tool.rawInput = (tool.rawInput ?? "") + texts.rawInput;
    }
    if (texts.output) {
      tool.output = (tool.output ?? "") + texts.output;
    }
  }
  return part;
}
