import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The repository's root; this file runs from clients/typescript/build/test. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
export const PYTHON = join(ROOT, ".venv/bin/python");

/** A folder of its own for a test; `remove` takes it away. */
export function folder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "turnwire-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
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

/** Starts a server on the file `db`; `where` are options of `turnwire serve`, by default any free port of 127.0.0.1. */
export async function serve(db: string, where: string[] = ["--port", "0"]): Promise<Server> {
  const args = ["-m", "turnwire", "--db", db, "serve", ...where, "--log-format", "none", "--grace", "0"];
  const child = spawn(PYTHON, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  for await (const line of createInterface(child.stdout)) {
    const address = line.replace("listening on ", "");
    const server = {
      address,
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

/** Runs a Python program with the package at hand: what it is given on standard input, and what it writes to its output. */
export async function python(program: string, input: Uint8Array, ...args: string[]): Promise<Buffer> {
  const child = spawn(PYTHON, ["-c", program, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  child.stdin.end(input);
  const pieces: Buffer[] = [];
  for await (const piece of child.stdout) {
    pieces.push(piece as Buffer);
  }
  const [code] = await ended;
  if (code !== 0) {
    throw new Error(`python ended with ${code}`);
  }
  return Buffer.concat(pieces);
}
