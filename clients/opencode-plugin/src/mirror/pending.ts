// The changes of a session that are to be appended: the newest of each object, in the order in which they first came.

/** A change as opencode tells it. Texts are JSON: opencode goes on changing its objects. */
export type Change =
  | { readonly kind: "session"; readonly text: string }
  | { readonly kind: "todo"; readonly text: string }
  | { readonly kind: "message"; readonly id: string; readonly text: string }
  | { readonly kind: "part"; readonly id: string; readonly messageId: string; readonly text: string }
  | { readonly kind: "delta"; readonly id: string; readonly messageId: string; readonly added: string }
  | { readonly kind: "removeMessage"; readonly id: string }
  | { readonly kind: "removePart"; readonly id: string };

/** A queue with a limit, in characters of JSON. */
export class Pending {
  readonly #changes = new Map<string, Change>();
  readonly #limit: number;
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  get isFull(): boolean {
    return this.#size > this.#limit;
  }

  add(change: Change): void {
    if (change.kind === "delta") {
      const key = `${change.kind}/${change.id}`;
      const there = this.#changes.get(key);
      const before = there?.kind === "delta" ? there.added : "";
      this.#set(key, { ...change, added: before + change.added });
      return;
    }
    if (change.kind === "part" || change.kind === "removePart") {
      this.#take(`delta/${change.id}`); // the part as it is now has the text
    }
    const key = `${keyKind(change.kind)}/${"id" in change ? change.id : ""}`;
    if (change.kind.startsWith("remove")) {
      this.#take(key); // what came between may refer to it, so that it goes to the end
    }
    this.#set(key, change);
  }

  /** Takes the first change out. */
  shift(): Change | undefined {
    for (const [key, change] of this.#changes) {
      this.#take(key);
      return change;
    }
    return undefined;
  }

  clear(): void {
    this.#changes.clear();
    this.#size = 0;
  }

  #set(key: string, change: Change): void {
    this.#size += weight(change) - weight(this.#changes.get(key));
    this.#changes.set(key, change);
  }

  #take(key: string): void {
    this.#size -= weight(this.#changes.get(key));
    this.#changes.delete(key);
  }
}

function keyKind(kind: Change["kind"]): string {
  return kind.replace(/^remove/, "").toLowerCase();
}

/** What a change weighs: its text, and something for being there. */
function weight(change: Change | undefined): number {
  if (change === undefined) {
    return 0;
  }
  return 100 + ("text" in change ? change.text.length : "added" in change ? change.added.length : 0);
}
