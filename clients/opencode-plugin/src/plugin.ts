import type { Plugin, PluginInput, PluginOptions } from "@opencode-ai/plugin";
import { Client } from "@turnwire/client";
import { Logger } from "./logger.js";
import type { Tree } from "./mapping/index.js";
import { treeOf } from "./mapping/values.js";
import { Stale } from "./mirror/changes.js";
import { Mirror } from "./mirror/mirror.js";
import type { SessionRecord } from "./mirror/session.js";

const SERVER = "127.0.0.1:7411";
/** How many sessions, of those that were changed last, are compared at the start. */
const RECENT = 10;
/** How many characters of changes are kept for each session while the server is away. */
const QUEUE_LIMIT = 4 * 1024 * 1024;

/** What the plugin can be told in opencode's configuration. */
export interface MirrorOptions {
  /** The server: `HOST:PORT`, `unix:PATH` or a URL. Default: the environment's TURNWIRE_SERVER, else 127.0.0.1:7411. */
  server?: string;
  /** How many sessions of the project, of those that were changed last, are compared at the start. Default: 10. */
  recent?: number;
  /** How many characters of changes are kept for each session while the server is away. Default: 4 Mi. */
  queueLimit?: number;
  /** Whether a session that is deleted in opencode is deleted in Turnwire, for good. Default: no, it stays. */
  removeGone?: boolean;
}

/** The plugin, as opencode calls it. Whatever goes wrong in it goes to opencode's log and disturbs nothing. */
export const server: Plugin = async (input, options) => {
  const logger = new Logger(input.client);
  const { target, recent, queueLimit, removeGone } = settingsOf(options);
  let client: Client;
  try {
    client = Client.connect(target);
  } catch (error) {
    logger.log("server", "error", `nothing is mirrored: ${error instanceof Error ? error.message : error}`);
    return {};
  }
  const mirror = new Mirror({
    client,
    queueLimit,
    removeGone,
    read: (sessionId) => read(input, sessionId),
    project: ({ projectID }) => (projectID === input.project.id ? projectOf(input) : undefined),
    log: (kind, level, message) => logger.log(kind, level, message),
  });
  // Not awaited: opencode starts at once.
  recentSessions(input, recent)
    .then((ids) => mirror.catchUp(ids))
    .catch((error) => logger.log("recent", "warn", `the last sessions were not compared: ${error}`));
  return {
    event: async ({ event }) => mirror.take(event),
    dispose: async () => {
      await mirror.end();
      client.close();
    },
  };
};

function settingsOf(options: PluginOptions = {}) {
  const { server, recent, queueLimit, removeGone } = options as MirrorOptions;
  return {
    target: server || process.env.TURNWIRE_SERVER || SERVER,
    recent: recent ?? RECENT,
    queueLimit: queueLimit ?? QUEUE_LIMIT,
    removeGone: removeGone ?? false,
  };
}

async function read({ client }: PluginInput, id: string): Promise<SessionRecord | undefined> {
  const [session, messages, todo] = await Promise.all([
    client.session.get({ path: { id } }),
    client.session.messages({ path: { id } }),
    client.session.todo({ path: { id } }),
  ]);
  if (session.response.status === 404) {
    return undefined;
  }
  if (session.data === undefined || messages.data === undefined) {
    throw new Stale("opencode did not answer");
  }
  const record = { info: session.data, messages: messages.data, todo: todo.data };
  return JSON.parse(JSON.stringify(record)) as SessionRecord;
}

async function recentSessions({ client }: PluginInput, count: number): Promise<string[]> {
  if (count === 0) {
    return [];
  }
  const { data = [] } = await client.session.list();
  const last = data.toSorted((a, b) => b.time.updated - a.time.updated).slice(0, count);
  return last.map(({ id }) => id);
}

/** The project as Turnwire's importer keeps it beside a session. */
function projectOf({ project }: PluginInput): string {
  const { id, worktree, vcs, name } = treeOf(project as unknown as Tree);
  const known = Object.entries({ id, worktree, vcs, name }).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  return JSON.stringify(Object.fromEntries(known));
}
