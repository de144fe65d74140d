import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Mutation,
  MutationSchema,
  type PromptItem,
  PromptItemSchema,
  type PromptMessage,
  PromptMessageSchema,
} from "../gen/turnwire/v1/prompt_pb.js";
import { requireText } from "../rules/index.js";
import { assemble } from "./assembly.js";
import { type Content, messageOf, partOf, type RoleLike, roleOf } from "./build.js";
import { promptDigest } from "./digest.js";
import { type Fates, type History, NOTHING_KNOWN } from "./history.js";
import { mutate } from "./mutation.js";

/** What an editor can be told beside its items. */
export interface EditorOptions {
  /** The prompt record that the items are the result of, as when hooks chain: what its mutations made is marked with it. */
  basePromptId?: string;
  /** What became of messages and parts that the items do not show; without it they are unknown. */
  fates?: Fates;
}

/**
 * A prompt that can be edited, locally and without a server:
 *
 * ```ts
 * const editor = PromptEditor.of(history, turnId);
 * editor.append("user", "Summarize the tool output above and continue.");
 * editor.appendTo("user", textPart("Answer in German.", { synthetic: true }));
 * ```
 *
 * There is one way to edit: the methods. Each applies at once, so that an error comes out of the call that is wrong, and
 * then nothing has changed. `items`, `messages` and `mutations` are copies. The history never changes.
 *
 * `mutations` is what MutatePrompt takes; the service comes to the same digest. The errors are TurnwireErrors with the
 * reasons of the service, and their path counts mutations as `mutations` does.
 */
export class PromptEditor {
  #items: PromptItem[];
  readonly #mutations: Mutation[] = [];
  readonly #fates: Fates;

  /**
   * Edits items that are there already, for example those that mutatePrompt returned; they are copied. Throws
   * RULE_VIOLATION for a text that is no valid Unicode.
   */
  constructor(items: Iterable<PromptItem> = [], options: EditorOptions = {}) {
    this.#items = Array.from(items, (item, index) => {
      requireText(PromptItemSchema, item, `items[${index}]`);
      return clone(PromptItemSchema, item);
    });
    this.#fates = options.fates ?? NOTHING_KNOWN;
    for (const { origin } of this.#items) {
      if (options.basePromptId && origin.case === "mutation" && !origin.value.promptId) {
        origin.value.promptId = options.basePromptId;
      }
    }
  }

  /** Edits the prompt of a turn. Throws TURN_NOT_FOUND, UNKNOWN_PROFILE. */
  static of(history: History, turnId: string, profile = ""): PromptEditor {
    const assembly = assemble(history, turnId, profile);
    return new PromptEditor(assembly.items, { fates: assembly });
  }

  /** Puts a message at the end: a PromptMessage, or a role and its parts (strings become texts). */
  append(message: PromptMessage | RoleLike, ...content: Content[]): void {
    this.apply({ kind: { case: "append", value: { message: messageOf(message, content) } } });
  }

  /** Puts a message at the beginning. */
  prepend(message: PromptMessage | RoleLike, ...content: Content[]): void {
    this.apply({ kind: { case: "prepend", value: { message: messageOf(message, content) } } });
  }

  /** Adds parts to the end of the last message of a role, synthetic or not. Throws NO_MESSAGE_OF_ROLE. */
  appendTo(role: RoleLike, ...content: Content[]): void {
    this.apply({ kind: { case: "appendTo", value: { role: roleOf(role), parts: content.map(partOf) } } });
  }

  /** Puts a message directly after a stored one; of two after one anchor the later is nearer to it. */
  insertAfter(messageId: string, message: PromptMessage | RoleLike, ...content: Content[]): void {
    this.apply({ kind: { case: "insertAfter", value: { messageId, message: messageOf(message, content) } } });
  }

  /** Puts a message directly before a stored one; of two before one anchor the later is nearer to it. */
  insertBefore(messageId: string, message: PromptMessage | RoleLike, ...content: Content[]): void {
    this.apply({ kind: { case: "insertBefore", value: { messageId, message: messageOf(message, content) } } });
  }

  /** Takes a stored message out, with whatever was added to it. */
  remove(messageId: string): void {
    this.apply({ kind: { case: "remove", value: { messageId } } });
  }

  /** Takes a stored part out; a message that loses its last part leaves the prompt. Throws SIGNED_PART. */
  removePart(partId: string): void {
    this.apply({ kind: { case: "removePart", value: { partId } } });
  }

  /** Puts another part in the place of a stored one; it has no id afterwards. Throws SIGNED_PART. */
  replacePart(partId: string, content: Content): void {
    this.apply({ kind: { case: "replacePart", value: { partId, part: partOf(content) } } });
  }

  /** Applies mutations in order, all or none; they are copied. */
  apply(...mutations: MessageInitShape<typeof MutationSchema>[]): void {
    const held = mutations.map((mutation, index) => {
      const made = create(MutationSchema, mutation);
      requireText(MutationSchema, made, `mutations[${this.#mutations.length + index}]`);
      return clone(MutationSchema, made);
    });
    this.#items = mutate(this.#items, held, this.#fates, this.#mutations.length);
    this.#mutations.push(...held);
  }

  /** How many items the prompt has. */
  get length(): number {
    return this.#items.length;
  }

  /** The items as they now are, with their origins. */
  get items(): PromptItem[] {
    return this.#items.map((item) => clone(PromptItemSchema, item));
  }

  /** The messages as they now are. */
  get messages(): PromptMessage[] {
    return this.#messages().map((message) => clone(PromptMessageSchema, message));
  }

  /** What was done so far, in order: the mutations to send to MutatePrompt. */
  get mutations(): Mutation[] {
    return this.#mutations.map((mutation) => clone(MutationSchema, mutation));
  }

  /** The digest of the prompt as it now is, 32 bytes. */
  digest(): Uint8Array {
    return promptDigest(this.#messages());
  }

  #messages(): PromptMessage[] {
    return this.#items.map((item) => item.message ?? create(PromptMessageSchema));
  }
}
