import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client } from "@turnwire/client";
import type { Entry } from "@turnwire/client/v1";
import { type BusEvent, Mirror } from "#mirror";
import { EVENTS, EXPORTS, Recorded } from "./recorded.js";
import { folder, python, type Server, serve, stopAll } from "./support.js";

const IDS = [...EXPORTS.keys()];
const place = folder();

after(async () => {
  await stopAll();
  place.remove();
});

/** opencode with the plugin's mirror, fed with recorded events. */
class Run {
  readonly told: string[] = [];
  readonly #client: Client;
  readonly mirror: Mirror;

  constructor(
    readonly opencode: Recorded,
    server: string,
    queueLimit = 4 * 1024 * 1024,
    removeGone = false,
  ) {
    this.#client = Client.connect(server);
    this.mirror = new Mirror({
      client: this.#client,
      queueLimit,
      removeGone,
      read: (id) => opencode.read(id),
      project: () => undefined,
      log: (_, __, message) => this.told.push(message),
    });
  }

  take(events: readonly BusEvent[]): void {
    for (const event of events) {
      this.opencode.apply(event);
      this.mirror.take(event);
    }
  }

  async end(): Promise<void> {
    await this.mirror.end();
    this.#client.close();
  }
}

/** opencode that tells of sessions before it can read them, and fails in between: five times in a row. */
class Failing extends Recorded {
  readonly #reads = new Map<string, number>();

  override async read(sessionId: string) {
    const reads = this.#reads.get(sessionId) ?? 0;
    this.#reads.set(sessionId, reads + 1);
    if (reads < 5 && reads % 2 === 0) {
      return undefined;
    }
    if (reads < 5) {
      throw new Error("a connection that broke");
    }
    return super.read(sessionId);
  }
}

async function assertEqualExports({ address }: Server, ids = IDS): Promise<void> {
  const out = folder();
  await python([
    ...["-m", "turnwire", "export", "--format", "opencode"],
    ...ids,
    "--out",
    out.path,
    "--server",
    address,
  ]);
  const files = readdirSync(out.path).map((name) => JSON.parse(readFileSync(join(out.path, name), "utf8")));
  out.remove();
  const exported = new Map(files.map((tree) => [tree.info.id, tree]));
  for (const id of ids) {
    assert.deepEqual(exported.get(id), EXPORTS.get(id)?.tree, id);
  }
}

async function entriesOf({ address }: Server, sessionId: string): Promise<Entry[]> {
  const client = Client.connect(address);
  const entries: Entry[] = [];
  for await (const entry of client.readEntries({ sessionId })) {
    entries.push(entry);
  }
  client.close();
  return entries;
}

test("recorded events are mirrored to what opencode exports, and its import finds nothing new", async () => {
  const server = await serve(join(place.path, "plain.db"));
  const run = new Run(new Recorded(), server.address);
  run.take(EVENTS);
  await run.end();
  assert.deepEqual(run.told, []);
  await assertEqualExports(server);
  const report = await python([
    ...["-m", "turnwire", "import", "opencode", ...[...EXPORTS.values()].map(({ path }) => path)],
    ...["--server", server.address, "--json"],
  ]);
  const { counts } = JSON.parse(report.trim().split("\n").at(-1) ?? "");
  assert.equal(counts.unchanged.session, IDS.length);
  assert.deepEqual([counts.imported, counts.updated, counts.removed, counts.refused], [{}, {}, {}, {}]);
});

test("text that streams is appended as deltas, and each text is put twice", async () => {
  const server = await serve(join(place.path, "stream.db"));
  const run = new Run(new Recorded(), server.address);
  const id = EXPORTS.keys().next().value ?? "";
  // One by one, so that each is appended by itself.
  for (const event of EVENTS.filter(({ properties }) => (properties as { sessionID: string }).sessionID === id)) {
    run.take([event]);
    await run.mirror.settled();
  }
  await run.end();
  const entries = await entriesOf(server, id);
  const deltas = entries.flatMap(({ payload }) => (payload.case === "delta" ? [payload.value] : []));
  assert.ok(deltas.length > 0);
  for (const { partId } of deltas) {
    const puts = entries.filter(({ payload }) => payload.case === "part" && payload.value.part?.id === partId);
    assert.equal(puts.length, 2, partId);
  }
  await assertEqualExports(server, [id]);
});

for (const queueLimit of [4 * 1024 * 1024, 500]) {
  test(`a server that is away in the middle gets everything later, with a queue of ${queueLimit}`, async () => {
    const db = join(place.path, `away-${queueLimit}.db`);
    let server = await serve(db);
    const port = Number(server.address.split(":").at(-1));
    const run = new Run(new Recorded(), server.address, queueLimit);
    const half = EVENTS.length / 2;
    run.take(EVENTS.slice(0, half));
    await run.mirror.settled();
    await server.stop();
    run.take(EVENTS.slice(half));
    server = await serve(db, port);
    await run.mirror.settled();
    await assertEqualExports(server);
    await run.end();
  });
}

test("what opencode cannot read yet, or fails to, is stored once it can", async () => {
  const server = await serve(join(place.path, "failing.db"));
  const run = new Run(new Failing(), server.address);
  run.take(EVENTS);
  await run.mirror.settled();
  await run.end();
  assert.deepEqual(run.told, []);
  await assertEqualExports(server);
});

test("what happened while no mirror ran is caught up, once", async () => {
  const server = await serve(join(place.path, "killed.db"));
  const opencode = new Recorded();
  const first = new Run(opencode, server.address);
  const most = Math.floor(EVENTS.length * 0.7);
  first.take(EVENTS.slice(0, most));
  await first.end();
  for (const event of EVENTS.slice(most)) {
    opencode.apply(event);
  }
  const second = new Run(opencode, server.address);
  await second.mirror.catchUp(IDS);
  await second.end();
  await assertEqualExports(server);
  const before = await Promise.all(IDS.map((id) => entriesOf(server, id)));
  const third = new Run(opencode, server.address);
  await third.mirror.catchUp(IDS);
  await third.end();
  const behind = await Promise.all(IDS.map((id) => entriesOf(server, id)));
  assert.deepEqual(
    behind.map((entries) => entries.length),
    before.map((entries) => entries.length),
  );
});

test("a session that did not come from opencode is left alone", async () => {
  const server = await serve(join(place.path, "foreign.db"));
  const id = IDS[0] ?? "";
  const client = Client.connect(server.address);
  await client.createSession({ sessionId: id, properties: { title: "Mine" } });
  const run = new Run(new Recorded(), server.address);
  run.take(EVENTS);
  await run.end();
  assert.equal((await client.getSession(id)).properties?.title, "Mine");
  assert.equal(run.told.length, 1);
  assert.match(run.told[0] ?? "", /did not come from opencode/);
  client.close();
});

test("an object that the server does not take is left out, and the others are stored", async () => {
  const server = await serve(join(place.path, "small.db"), 0, ["--part-bytes", "1000"]);
  const run = new Run(new Recorded(), server.address);
  run.take(EVENTS);
  await run.mirror.settled();
  await run.end();
  assert.equal(run.told.length > 0, true);
  for (const told of run.told) {
    assert.match(told, /^part\/prt_\w+ of ses_\w+ is not mirrored, the server refuses it: PART_TOO_LARGE$/);
  }
  const refused = new Set(run.told.map((told) => /prt_\w+/.exec(told)?.[0]));
  const client = Client.connect(server.address);
  for (const [id, { tree }] of EXPORTS) {
    const wanted = (tree.messages as { parts: { id: string }[] }[]).flatMap(({ parts }) =>
      parts.map((part) => part.id),
    );
    const history = await client.history({ sessionId: id });
    const stored = history.messages.flatMap(({ parts }) => parts.map((part) => part.id));
    assert.deepEqual(
      stored,
      wanted.filter((part) => !refused.has(part)),
    );
  }
  client.close();
});

test("two writers of one session come to the same end", async () => {
  const server = await serve(join(place.path, "two.db"));
  const runs = [new Run(new Recorded(), server.address), new Run(new Recorded(), server.address)];
  for (let from = 0; from < EVENTS.length; from += 50) {
    for (const run of runs) {
      run.take(EVENTS.slice(from, from + 50));
    }
    await runs[0]?.mirror.settled();
  }
  await Promise.all(runs.map((run) => run.mirror.settled()));
  await Promise.all(runs.map((run) => run.end()));
  await assertEqualExports(server);
});

const todo = (id: string, ...contents: string[]): BusEvent => ({
  type: "todo.updated",
  properties: {
    sessionID: id,
    todos: contents.map((content) => ({ priority: "high", status: "pending", content })),
  },
});

test("a todo list is kept as the importer keeps it, as it comes and when it is caught up, and ends", async () => {
  const server = await serve(join(place.path, "todo.db"));
  const client = Client.connect(server.address);
  const beside = async (id: string) => {
    const { properties } = await client.getSession(id);
    return JSON.parse(properties?.extraJson || "{}")["opencode/beside"];
  };
  const kept = (content: string) => JSON.stringify({ content, status: "pending", priority: "high" });
  const opencode = new Recorded();
  const first = new Run(opencode, server.address);
  first.take(EVENTS);
  await first.mirror.settled();
  const [one = "", other = ""] = IDS;
  first.take([todo(one, "a", "b")]);
  await first.mirror.settled();
  const { properties } = await client.getSession(one);
  assert.ok(properties?.extraJson.includes(`"opencode/beside":{"todo":[${kept("a")},${kept("b")}]}`));
  first.take([todo(one), todo(other, "x"), todo(other, "y")]);
  await first.end();
  assert.deepEqual([await beside(one), (await beside(other)).todo.length], [undefined, 1]);
  opencode.apply(todo(one, "c"));
  const second = new Run(opencode, server.address);
  await second.mirror.catchUp([one, other]);
  await second.end();
  assert.deepEqual(
    [await beside(one), await beside(other)],
    [{ todo: [JSON.parse(kept("c"))] }, { todo: [JSON.parse(kept("y"))] }],
  );
  await assertEqualExports(server);
  client.close();
});

for (const removeGone of [false, true]) {
  test(`a session that is deleted in opencode ${removeGone ? "is deleted" : "stays"} in Turnwire`, async () => {
    const db = join(place.path, `gone-${removeGone}.db`);
    let server = await serve(db);
    const run = new Run(new Recorded(), server.address, undefined, removeGone);
    const [one = "", other = "", third = ""] = IDS;
    const client = Client.connect(server.address);
    await client.createSession({ sessionId: third, properties: { title: "Mine" } });
    client.close();
    run.take(EVENTS);
    const gone = (id: string): BusEvent => ({ type: "session.deleted", properties: { sessionID: id, info: { id } } });
    run.take([gone(one)]); // in the middle of its first append
    await run.mirror.settled();
    const port = Number(server.address.split(":").at(-1));
    await server.stop();
    run.take([gone(other), gone(third), todo(other, "too late")]);
    server = await serve(db, port);
    await run.mirror.settled();
    await run.end();
    const again = Client.connect(server.address);
    const there: string[] = [];
    for await (const { id } of again.listSessions()) {
      there.push(id);
    }
    again.close();
    assert.equal(there.includes(third), true);
    assert.equal(there.includes(other), !removeGone);
    assert.equal(removeGone && there.includes(one), false);
    assert.deepEqual(
      run.told.filter((text) => !/did not come from opencode|cannot be reached/.test(text)),
      [],
    );
  });
}
