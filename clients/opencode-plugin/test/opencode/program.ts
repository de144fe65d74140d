import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { createOpencodeClient, type OpencodeClient } from "@opencode-ai/sdk";
import { type Ended, PACKAGE, run } from "../support.js";

const PROGRAM = join(PACKAGE, "node_modules/.bin/opencode");
/** What the hook adds to every prompt. */
export const ADDED = "Added by the hook.";

/** The real opencode, with a home and a project of its own below a folder. */
export class Opencode {
  readonly project: string;
  readonly #home: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #servers = new Set<OpencodeServer>();

  constructor(folder: string, turnwire: string, modelUrl: string) {
    this.#home = join(folder, "home");
    this.project = join(folder, "project");
    const xdg = (name: string) => join(this.#home, name);
    this.#env = {
      PATH: process.env.PATH,
      HOME: this.#home,
      XDG_DATA_HOME: xdg("data"),
      XDG_CONFIG_HOME: xdg("config"),
      XDG_CACHE_HOME: xdg("cache"),
      XDG_STATE_HOME: xdg("state"),
      TURNWIRE_SERVER: turnwire,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(configuration(modelUrl)),
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
    };
    mkdirSync(this.project, { recursive: true });
    mkdirSync(join(xdg("config"), "opencode/plugin"), { recursive: true });
    writeFileSync(join(xdg("config"), "opencode/plugin/hook.js"), hook());
  }

  /** The file of opencode's database. */
  get database(): string {
    return join(this.#home, "data/opencode/opencode.db");
  }

  /** Runs `opencode` to its end, in the project; `pure`: without plugins. */
  run(args: string[], pure = false): Promise<Ended> {
    return run(PROGRAM, pure ? [...args, "--pure"] : args, this.#env, this.project);
  }

  /** Starts `opencode serve`. */
  async serve(): Promise<OpencodeServer> {
    // In a process group of its own, since the program in npm's folder starts the real one.
    const child = spawn(PROGRAM, ["serve", "--port", "0"], {
      cwd: this.project,
      env: this.#env,
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const server = new OpencodeServer(child, () => this.#servers.delete(server));
    this.#servers.add(server);
    for await (const line of createInterface(child.stdout)) {
      const baseUrl = /listening on (\S+)/.exec(line)?.[1];
      if (baseUrl !== undefined) {
        child.stdout.resume();
        server.connect(baseUrl, this.project);
        return server;
      }
    }
    throw new Error(`opencode serve ended with ${child.exitCode} before it listened`);
  }

  /** Ends every server that still runs. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#servers].map((server) => server.end("SIGKILL")));
  }
}

/** A running `opencode serve`, and its API. */
export class OpencodeServer {
  readonly #child: ChildProcess;
  readonly #ended: () => void;
  #client: OpencodeClient | undefined;

  constructor(child: ChildProcess, ended: () => void) {
    this.#child = child;
    this.#ended = ended;
  }

  connect(baseUrl: string, directory: string): void {
    this.#client = createOpencodeClient({ baseUrl, directory });
  }

  get client(): OpencodeClient {
    if (this.#client === undefined) {
      throw new Error("opencode does not listen yet");
    }
    return this.#client;
  }

  async create(): Promise<string> {
    const { data } = await this.client.session.create({ body: {} });
    return data?.id ?? "";
  }

  /** Asks, and returns when the answer is there. */
  async ask(id: string, text: string): Promise<void> {
    await this.client.session.prompt({ path: { id }, body: { parts: [{ type: "text", text }] } });
  }

  /** The session as `opencode export` would write it now. */
  async tree(id: string): Promise<unknown> {
    const [info, messages] = await Promise.all([
      this.client.session.get({ path: { id } }),
      this.client.session.messages({ path: { id } }),
    ]);
    return { info: info.data, messages: messages.data };
  }

  /** Sends a signal to the process group, and returns when the process has ended. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const ended = once(this.#child, "exit");
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      process.kill(-(this.#child.pid ?? 0), signal);
      await ended;
    }
    this.#ended();
  }
}

function configuration(baseURL: string) {
  const model = { name: "Fake", tool_call: true, limit: { context: 100_000, output: 4_000 } };
  return {
    autoupdate: false,
    share: "disabled",
    plugin: [[pathToFileURL(PACKAGE).href, { recent: 20, removeGone: true }]],
    provider: {
      fake: {
        npm: "@ai-sdk/openai-compatible",
        name: "Fake",
        options: { baseURL, apiKey: "none" },
        models: { "fake-model": model },
      },
    },
    model: "fake/fake-model",
    small_model: "fake/fake-model",
  };
}

function hook(): string {
  const prompt = pathToFileURL(join(PACKAGE, "dist/prompt/index.js")).href;
  return `import { definePromptHook, textPart } from ${JSON.stringify(prompt)};

export const Added = definePromptHook((editor) => {
  editor.appendTo("user", textPart(${JSON.stringify(ADDED)}, { synthetic: true }));
});
`;
}
