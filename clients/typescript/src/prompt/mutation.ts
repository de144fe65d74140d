import { create } from "@bufbuild/protobuf";
import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import { type Role, RoleSchema } from "../gen/turnwire/v1/options_pb.js";
import { type PromptPart, PromptPartSchema } from "../gen/turnwire/v1/part_pb.js";
import {
  type AppendTo,
  type Mutation,
  MutationSchema,
  type PromptItem,
  PromptItemSchema,
  type PromptMessage,
} from "../gen/turnwire/v1/prompt_pb.js";
import { requireValid } from "../rules/index.js";
import type { Fate, Fates } from "./history.js";

/** A part, and the item and index where it is. */
interface Found {
  readonly place: number;
  readonly at: number;
}

/**
 * Applies mutations in order to a copy of a prompt; when one is refused, nothing comes out. The result holds the parts of
 * both by reference: they must not be changed afterwards. `firstIndex` is the index of the first mutation, for origins
 * and paths.
 *
 * Throws, with the path (`mutations[1].insert_after.message_id`) and the id in question: UNKNOWN_TO_THIS_SERVER,
 * RULE_VIOLATION, TRANSIENT_PART_HAS_ID, DUPLICATE_CALL_ID (the mutation by itself); NO_MESSAGE_OF_ROLE; ANCHOR_UNKNOWN,
 * ANCHOR_COMPACTED, ANCHOR_REMOVED, ANCHOR_NOT_IN_PROMPT; SIGNED_PART.
 */
export function mutate(
  items: Iterable<PromptItem>,
  mutations: Iterable<Mutation>,
  fates: Fates,
  firstIndex = 0,
): PromptItem[] {
  const draft = new Draft(items, fates);
  let index = firstIndex;
  for (const mutation of mutations) {
    draft.apply(mutation, index++);
  }
  return draft.items;
}

class Draft {
  readonly items: PromptItem[];
  readonly #fates: Fates;

  constructor(items: Iterable<PromptItem>, fates: Fates) {
    this.items = [...items];
    this.#fates = fates;
  }

  apply(mutation: Mutation, index: number): void {
    const path = `mutations[${index}]`;
    requireValid(MutationSchema, mutation, path);
    const { kind } = mutation;
    switch (kind.case) {
      case "append":
        this.#put(this.items.length, kind.value.message, index);
        break;
      case "prepend":
        this.#put(0, kind.value.message, index);
        break;
      case "insertAfter":
        this.#put(this.#place(kind.value.messageId, `${path}.insert_after.message_id`) + 1, kind.value.message, index);
        break;
      case "insertBefore":
        this.#put(this.#place(kind.value.messageId, `${path}.insert_before.message_id`), kind.value.message, index);
        break;
      case "appendTo":
        this.#appendTo(kind.value, `${path}.append_to`);
        break;
      case "remove":
        this.items.splice(this.#place(kind.value.messageId, `${path}.remove.message_id`), 1);
        break;
      case "removePart":
        this.#removePart(this.#placeOfPart(kind.value.partId, `${path}.remove_part.part_id`));
        break;
      case "replacePart":
        this.#replacePart(
          this.#placeOfPart(kind.value.partId, `${path}.replace_part.part_id`),
          kind.value.part,
          `${path}.replace_part.part`,
        );
        break;
    }
  }

  #put(place: number, message: PromptMessage | undefined, index: number): void {
    const item = create(PromptItemSchema, { origin: { case: "mutation", value: { index } } });
    if (message !== undefined) {
      item.message = message;
    }
    this.items.splice(place, 0, item);
  }

  #appendTo({ role, parts }: AppendTo, path: string): void {
    const place = this.items.findLastIndex((item) => item.message?.role === role);
    if (place < 0) {
      const metadata = { path, role: roleName(role) };
      throw new TurnwireError(Reason.NO_MESSAGE_OF_ROLE, "the prompt has no message of this role", { metadata });
    }
    const beside = partsOf(this.items[place]);
    for (const [index, part] of parts.entries()) {
      requireFreeCall(part, beside, `${path}.parts[${index}]`);
    }
    this.#edit(place, [...beside, ...parts]);
  }

  #removePart({ place, at }: Found): void {
    const left = partsOf(this.items[place]).toSpliced(at, 1);
    if (left.length > 0) {
      this.#edit(place, left);
    } else {
      this.items.splice(place, 1);
    }
  }

  #replacePart({ place, at }: Found, part: PromptPart | undefined, path: string): void {
    if (part === undefined) {
      return; // the rules have refused it
    }
    const item = this.items[place];
    if (item?.message !== undefined) {
      requireValid(PromptPartSchema, part, path, { role: item.message.role });
    }
    requireFreeCall(part, partsOf(item).toSpliced(at, 1), path);
    this.#edit(place, partsOf(item).with(at, part));
  }

  /** Puts other parts into an item. The item itself is shared with the prompt before, so it is made anew. */
  #edit(place: number, parts: PromptPart[]): void {
    const item = this.items[place];
    if (item?.message !== undefined) {
      this.items[place] = { ...item, message: { ...item.message, parts } };
    }
  }

  /** Where a stored message is in the prompt; else the error that says why it is not there. */
  #place(messageId: string, path: string): number {
    const place = this.items.findIndex((item) => storedId(item) === messageId);
    if (place < 0) {
      throw absent(this.#fates.messageFate(messageId), "message", messageId, path);
    }
    return place;
  }

  /** Where a stored part is; refused when a mutation may not touch it. */
  #placeOfPart(partId: string, path: string): Found {
    for (const [place, item] of this.items.entries()) {
      const at = storedId(item) === undefined ? -1 : partsOf(item).findIndex((part) => part.id === partId);
      const part = partsOf(item)[at];
      if (part !== undefined) {
        if (isFixed(part)) {
          const text = "the part is signed: remove its whole message, or append to it";
          throw new TurnwireError(Reason.SIGNED_PART, text, { metadata: { path, part_id: partId } });
        }
        return { place, at };
      }
    }
    throw absent(this.#fates.partFate(partId), "part", partId, path);
  }
}

function storedId(item: PromptItem): string | undefined {
  return item.origin.case === "messageId" ? item.origin.value : undefined;
}

function partsOf(item: PromptItem | undefined): PromptPart[] {
  return item?.message?.parts ?? [];
}

/**
 * Whether a mutation may neither replace nor remove a part: it is signed, or of a kind that this version does not know,
 * in which a later one may find a signature.
 */
function isFixed({ kind }: PromptPart): boolean {
  switch (kind.case) {
    case "text":
    case "reasoning":
    case "tool":
      return kind.value.provider?.signed ?? false;
    default:
      return kind.case === undefined;
  }
}

function requireFreeCall(part: PromptPart, beside: readonly PromptPart[], path: string): void {
  if (part.kind.case !== "tool") {
    return;
  }
  const { callId } = part.kind.value;
  if (beside.some(({ kind }) => kind.case === "tool" && kind.value.callId === callId)) {
    const metadata = { path: `${path}.tool.call_id`, call_id: callId };
    throw new TurnwireError(Reason.DUPLICATE_CALL_ID, "another tool part of the message has this call id", {
      metadata,
    });
  }
}

function roleName(role: Role): string {
  return RoleSchema.value[role]?.name ?? String(role);
}

const ABSENT: Record<Fate, [Reason, (what: string) => string]> = {
  unknown: [Reason.ANCHOR_UNKNOWN, (what) => `the session has no such ${what}`],
  removed: [Reason.ANCHOR_REMOVED, (what) => `the ${what} was removed or reverted`],
  compacted: [Reason.ANCHOR_COMPACTED, (what) => `the ${what} exists, but was compacted away`],
  live: [Reason.ANCHOR_NOT_IN_PROMPT, (what) => `the ${what} exists, but is not in this prompt`],
};

function absent(fate: Fate, what: "message" | "part", id: string, path: string): TurnwireError {
  const [reason, text] = ABSENT[fate];
  return new TurnwireError(reason, text(what), { metadata: { path, [`${what}_id`]: id } });
}
