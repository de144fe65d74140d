import type { PluginInput } from "@opencode-ai/plugin";

/** Writes to opencode's log, once for each kind of message. */
export class Logger {
  readonly #client: PluginInput["client"];
  readonly #told = new Set<string>();

  constructor(client: PluginInput["client"]) {
    this.#client = client;
  }

  log(kind: string, level: "info" | "warn" | "error", message: string): void {
    if (this.#told.has(kind)) {
      return;
    }
    this.#told.add(kind);
    // A log that cannot be written is nothing that anyone could be told of.
    this.#client.app.log({ body: { service: "turnwire", level, message } }).catch(() => undefined);
  }
}
