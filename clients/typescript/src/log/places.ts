interface Link<T> {
  readonly item: T;
  before: Link<T> | undefined;
  after: Link<T> | undefined;
}

/** Things in an order, by id: a new one goes to the end or before another, each at a constant cost. */
export class Places<T> implements Iterable<T> {
  readonly #links = new Map<string, Link<T>>();
  #first: Link<T> | undefined;
  #last: Link<T> | undefined;

  *[Symbol.iterator](): Iterator<T> {
    for (let link = this.#first; link !== undefined; link = link.after) {
      yield link.item;
    }
  }

  get(id: string): T | undefined {
    return this.#links.get(id)?.item;
  }

  /** Puts a thing before another, or at the end if there is no such other. */
  insert(id: string, item: T, beforeId: string | undefined): void {
    const after = beforeId === undefined ? undefined : this.#links.get(beforeId);
    const link: Link<T> = { item, before: after === undefined ? this.#last : after.before, after };
    this.#links.set(id, link);
    this.#join(link.before, link);
    this.#join(link, after);
  }

  remove(id: string): void {
    const link = this.#links.get(id);
    if (link !== undefined) {
      this.#links.delete(id);
      this.#join(link.before, link.after);
    }
  }

  #join(one: Link<T> | undefined, other: Link<T> | undefined): void {
    if (one === undefined) {
      this.#first = other;
    } else {
      one.after = other;
    }
    if (other === undefined) {
      this.#last = one;
    } else {
      other.before = one;
    }
  }
}
