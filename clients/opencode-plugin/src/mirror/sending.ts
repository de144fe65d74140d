// Sends appends, and waits while the server is away.

import { setTimeout as sleep } from "node:timers/promises";
import { type Client, Reason, TurnwireError } from "@turnwire/client";
import { LogView } from "./view.js";
import type { Append } from "./writer.js";

/** Milliseconds: the first pause before a call is tried again, and the longest. */
const FIRST_PAUSE_MS = 200;
const LAST_PAUSE_MS = 5_000;

/** Statuses that say nothing of the request: the server is away, busy or full. */
const AWAY = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED"]);

/** What sending tells and asks. */
export interface Courier {
  /** The server is away; called at every attempt that fails. */
  away(error: TurnwireError): void;
  /** A call succeeded. */
  reached(): void;
  /** Throws if the call is of no use any more. */
  stillWanted(): void;
  readonly signal: AbortSignal;
}

/** Whether an error says that the server cannot be reached, or not now. */
export function isAway(error: unknown): error is TurnwireError {
  return error instanceof TurnwireError && AWAY.has(error.status) && error.reason !== Reason.REQUEST_TOO_LARGE;
}

/** Appends; returns when it is durable. Rejects with what the server refuses it for. */
export function send(client: Client, append: Append, courier: Courier): Promise<void> {
  const { sessionId, requestId, create, entries, expectedRevision } = append;
  return patiently(courier, async (options) => {
    if (create !== undefined && entries.length === 0) {
      await client.createSession({ sessionId, requestId, properties: create }, options);
    } else {
      await client.append({ sessionId, requestId, expectedRevision, entries, ...(create && { create }) }, options);
    }
  });
}

/** Reads what the log of a session holds; a log of revision 0 if there is none. */
export function readView(client: Client, sessionId: string, courier: Courier): Promise<LogView> {
  return patiently(courier, async (options) => {
    const view = new LogView();
    let mark: ReturnType<LogView["read"]>;
    try {
      for await (const entry of client.readEntries({ sessionId }, options)) {
        mark = view.read(entry, mark);
      }
    } catch (error) {
      if (!(error instanceof TurnwireError && error.reason === Reason.SESSION_NOT_FOUND)) {
        throw error;
      }
    }
    view.closeParts();
    return view;
  });
}

/** Deletes a session; returns when it is gone. */
export function remove(client: Client, sessionId: string, courier: Courier): Promise<void> {
  return patiently(courier, async (options) => {
    await client.deleteSession({ sessionId }, options);
  });
}

/** How long to wait, in milliseconds, before something is tried again, after so many tries before the one that failed. */
export function pauseMs(tries: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** tries, LAST_PAUSE_MS) * (0.8 + 0.4 * Math.random());
}

/** Calls until the server answers. */
async function patiently<T>(courier: Courier, call: (options: { signal: AbortSignal }) => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      const result = await call({ signal: courier.signal });
      courier.reached();
      return result;
    } catch (error) {
      if (!isAway(error) || courier.signal.aborted) {
        throw error;
      }
      courier.away(error);
    }
    await sleep(pauseMs(tries), undefined, { signal: courier.signal });
    courier.stillWanted();
  }
}
