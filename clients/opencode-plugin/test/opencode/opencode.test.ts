// The plugin in the real opencode, with a fake model and a real Turnwire server.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Reason, TurnwireError } from "@turnwire/client";
import { folder, python, type Server, serve, stopAll } from "../support.js";
import { FakeModel, TODOS, textOf } from "./model.js";
import { ADDED, Opencode, type OpencodeServer } from "./program.js";

/**
 * Milliseconds until which something must have come to be. A call on a connection that died without a word ends after its
 * time limit of 60 seconds, or by the client's pings after 80; only then is it tried again.
 */
const PATIENCE_MS = 120_000;

const place = folder();
const db = join(place.path, "turnwire.db");
const note = join(place.path, "project", "note.txt");
let turnwire: Server;
let model: FakeModel;
let opencode: Opencode;
let program: OpencodeServer;

before(async () => {
  turnwire = await serve(db);
  model = await FakeModel.start(note);
  opencode = new Opencode(place.path, turnwire.address, model.url);
  writeFileSync(note, "The note.\n");
  program = await opencode.serve();
});

after(async () => {
  await opencode?.stopAll();
  model?.stop();
  await stopAll();
  place.remove();
});

/** What `turnwire export --format opencode` writes of a session. */
async function exported(id: string): Promise<unknown> {
  const args = ["export", "--format", "opencode", id, "--server", turnwire.address];
  return JSON.parse(await python(["-m", "turnwire", ...args]));
}

/** Waits until Turnwire has of a session what opencode has. */
async function assertMirrored(id: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      assert.deepEqual(await exported(id), await program.tree(id));
      return;
    } catch (error) {
      if (performance.now() >= deadline) {
        throw error;
      }
    }
    await sleep(200);
  }
}

const sessions: string[] = [];

async function create(): Promise<string> {
  const id = await program.create();
  sessions.push(id);
  return id;
}

test("an answer is mirrored, and the model got what the hook added, which is not in the history", async () => {
  const id = await create();
  await program.ask(id, "Say hello.");
  await assertMirrored(id);
  const asked = model.requests.at(-1)?.messages.findLast(({ role }) => role === "user");
  assert.ok(textOf(asked).includes("Say hello."));
  assert.ok(textOf(asked).includes(ADDED));
  const client = Client.connect(turnwire.address);
  const history = await client.history({ sessionId: id });
  client.close();
  const texts = history.messages.flatMap(({ parts }) =>
    parts.flatMap(({ kind }) => (kind.case === "text" ? [kind.value.text] : [])),
  );
  assert.deepEqual(texts, ["Say hello.", "Hello wörld, 😀."]);
});

test("a tool's call and result are mirrored, and text that streams is appended piece by piece", async () => {
  const id = await create();
  await program.ask(id, "Read the note. [[tool]]");
  await assertMirrored(id);
  assert.ok(JSON.stringify(model.requests.at(-1)).includes("The note."));
  const begun = model.begun();
  const answer = program.ask(id, "Take your time. [[hold]]");
  await begun;
  const client = Client.connect(turnwire.address);
  for await (const entry of client.tail({ sessionId: id, patienceMs: 0 })) {
    if (entry.payload.case === "delta" && entry.payload.value.target.value === "First half, ") {
      break; // while the model still speaks
    }
  }
  client.close();
  model.release();
  await answer;
  await assertMirrored(id);
});

test("a todo list is mirrored beside the session", async () => {
  const id = await create();
  await program.ask(id, "Plan. [[todo]]");
  await assertMirrored(id);
  const client = Client.connect(turnwire.address);
  const { properties } = await client.getSession(id);
  client.close();
  const { todo } = JSON.parse(properties?.extraJson || "{}")["opencode/beside"];
  const told = (items: { content: string; status: string }[]) => items.map(({ content, status }) => [content, status]);
  assert.deepEqual(told(todo), told(TODOS));
});

test("a session that is deleted in opencode is deleted in Turnwire, if the plugin is told so", async () => {
  const id = await program.create();
  await program.ask(id, "Say hello.");
  await assertMirrored(id);
  await program.client.session.delete({ path: { id } });
  const client = Client.connect(turnwire.address);
  const deadline = performance.now() + PATIENCE_MS;
  for (let reason: Reason | undefined; reason !== Reason.SESSION_DELETED; await sleep(50)) {
    assert.ok(performance.now() < deadline, "it is still there");
    reason = await client.getSession(id).then(
      () => undefined,
      (error: unknown) => (error instanceof TurnwireError ? error.reason : undefined),
    );
  }
  client.close();
});

test("a failure of the model is mirrored", async () => {
  const id = await create();
  await program.ask(id, "Fail. [[error]]");
  await assertMirrored(id);
});

test("a revert is mirrored, its end, and what is said in its place", async () => {
  const id = await create();
  await program.ask(id, "One.");
  await program.ask(id, "Two.");
  const { data = [] } = await program.client.session.messages({ path: { id } });
  const messageID = data.at(-2)?.info.id ?? "";
  await program.client.session.revert({ path: { id }, body: { messageID } });
  await assertMirrored(id);
  await program.client.session.unrevert({ path: { id } });
  await assertMirrored(id);
  await program.client.session.revert({ path: { id }, body: { messageID } });
  await program.ask(id, "Three.");
  await assertMirrored(id);
});

test("a server that goes away in the middle of an answer gets everything when it is back", async () => {
  const id = await create();
  const begun = model.begun();
  const answer = program.ask(id, "Take your time. [[hold]]");
  await begun;
  const port = Number(turnwire.address.split(":").at(-1));
  await turnwire.stop();
  model.release();
  await answer;
  await program.ask(id, "Is anyone there?");
  const other = await create();
  await program.ask(other, "And here?");
  turnwire = await serve(db, port);
  await assertMirrored(id);
  await assertMirrored(other);
});

test("what opencode had when it was killed is caught up at its next start", async () => {
  const id = await create();
  await program.ask(id, "One.");
  const begun = model.begun();
  program.ask(id, "Take your time. [[hold]]").catch(() => undefined);
  await begun;
  await program.end("SIGKILL");
  model.release();
  // Turnwire is away for this one: only the comparison at the start can bring what opencode does now.
  const port = Number(turnwire.address.split(":").at(-1));
  await turnwire.stop();
  const alone = await opencode.run(["run", "--session", id, "And then?"]);
  assert.equal(alone.code, 0, alone.stderr);
  turnwire = await serve(db, port);
  program = await opencode.serve();
  await program.client.session.list(); // which loads the project, and with it the plugin
  await assertMirrored(id);
});

test("opencode that ends by itself waits until all is stored", async () => {
  const ended = await opencode.run(["run", "Say hello, and go."]);
  assert.equal(ended.code, 0, ended.stderr);
  const { data = [] } = await program.client.session.list();
  const id = data.map((session) => session.id).find((each) => !sessions.includes(each)) ?? "";
  sessions.push(id);
  await assertMirrored(id);
});

test("the exports of all are those that opencode writes, and its database has nothing new for an import", async () => {
  await program.end("SIGTERM");
  for (const id of sessions) {
    const { code, stdout, stderr } = await opencode.run(["export", id], true);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await exported(id), JSON.parse(stdout), id);
  }
  const args = ["import", "opencode", opencode.database, "--server", turnwire.address, "--json"];
  const lines = (await python(["-m", "turnwire", ...args])).trim().split("\n");
  const { counts } = JSON.parse(lines.at(-1) ?? "");
  assert.equal(counts.unchanged.session, sessions.length, lines.join("\n"));
  await python(["-m", "turnwire", "verify", "--all", "--server", turnwire.address]);
});
