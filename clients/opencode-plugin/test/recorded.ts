import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Tree } from "@turnwire/opencode-plugin/mapping";
import type { BusEvent, SessionRecord } from "#mirror";
import { DATA } from "./support.js";

/** The events of real sessions of opencode 1.18.33, in the order in which its bus gave them. */
export const EVENTS: readonly BusEvent[] = gunzipSync(readFileSync(join(DATA, "events.jsonl.gz")))
  .toString()
  .split("\n")
  .map((line) => JSON.parse(line));

/** What `opencode export` wrote of these sessions, by their ids. */
export const EXPORTS: ReadonlyMap<string, { path: string; tree: { info: Tree; messages: unknown[] } }> = new Map(
  readdirSync(join(DATA, "exports")).map((name) => {
    const path = join(DATA, "exports", name);
    const tree = JSON.parse(readFileSync(path, "utf8"));
    return [tree.info.id, { path, tree }];
  }),
);

/** What opencode would answer at some moment: its sessions as the events so far have made them. */
export class Recorded {
  readonly #sessions = new Map<
    string,
    { info: Tree; messages: Map<string, { info: Tree; parts: Map<string, Tree> }>; todo: Tree[] }
  >();

  apply({ type, properties }: BusEvent): void {
    const { sessionID, info, part } = properties as { sessionID: string; info?: Tree; part?: Tree };
    if (type === "session.deleted") {
      this.#sessions.delete(String(info?.id));
      return;
    }
    if (info !== undefined && type.startsWith("session.")) {
      const there = this.#sessions.get(sessionID);
      this.#sessions.set(sessionID, { info, messages: there?.messages ?? new Map(), todo: there?.todo ?? [] });
    }
    const session = this.#sessions.get(sessionID);
    if (type === "todo.updated" && session !== undefined) {
      session.todo = (properties as { todos: Tree[] }).todos;
    }
    const messages = this.#sessions.get(sessionID)?.messages;
    if (info !== undefined && type === "message.updated") {
      const there = messages?.get(String(info.id));
      messages?.set(String(info.id), { info, parts: there?.parts ?? new Map() });
    } else if (part !== undefined) {
      messages?.get(String(part.messageID))?.parts.set(String(part.id), part);
    }
  }

  async read(sessionId: string): Promise<SessionRecord | undefined> {
    const found = this.#sessions.get(sessionId);
    return (
      found && {
        info: found.info,
        todo: found.todo,
        messages: [...found.messages.values()].map(({ info, parts }) => ({ info, parts: [...parts.values()] })),
      }
    );
  }
}
