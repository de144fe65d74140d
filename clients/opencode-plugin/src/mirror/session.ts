// Mirrors one session: queues its changes, appends them one append at a time, and compares the whole where it has to.

import { setTimeout as sleep } from "node:timers/promises";
import { type Client, Reason, TurnwireError } from "@turnwire/client";
import { legalId, type MessageRecord, mapRevert, mapSession, mapWhole, type Tree } from "../mapping/index.js";
import type { Json } from "../mapping/values.js";
import { Stale, write } from "./changes.js";
import { steps } from "./comparison.js";
import { type Change, Pending } from "./pending.js";
import { type Courier, pauseMs, readView, remove, send } from "./sending.js";
import type { LogView } from "./view.js";
import { type Append, keyOf, Writer } from "./writer.js";

/** How long, in milliseconds, changes are gathered before they are appended. */
const GATHER_MS = 40;
/** How often in a row the whole session is compared before the plugin gives up on it; with the pauses, 16 seconds. */
const MOST_COMPARISONS = 8;
const MOST_REFUSED = 1000;

/** A session as opencode's API gives it. */
export interface SessionRecord {
  readonly info: Tree;
  readonly messages: readonly MessageRecord[];
  /** The todo list; undefined: not known. */
  readonly todo?: readonly Json[] | undefined;
}

/** What the mirrors of all sessions share. */
export interface Surroundings {
  readonly client: Client;
  readonly signal: AbortSignal;
  /** The most characters that a session's queue holds. */
  readonly queueLimit: number;
  /** Reads a session from opencode; undefined if it has none of this id. */
  read(sessionId: string): Promise<SessionRecord | undefined>;
  /** The project that a session belongs to, as JSON text, if it is known. */
  project(info: Tree): string | undefined;
  /** The tool part that started a session, if it is known. */
  parentPart(sessionId: string): string | undefined;
  /** Tells the user, once for each kind. */
  log(kind: string, level: "info" | "warn" | "error", message: string): void;
}

/**
 * "stale": the whole session has to be compared, and changes need not be kept until then; "reading": it is being read,
 * so that changes are kept; "live": changes are appended as they come; "given up": until the session is idle again;
 * "left alone": for good.
 */
type Phase = "stale" | "reading" | "live" | "given up" | "left alone";

/** The mirror of one session. */
export class SessionMirror {
  readonly #id: string;
  readonly #with: Surroundings;
  readonly #pending: Pending;
  readonly #refused = new Set<string>();
  #phase: Phase = "stale";
  #view: LogView | undefined;
  #info: Tree = {};
  #todo: readonly Json[] | undefined;
  /** Whether opencode has deleted the session, and it is to be deleted in Turnwire too. */
  #isGone = false;
  #running: Promise<void> | undefined;
  #comparisons = 0;
  #isAway = false;

  constructor(id: string, surroundings: Surroundings) {
    this.#id = id;
    this.#with = surroundings;
    this.#pending = new Pending(surroundings.queueLimit);
  }

  /** Whether the server could not be reached when it was last tried. */
  get isAway(): boolean {
    return this.#isAway;
  }

  get isWorking(): boolean {
    return this.#running !== undefined;
  }

  /** Stores the properties again, as something beside opencode's own events has changed them. */
  touch(): void {
    this.push({ kind: "session", text: JSON.stringify(this.#info) });
  }

  /** Works again, if it was given up. */
  revive(): void {
    if (this.#phase === "given up") {
      this.#phase = "stale";
      this.#comparisons = 0;
    }
    this.wake();
  }

  /** opencode has deleted the session. `remove`: so is what Turnwire has of it; else that stays as it is. */
  gone(remove: boolean): void {
    this.#phase = "left alone";
    this.#pending.clear();
    this.#isGone = remove;
    this.wake();
  }

  /** Takes in a change. Never throws. */
  push(change: Change): void {
    if (this.#phase === "reading" || this.#phase === "live") {
      this.#pending.add(change);
      if (this.#pending.isFull) {
        this.#pending.clear();
        this.#phase = "stale";
      }
    }
    this.wake();
  }

  /** Starts to work, if there is work. */
  wake(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#hasWork()) {
        this.wake(); // something came between the end of the work and here
      }
    });
  }

  /** Resolves when all that has come so far is stored, or was given up. */
  async settled(): Promise<void> {
    await this.#running;
  }

  #hasWork(): boolean {
    if (this.#with.signal.aborted || this.#phase === "given up" || this.#phase === "left alone") {
      return this.#isGone && !this.#with.signal.aborted;
    }
    return this.#phase !== "live" || !this.#pending.isEmpty;
  }

  async #run(): Promise<void> {
    while (this.#hasWork()) {
      try {
        if (this.#phase === "left alone") {
          await this.#remove();
        } else if (this.#phase !== "live") {
          await this.#compare();
        } else {
          await sleep(GATHER_MS);
          await this.#appendPending();
        }
        this.#comparisons = 0;
      } catch (error) {
        await this.#failed(error);
      }
    }
  }

  async #appendPending(): Promise<void> {
    const view = this.#view;
    if (view === undefined) {
      throw new Stale();
    }
    const writer = new Writer(view, this.#refused);
    for (let change = this.#pending.shift(); change !== undefined; change = this.#pending.shift()) {
      if (change.kind === "session") {
        this.#info = JSON.parse(change.text) as Tree;
      } else if (change.kind === "todo") {
        this.#todo = listOf(JSON.parse(change.text));
      } else {
        write(change, this.#id, writer);
      }
      if (writer.isFull) {
        break;
      }
    }
    await this.#send(this.#finish(writer));
  }

  /** Deletes what Turnwire has of the session, if that came from opencode. */
  async #remove(): Promise<void> {
    this.#isGone = false;
    const courier = this.#courier(() => undefined);
    try {
      const view = await readView(this.#with.client, this.#sessionId, courier);
      if (view.isOpencodes) {
        await remove(this.#with.client, this.#sessionId, courier);
      }
    } catch (error) {
      const isDone = error instanceof TurnwireError && error.reason === Reason.SESSION_DELETED;
      if (!isDone && !this.#with.signal.aborted) {
        const why = error instanceof Error ? error.message : String(error);
        this.#with.log(`gone/${this.#id}`, "error", `${this.#id} is not deleted: ${why}`);
      }
    }
  }

  /** Goes on to another phase, unless the session is left alone meanwhile. Throws Stale then. */
  #enter(phase: Phase): void {
    if (this.#phase === "left alone") {
      throw new Stale("the session was deleted");
    }
    this.#phase = phase;
  }

  /** Compares the whole session with what is stored of it, and appends what differs. */
  async #compare(): Promise<void> {
    this.#enter("stale");
    this.#comparisons++;
    const courier = this.#courier(() => undefined);
    const view = await readView(this.#with.client, this.#sessionId, courier);
    if (view.revision > 0n && !view.isOpencodes) {
      throw new LeftAlone("a session of this id exists, and did not come from opencode");
    }
    this.#enter("reading");
    this.#pending.clear();
    const record = await this.#with.read(this.#id);
    if (record === undefined) {
      throw new Stale("opencode has no such session"); // or none yet: it tells of sessions before it can read them
    }
    this.#info = record.info;
    this.#todo = record.todo;
    this.#view = view;
    const whole = mapWhole(record.info, record.messages);
    let writer = new Writer(view, this.#refused);
    for (const step of steps(whole, view)) {
      step(writer);
      if (writer.isFull) {
        await this.#send(this.#finish(writer));
        writer = new Writer(view, this.#refused);
      }
    }
    await this.#send(this.#finish(writer));
    view.closeParts();
    this.#phase = this.#phase === "reading" ? "live" : this.#phase;
  }

  /** The append with the session's revert and properties as they now are. */
  #finish(writer: Writer): Append | undefined {
    const { view } = writer;
    const revert = mapRevert(this.#info.revert, (messageId, partId) => {
      const message = view.message(messageId);
      return message !== undefined && (partId === undefined || message.parts.some(({ id }) => id === partId));
    });
    writer.revert(revert);
    const properties = mapSession(this.#info, {
      stored: view.properties,
      hasRevert: revert !== undefined,
      parentPart: this.#with.parentPart(this.#id),
      project: this.#with.project(this.#info),
      todo: this.#todo,
    });
    return writer.append(this.#sessionId, properties);
  }

  async #send(append: Append | undefined): Promise<void> {
    if (append === undefined) {
      return;
    }
    const courier = this.#courier(() => {
      if (this.#phase === "stale" || this.#phase === "left alone") {
        throw new Stale("more changes came than are kept while the server is away, or the session was deleted");
      }
    });
    try {
      await send(this.#with.client, append, courier);
    } catch (error) {
      this.#leaveOut(error, append);
    }
  }

  /** Remembers the object that the server does not take, so that the others are stored; else throws the error again. */
  #leaveOut(error: unknown, { entries }: Append): never {
    if (error instanceof TurnwireError && REFUSALS.has(error.status) && !error.conflict) {
      const paths = [...error.violations.map(({ path }) => path), error.path];
      const index = paths.map((path) => /^entries\[(\d+)\]/.exec(path)?.[1]).find((found) => found !== undefined);
      const named = index === undefined ? undefined : entries[Number(index)];
      const key = named && keyOf(named);
      if (key !== undefined && LASTING.has(error.reason) && this.#refused.size < MOST_REFUSED) {
        this.#refused.add(key);
        const reason = error.reasonName || error.status;
        this.#with.log(
          `refused/${this.#id}`,
          "warn",
          `${key} of ${this.#id} is not mirrored, the server refuses it: ${reason}`,
        );
        this.#comparisons = 0;
        throw new Stale("an object was refused");
      }
    }
    throw error;
  }

  /** Says what follows from a failure, and waits before the next comparison, longer from one to the next. */
  async #failed(error: unknown): Promise<void> {
    if (this.#with.signal.aborted || this.#phase === "left alone") {
      return; // the end, or the session was deleted meanwhile
    }
    const isHopeless = error instanceof LeftAlone || (error instanceof TurnwireError && HOPELESS.has(error.reason));
    if (!isHopeless && this.#comparisons < MOST_COMPARISONS) {
      this.#phase = "stale";
      if (this.#comparisons > 0) {
        // At the end it is aborted, and there is no more work.
        await sleep(pauseMs(this.#comparisons - 1), undefined, { signal: this.#with.signal }).catch(() => undefined);
      }
      return;
    }
    this.#phase = isHopeless ? "left alone" : "given up";
    this.#pending.clear();
    const why = error instanceof Error ? error.message : String(error);
    this.#with.log(`${this.#phase}/${this.#id}`, "error", `${this.#id} is not mirrored: ${why}`);
  }

  #courier(stillWanted: () => void): Courier {
    return {
      signal: this.#with.signal,
      stillWanted,
      reached: () => {
        this.#isAway = false;
      },
      away: (error) => {
        this.#isAway = true;
        const reason = error.reasonName || error.status;
        this.#with.log(
          "away",
          "warn",
          `the Turnwire server cannot be reached (${reason}); the mirror catches up later`,
        );
      },
    };
  }

  get #sessionId(): string {
    return legalId(this.#id);
  }
}

function listOf(value: unknown): readonly Json[] | undefined {
  return Array.isArray(value) ? (value as Json[]) : undefined;
}

/** There is nothing that trying again would change. */
class LeftAlone extends Error {}

const REFUSALS = new Set(["INVALID_ARGUMENT", "FAILED_PRECONDITION", "ALREADY_EXISTS"]);
/** Reasons that an object has in itself. */
const LASTING = new Set([
  Reason.RULE_VIOLATION,
  Reason.UNKNOWN_TO_THIS_SERVER,
  Reason.PART_TOO_LARGE,
  Reason.ID_IN_USE,
  Reason.PART_REMOVED,
]);
const HOPELESS = new Set([
  Reason.SESSION_DELETED,
  Reason.STORE_READ_ONLY,
  Reason.STORE_FOREIGN,
  Reason.STORE_TOO_NEW,
  Reason.CORRUPT_DATA,
]);
