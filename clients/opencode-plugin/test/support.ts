import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The repository's root; this file runs from clients/opencode-plugin/build/test. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
export const PACKAGE = join(ROOT, "clients/opencode-plugin");
export const DATA = join(PACKAGE, "test/data");
const PYTHON = join(ROOT, ".venv/bin/python");

/** A folder of its own for a test; `remove` takes it away. */
export function folder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "turnwire-plugin-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }) };
}

/** What a program wrote, and how it ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, by its own id; standard input is empty. */
export async function run(
  program: string,
  args: string[],
  env: NodeJS.ProcessEnv = process.env,
  cwd?: string,
): Promise<Ended> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env, cwd });
  const texts = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    texts.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    texts.stderr += text;
  });
  const [code] = await once(child, "close");
  return { code, ...texts };
}

/** Runs a Python program with the package at hand, and returns what it printed. */
export async function python(args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(PYTHON, args);
  if (code !== 0) {
    throw new Error(`python ended with ${code}: ${stderr}`);
  }
  return stdout;
}

/** A real Turnwire server, which `turnwire serve` runs; it ends by SIGTERM. */
export interface Server {
  readonly address: string;
  stop(): Promise<void>;
}

const running = new Set<Server>();

/** Stops every server that still runs: whatever failed, none outlives the tests. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((server) => server.stop()));
}

/** Starts a server on the file `db`, on a port of 127.0.0.1 (0: any free one); `more`: further options. */
export async function serve(db: string, port = 0, more: string[] = []): Promise<Server> {
  const options = ["--port", String(port), "--log-format", "none", "--grace", "0", ...more];
  const args = ["-m", "turnwire", "--db", db, "serve", ...options];
  const child = spawn(PYTHON, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  for await (const line of createInterface(child.stdout)) {
    const server = {
      address: line.replace("listening on ", ""),
      stop: async () => {
        child.kill("SIGTERM");
        await ended;
        running.delete(server);
      },
    };
    running.add(server);
    return server;
  }
  throw new Error(`turnwire serve ended with ${child.exitCode} before it listened`);
}
