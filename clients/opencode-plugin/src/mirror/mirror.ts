// Mirrors every session that opencode tells of.

import type { Tree } from "../mapping/index.js";
import { treeOf } from "../mapping/values.js";
import type { Change } from "./pending.js";
import { SessionMirror, type Surroundings } from "./session.js";

/** Milliseconds: how long nothing has to come before the end, and how long the end may take. */
const QUIET_MS = 300;
const END_MS = 5_000;

/** How many sessions are remembered; one beyond them is compared as a whole again when something happens in it. */
const MOST_SESSIONS = 100;

/** An event of opencode's bus. */
export interface BusEvent {
  readonly type: string;
  readonly properties: unknown;
}

/** What a mirror needs. */
export interface MirrorSurroundings extends Omit<Surroundings, "parentPart" | "signal"> {
  /** Whether a session that is deleted in opencode is deleted in Turnwire, for good. */
  readonly removeGone: boolean;
}

export class Mirror {
  readonly #with: MirrorSurroundings;
  readonly #over = new AbortController();
  readonly #sessions = new Map<string, SessionMirror>();
  /** The tool parts that started sessions, by the ids of these. */
  readonly #parentParts = new Map<string, string>();
  #lastEvent = 0;

  constructor(surroundings: MirrorSurroundings) {
    this.#with = surroundings;
  }

  /** Takes in an event. Never throws, never waits. */
  take({ type, properties }: BusEvent): void {
    const found = changeOf(type, properties as Tree);
    if (found === undefined) {
      return;
    }
    this.#lastEvent = performance.now();
    if (found.change === "deleted") {
      this.#session(found.sessionId).gone(this.#with.removeGone);
      return;
    }
    this.#noteChild(properties as Tree);
    const session = this.#session(found.sessionId);
    if (found.change === "idle") {
      session.revive();
    } else {
      session.push(found.change);
    }
  }

  /** Compares some sessions, one after the other: what happened to them while no mirror ran. */
  async catchUp(sessionIds: Iterable<string>): Promise<void> {
    for (const id of sessionIds) {
      if (this.#over.signal.aborted) {
        return;
      }
      const session = this.#session(id);
      session.wake();
      await session.settled();
    }
  }

  /** Resolves when all that has come so far is stored, however long the server is away. */
  async settled(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.settled()));
  }

  /** Stores what has come, as far as the server is there, and ends. */
  async end(): Promise<void> {
    const deadline = performance.now() + END_MS;
    const isLate = () => performance.now() >= deadline;
    while (!isLate() && (performance.now() - this.#lastEvent < QUIET_MS || this.#isBusy())) {
      await pause();
    }
    this.#over.abort();
  }

  #isBusy(): boolean {
    return [...this.#sessions.values()].some((session) => session.isWorking && !session.isAway);
  }

  #session(id: string): SessionMirror {
    let session = this.#sessions.get(id);
    if (session === undefined) {
      const parentPart = (child: string) => this.#parentParts.get(child);
      session = new SessionMirror(id, { ...this.#with, parentPart, signal: this.#over.signal });
      this.#forget();
      this.#sessions.set(id, session);
    }
    return session;
  }

  /** Forgets the sessions that came first and have nothing to do, so that memory has a limit. */
  #forget(): void {
    for (const [id, session] of this.#sessions) {
      if (this.#sessions.size < MOST_SESSIONS) {
        return;
      }
      if (!session.isWorking) {
        this.#sessions.delete(id);
      }
    }
  }

  /** Remembers which part started a session: opencode's task tool names it in its metadata. */
  #noteChild({ part }: Tree): void {
    const { type, tool, id, state } = treeOf(part);
    const child = type === "tool" && tool === "task" ? treeOf(treeOf(state).metadata).sessionId : undefined;
    if (typeof child === "string" && typeof id === "string" && !this.#parentParts.has(child)) {
      this.#parentParts.set(child, id);
      this.#sessions.get(child)?.touch();
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

/** The change that an event tells of, and of which session; undefined: it is about no session's content. */
function changeOf(
  type: string,
  properties: Tree,
): { sessionId: string; change: Change | "idle" | "deleted" } | undefined {
  const { sessionID, info, part, messageID, partID } = properties;
  const sessionId = sessionIdOf(properties);
  if (sessionId === undefined) {
    return undefined;
  }
  const found = (change: Change | "idle" | "deleted") => ({ sessionId, change });
  switch (type) {
    case "session.created":
    case "session.updated":
      return found({ kind: "session", text: JSON.stringify(info) });
    case "session.deleted":
      return found("deleted");
    case "todo.updated":
      return found({ kind: "todo", text: JSON.stringify(properties.todos) });
    case "session.idle":
      return found("idle");
    case "message.updated":
      return found({ kind: "message", id: String(treeOf(info).id), text: JSON.stringify(info) });
    case "message.removed":
      return found({ kind: "removeMessage", id: String(messageID) });
    case "message.part.updated": {
      const { id, messageID: owner } = treeOf(part);
      return found({ kind: "part", id: String(id), messageId: String(owner), text: JSON.stringify(part) });
    }
    case "message.part.removed":
      return found({ kind: "removePart", id: String(partID) });
    case "message.part.delta":
      return properties.field === "text" && typeof properties.delta === "string" && typeof sessionID === "string"
        ? found({ kind: "delta", id: String(partID), messageId: String(messageID), added: properties.delta })
        : undefined;
    default:
      return undefined;
  }
}

function sessionIdOf({ sessionID, info, part }: Tree): string | undefined {
  const { id, sessionID: ofInfo } = treeOf(info);
  const found = [sessionID, ofInfo, treeOf(part).sessionID, id].find((each) => typeof each === "string");
  return typeof found === "string" ? found : undefined;
}
