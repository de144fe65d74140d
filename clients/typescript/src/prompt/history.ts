import type { Assistant, User } from "../gen/turnwire/v1/message_pb.js";
import type { Turn } from "../gen/turnwire/v1/turn_pb.js";

/** What became of a message or part: "compacted" is live, but a compaction stands in its place in the prompt. */
export type Fate = "live" | "compacted" | "removed" | "unknown";

/** What a mutation asks about an anchor that it does not find in the prompt. */
export interface Fates {
  messageFate(id: string): Fate;
  partFate(id: string): Fate;
}

/** Where there is no history to ask: every id that the prompt does not show is unknown. */
export const NOTHING_KNOWN: Fates = { messageFate: () => "unknown", partFate: () => "unknown" };

/** What a History can know beside its messages. */
export interface HistoryFacts {
  turns?: Iterable<Turn>;
  /**
   * The ids that the session once had and has no longer: removed, or hidden by a revert. They only choose the right
   * error; without them such an id is unknown.
   */
  removedMessages?: ReadonlySet<string>;
  removedParts?: ReadonlySet<string>;
}

/** A folded history: the live messages in place order, and the turns. They must not be changed while it is in use. */
export class History implements Fates {
  readonly messages: readonly (User | Assistant)[];
  readonly turns: ReadonlyMap<string, Turn>;
  readonly #removedMessages: ReadonlySet<string>;
  readonly #removedParts: ReadonlySet<string>;
  #places: Map<string, number> | undefined;
  #owners: Map<string, number> | undefined;

  constructor(messages: Iterable<User | Assistant>, facts: HistoryFacts = {}) {
    this.messages = [...messages];
    this.turns = new Map([...(facts.turns ?? [])].map((turn) => [turn.id, turn]));
    this.#removedMessages = facts.removedMessages ?? new Set();
    this.#removedParts = facts.removedParts ?? new Set();
  }

  /** The place of a live message, from 0. */
  place(messageId: string): number | undefined {
    this.#places ??= new Map(this.messages.map((message, place) => [message.id, place]));
    return this.#places.get(messageId);
  }

  /** The place of the live message that holds a part. */
  placeOfPart(partId: string): number | undefined {
    this.#owners ??= new Map(
      this.messages.flatMap((message, place) => message.parts.map((part): [string, number] => [part.id, place])),
    );
    return this.#owners.get(partId);
  }

  /** Live, removed or unknown; only a prompt can tell what was compacted. */
  messageFate(id: string): Fate {
    return this.place(id) !== undefined ? "live" : this.#removedMessages.has(id) ? "removed" : "unknown";
  }

  /** Live, removed or unknown; only a prompt can tell what was compacted. */
  partFate(id: string): Fate {
    return this.placeOfPart(id) !== undefined ? "live" : this.#removedParts.has(id) ? "removed" : "unknown";
  }
}
