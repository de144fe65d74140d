import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { Client, entry, fold, PromptEditor, Reason, TurnwireError, textPart } from "@turnwire/client";
import { type Entry, EntrySchema, type PromptPart, SessionService } from "@turnwire/client/v1";
import { folder, ROOT, type Server, serve, stopAll } from "./server.js";
import { MODEL, turn } from "./session.js";

const files = folder();
let server: Server;
let tw: Client;

before(async () => {
  server = await serve(join(files.path, "sessions.db"));
  tw = Client.connect(server.address);
});

after(async () => {
  tw.close();
  await stopAll();
  files.remove();
});

/** The TurnwireError that a promise rejects with. */
async function refused(promise: Promise<unknown>): Promise<TurnwireError> {
  const error = await promise.then(
    () => assert.fail("it was not refused"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof TurnwireError, String(error));
  return error;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) {
    found.push(item);
  }
  return found;
}

function text(part: PromptPart | undefined): string | undefined {
  return part?.kind.case === "text" ? part.kind.value.text : undefined;
}

describe("sessions", () => {
  test("one is created, changed, forked, listed and deleted", async () => {
    const made = await tw.createSession({ properties: { title: "One", directory: "/listed" } });
    assert.match(made.id, /^ses_/);
    const changed = await tw.updateSession({
      sessionId: made.id,
      properties: { title: "Two" },
      updateMask: { paths: ["title"] },
      expectedRevision: 1n,
    });
    assert.equal(changed.properties?.title, "Two");
    assert.equal(changed.properties?.directory, "/listed");
    const fork = await tw.forkSession({ sessionId: made.id, newSessionId: "ses_fork", title: "Three" });
    assert.equal(fork.forkedFrom?.sessionId, made.id);
    assert.deepEqual(fork.forkedFrom?.digest, changed.head?.digest);
    const listed = await collect(tw.listSessions({ pageSize: 1, filter: { directory: "/listed" } }));
    assert.deepEqual(listed.map(({ id }) => id).sort(), [made.id, "ses_fork"].sort());
    assert.deepEqual(await tw.deleteSession({ sessionId: "ses_fork" }), ["ses_fork"]);
    const error = await refused(tw.getSession("ses_fork"));
    assert.equal(error.reason, Reason.SESSION_DELETED);
    assert.equal(error.status, "NOT_FOUND");
    assert.equal(error.metadata.session_id, "ses_fork");
  });

  test("one without an id is made once, though its reply is lost", async () => {
    // A way to the server that breaks off the first time that anything comes back for a request.
    let lost = false;
    const { hostname, port } = new URL(`http://${server.address}`);
    const way = createServer((near) => {
      const far = connect(Number(port), hostname);
      let sent = 0;
      near.on("error", () => far.destroy()).on("close", () => far.destroy());
      far.on("error", () => near.destroy()).on("close", () => near.destroy());
      near.on("data", (bytes) => {
        sent += bytes.includes("lost reply") ? 1 : 0;
        far.write(bytes);
      });
      far.on("data", async (bytes) => {
        if (sent > 0 && !lost && (await made()).length > 0) {
          lost = true;
          near.destroy();
        }
        near.write(bytes);
      });
    }).listen(0, "127.0.0.1");
    await once(way, "listening");
    const made = () => collect(tw.listSessions({ filter: { directory: "/lost" } }));
    const client = Client.connect(`127.0.0.1:${(way.address() as AddressInfo).port}`);
    const session = await client.createSession({ properties: { title: "lost reply", directory: "/lost" } });
    client.close();
    way.close();
    assert.ok(lost);
    assert.match(session.id, /^ses_[0-9A-Za-z]{20}$/);
    assert.deepEqual(
      (await made()).map(({ id }) => id),
      [session.id],
    );
  });

  test("the server tells what it is", async () => {
    const info = await tw.getServerInfo();
    assert.ok(info.protocols.includes("turnwire.v1"));
    assert.deepEqual(info.profiles.sort(), ["default", "opencode"]);
  });
});

describe("the log", () => {
  test("a streamed answer is replayed whole, at every revision as the fold has it", async () => {
    const sessionId = "ses_stream";
    await tw.append({ sessionId, create: { title: "Streamed" }, entries: turn() });
    let offset = 0n;
    for (const piece of ["Grüße, ", "🌍", "!"]) {
      await tw.append({ sessionId, entries: [entry.delta("prt_1x", offset, "text", piece)] });
      offset += BigInt(Buffer.byteLength(piece));
    }
    await tw.append({ sessionId, entries: [entry.user({ id: "msg_0", turnId: "trn_1" }, "msg_1u")] });
    await tw.append({ sessionId, entries: [entry.part("msg_0", { ...textPart("First"), id: "prt_0" })] });
    await tw.append({ sessionId, entries: [entry.revert({ messageId: "msg_1a", partId: "prt_1x" })] });
    await tw.append({ sessionId, entries: [entry.revertClear()] });
    await tw.append({ sessionId, entries: [entry.removal({ case: "partId", value: "prt_1t" })] });
    await tw.append({ sessionId, entries: [entry.summary({ messageId: "msg_1u", title: "A question" })] });
    await tw.append({ sessionId, entries: [entry.revert({ messageId: "msg_1u" })] });
    await tw.append({ sessionId, entries: turn(2) });
    const entries = await collect(tw.readEntries({ sessionId }));
    for (const { revision } of entries) {
      const replayed = await tw.history({ sessionId, revision, includeSummaries: true });
      const folded = fold(entries, revision);
      assert.deepEqual(replayed.messages, folded.messages, `revision ${revision}`);
      assert.deepEqual(replayed.summaries, folded.summaries);
      assert.equal(replayed.head.revision, folded.revision);
    }
    const { message, turn: its } = await tw.getMessage({ sessionId, messageId: "msg_2a" });
    assert.equal(message.parts.length, 2);
    assert.equal(its?.id, "trn_2");
    assert.equal(text((await tw.history({ sessionId, revision: 7n })).messages[1]?.parts[1]), "Grüße, 🌍!");
    assert.equal((await tw.verifySession(sessionId)).sound, true);
  });

  test("a conflict tells the revisions", async () => {
    const sessionId = "ses_conflict";
    await tw.append({ sessionId, create: {}, entries: turn() });
    const error = await refused(tw.append({ sessionId, entries: turn(2), expectedRevision: 1n }));
    assert.equal(error.reason, Reason.REVISION_CONFLICT);
    assert.equal(error.reasonName, "REVISION_CONFLICT");
    assert.equal(error.status, "ABORTED");
    assert.equal(error.path, "expected_revision");
    assert.deepEqual([error.conflict?.expected, error.conflict?.actual], [1n, 4n]);
  });

  test("broken rules are told with their paths", async () => {
    const entries = [entry.turn({ id: "no space", request: { agent: "", model: MODEL } })];
    const error = await refused(tw.append({ sessionId: "ses_rules", create: {}, entries }));
    assert.equal(error.reason, Reason.RULE_VIOLATION);
    assert.deepEqual(
      error.violations.map(({ path, rule }) => [path, rule]),
      [
        ["entries[0].turn.id", "string.pattern"],
        ["entries[0].turn.request.agent", "string.min_len"],
      ],
    );
    assert.equal(error.metadata.violations, "2");
  });

  test("a text that UTF-8 has no form for is refused and not mended", async () => {
    const entries = [entry.user({ turnId: "trn_1", parts: [textPart("half \ud83d")] })];
    const error = await refused(tw.append({ sessionId: "ses_text", entries }));
    assert.equal(error.reason, Reason.RULE_VIOLATION);
    assert.equal(error.path, "entries[0].user.user.parts[0].text.text");
    assert.equal(error.violations[0]?.rule, "turnwire.wire_format");
  });

  test("the same request id is answered once", async () => {
    const request = { sessionId: "ses_once", create: {}, entries: turn(), requestId: "r-1" };
    const first = await tw.append(request);
    assert.deepEqual(await tw.append(request), first);
    const error = await refused(tw.append({ ...request, entries: turn(2) }));
    assert.equal(error.reason, Reason.REQUEST_ID_REUSED);
  });

  test("a stream of appends goes on after a refusal", async () => {
    async function* requests() {
      yield { sessionId: "ses_many", create: {}, entries: turn() };
      yield { sessionId: "ses_none", entries: turn() };
      yield { sessionId: "ses_many", entries: turn(2), expectedRevision: 4n };
    }
    const [first, second, third] = await collect(tw.appendStream(requests()));
    assert.equal(first instanceof TurnwireError ? first : first?.head?.revision, 4n);
    assert.ok(second instanceof TurnwireError);
    assert.equal(second.reason, Reason.SESSION_NOT_FOUND);
    assert.equal(third instanceof TurnwireError ? third : third?.head?.revision, 7n);
  });

  test("a text that UTF-8 has no form for ends a stream of appends, after the outcomes before it", async () => {
    const sessionId = "ses_half_streamed";
    const stream = tw.appendStream(
      (async function* () {
        yield { sessionId, create: {}, entries: turn() };
        yield { sessionId, entries: [entry.delta("prt_1x", 0n, "text", "\ud83d")] };
        yield { sessionId, entries: [entry.delta("prt_1x", 0n, "text", "not sent")] };
      })(),
    );
    const first = await stream.next();
    assert.ok(first.value && !(first.value instanceof TurnwireError));
    const error = await refused(stream.next());
    assert.equal(error.reason, Reason.RULE_VIOLATION);
    assert.equal(error.metadata.rule, "turnwire.wire_format");
    assert.equal(error.path, "append.entries[0].delta.text");
    assert.equal((await tw.getSession(sessionId)).head?.revision, first.value.head?.revision);
  });

  test("a tail goes on live, over an end of the server", async () => {
    const own = folder();
    const db = join(own.path, "tail.db");
    const socket = join(own.path, "socket");
    let running = await serve(db, ["--socket", socket]);
    const client = Client.connect(`unix:${socket}`);
    const sessionId = "ses_tail";
    await client.append({ sessionId, create: {}, entries: turn() });
    const seen: bigint[] = [];
    for await (const { revision } of client.tail({ sessionId, afterRevision: 1n })) {
      seen.push(revision);
      if (revision === 4n) {
        await running.stop();
        running = await serve(db, ["--socket", socket]);
        await client.append({ sessionId, entries: turn(2) });
      }
      if (revision === 7n) {
        break;
      }
    }
    assert.deepEqual(seen, [2n, 3n, 4n, 5n, 6n, 7n]);
    let caughtUpAt: bigint | undefined;
    const onCaughtUp = (head: { revision: bigint }) => {
      caughtUpAt = head.revision;
    };
    assert.equal((await collect(client.tail({ sessionId, follow: false, onCaughtUp }))).length, 7);
    assert.equal(caughtUpAt, 7n);
    const beyond = client.tail({ sessionId, afterRevision: 99n });
    const error = await refused(beyond.next());
    assert.equal(error.reason, Reason.REVISION_OUT_OF_RANGE);
    assert.deepEqual([error.conflict?.expected, error.conflict?.actual], [99n, 7n]);
    client.close();
    await running.stop();
    own.remove();
  });

  test("a payload of a later schema is kept in its entry, and a fold says that it cannot go on", () => {
    const later = Buffer.from("0801ea12021a00", "hex"); // revision 1, field 301; then nothing known
    const read: Entry = fromBinary(EntrySchema, later);
    assert.throws(() => fold([read]), { reason: Reason.UNKNOWN_PAYLOAD, metadata: { revision: "1" } });
    assert.equal(fold([{ ...read, ignorable: true }]).revision, 1n);
  });
});

describe("validation", () => {
  test("every method of the service is there", () => {
    for (const { localName } of SessionService.methods) {
      assert.equal(typeof tw[localName as keyof Client], "function", localName);
    }
  });

  test("a session is checked up to its head", async () => {
    const sessionId = "ses_validated";
    const { head } = await tw.append({ sessionId, create: {}, entries: turn() });
    const responses = await collect(tw.validateSession({ sessionId, select: ["schema", "storage"] }));
    assert.deepEqual(
      responses.flatMap(({ findings }) => findings),
      [],
    );
    const { checked, errors, head: read } = responses.at(-1)?.summary ?? assert.fail("no summary");
    assert.deepEqual([checked, errors, read], [head?.revision, 0n, head]);
    const error = await refused(collect(tw.validateSession({ sessionId: "ses_nobody" })));
    assert.equal(error.reason, Reason.SESSION_NOT_FOUND);
  });

  test("messages are checked one by one, in their order", async () => {
    const found = await collect(
      tw.validateMessages(
        (async function* () {
          yield { type: "TextPart", message: { case: "json", value: '{"text":"whole"}' } } as const;
          yield { type: "TextPart", message: { case: "json", value: "none" } } as const;
          yield { type: "TextPart", message: { case: "binary", value: new Uint8Array() } } as const;
        })(),
      ),
    );
    assert.deepEqual(
      found.map(({ index, findings }) => [index, findings.length]),
      [
        [0n, 0],
        [1n, 1],
        [2n, 0],
      ],
    );
  });
});

describe("prompts", () => {
  test("an editor and the service come to the same digest, and the record holds", async () => {
    const sessionId = "ses_prompt";
    await tw.append({ sessionId, create: {}, entries: turn() });
    const editor = PromptEditor.of((await tw.history({ sessionId })).forPrompt(), "trn_1");
    editor.prepend("user", "Before all.");
    editor.insertAfter("msg_1u", "assistant", "Between.");
    editor.appendTo("user", textPart("Briefly.", { synthetic: true }));
    editor.removePart("prt_1x");
    const { mutations } = editor;
    const dry = await tw.mutatePrompt({ sessionId, turnId: "trn_1", mutations, dryRun: true });
    assert.equal(dry.record.id, "");
    const prompt = await tw.mutatePrompt({ sessionId, turnId: "trn_1", mutations });
    assert.deepEqual(prompt.items, editor.items);
    assert.deepEqual(Buffer.from(prompt.record.digest), Buffer.from(editor.digest()));
    const again = await tw.getPrompt({ sessionId, promptId: prompt.record.id });
    assert.equal(again.end.digestHolds, true);
    const records = await collect(tw.listPrompts({ sessionId, turnId: "trn_1" }));
    assert.deepEqual(records, [prompt.record]);
    // Hooks chain: what comes out of one is what the next begins with.
    const next = new PromptEditor(prompt.items, { basePromptId: prompt.record.id });
    next.append("user", "One more.");
    const chained = await tw.mutatePrompt({
      sessionId,
      turnId: "trn_1",
      base: { case: "basePromptId", value: prompt.record.id },
      mutations: next.mutations,
    });
    assert.deepEqual(chained.items, next.items);
  });

  test("a wrong mutation has the reason and path of the local editor", async () => {
    const sessionId = "ses_wrong";
    await tw.append({ sessionId, create: {}, entries: turn() });
    const kind = { case: "remove", value: { messageId: "msg_9" } } as const;
    const theirs = await refused(tw.mutatePrompt({ sessionId, turnId: "trn_1", mutations: [{ kind }] }));
    const editor = PromptEditor.of((await tw.history({ sessionId })).forPrompt(), "trn_1");
    const ours = await refused(Promise.resolve().then(() => editor.remove("msg_9")));
    assert.equal(theirs.reason, Reason.ANCHOR_UNKNOWN);
    assert.deepEqual(
      [ours.reason, ours.status, ours.metadata, ours.message],
      [theirs.reason, theirs.status, { ...theirs.metadata }, theirs.message],
    );
  });

  test("a prompt is rendered for a provider", async () => {
    const sessionId = "ses_render";
    await tw.append({ sessionId, create: {}, entries: turn() });
    const source = { case: "turnId", value: "trn_1" } as const;
    const { body, changes, end } = await tw.renderPrompt({ sessionId, source, dialect: 1 });
    assert.equal(JSON.parse(body).model, "m-1");
    assert.ok(changes.length > 0);
    assert.equal(end.bodySha256.length, 32);
  });
});

describe("the way to the server", () => {
  test("a call to a server that is not there is tried again, as the service config says", async () => {
    let connections = 0;
    const breaking = createServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(0, "127.0.0.1");
    await once(breaking, "listening");
    const client = Client.connect(`127.0.0.1:${(breaking.address() as AddressInfo).port}`);
    const error = await refused(client.getServerInfo());
    client.close();
    breaking.close();
    assert.deepEqual([error.status, connections], ["UNAVAILABLE", 5]);
  });

  test("a peer that speaks no HTTP/2 ends calls and not the process", async () => {
    const peer = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.end("HTTP/1.1 400 no\r\n\r\n");
    }).listen(0, "127.0.0.1");
    await once(peer, "listening");
    const address = `127.0.0.1:${(peer.address() as AddressInfo).port}`;
    const program = `
      import { Client } from "@turnwire/client";
      const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
      const client = Client.connect("${address}");
      for (let call = 0; call < 5; call++) {
        await client.getServerInfo().catch(({ name }) => console.log(name));
      }
      client.close();
      await pause();
      const closed = Client.connect("${address}");
      const call = closed.getServerInfo().catch(({ name }) => console.log(name));
      closed.close();
      await call;
      await pause();
      console.log("alive");`;
    const child = spawn("node", ["--input-type=module", "--eval", program], {
      cwd: join(ROOT, "clients/typescript"),
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (bytes) => {
      output += bytes;
    });
    const [code] = await once(child, "close");
    peer.close();
    assert.deepEqual([output, code], [`${"TurnwireError\n".repeat(6)}alive\n`, 0]);
  });

  test("a socket that nobody made is UNAVAILABLE", async () => {
    const client = Client.connect(`unix:${join(files.path, "nobody")}`);
    const error = await refused(client.getServerInfo());
    assert.deepEqual([error.reason, error.status], [Reason.UNSPECIFIED, "UNAVAILABLE"]);
    client.close();
  });

  test("no server at all is UNAVAILABLE, and no reason of Turnwire's", async () => {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo;
    probe.close();
    await once(probe, "close");
    const client = Client.connect(`127.0.0.1:${port}`);
    const error = await refused(client.getServerInfo());
    assert.deepEqual([error.reason, error.status], [Reason.UNSPECIFIED, "UNAVAILABLE"]);
    client.close();
  });

  test("a time limit and a signal end a call", async () => {
    const sessionId = "ses_ends";
    await tw.append({ sessionId, create: {}, entries: turn() });
    const late = await refused(collect(tw.tail({ sessionId, timeoutMs: 200 })));
    assert.equal(late.status, "DEADLINE_EXCEEDED");
    const stop = new AbortController();
    const onCaughtUp = () => stop.abort();
    const stopped = await refused(collect(tw.tail({ sessionId, signal: stop.signal, onCaughtUp })));
    assert.equal(stopped.status, "CANCELLED");
  });

  test("a signal ends the pause before a call is tried again", async () => {
    const client = Client.connect(`unix:${join(files.path, "nowhere")}`);
    // Aborted before the first attempt has failed, or in one of the pauses behind it.
    for (const ms of [0, 5, 20, 60]) {
      const stop = new AbortController();
      setTimeout(() => stop.abort(), ms);
      const error = await refused(client.getSession("ses_1", { signal: stop.signal }));
      assert.deepEqual([error.reason, error.status], [Reason.UNSPECIFIED, "CANCELLED"]);
    }
    client.close();
  });

  test("a time limit holds for a tail whose server is gone, and for what is tried again", async () => {
    const client = Client.connect(`unix:${join(files.path, "gone")}`);
    const tail = await refused(collect(client.tail({ sessionId: "ses_1", timeoutMs: 300, patienceMs: 600_000 })));
    assert.equal(tail.status, "DEADLINE_EXCEEDED");
    assert.equal((tail.cause as TurnwireError).status, "UNAVAILABLE");
    const call = await refused(client.getSession("ses_1", { timeoutMs: 20 }));
    assert.deepEqual([call.reason, call.status], [Reason.UNSPECIFIED, "DEADLINE_EXCEEDED"]);
    client.close();
  });

  test("a tail goes on after an end of the server, but not beyond its time limit", async () => {
    const own = folder();
    const running = await serve(join(own.path, "limited.db"));
    const client = Client.connect(running.address);
    const sessionId = "ses_limited";
    await client.append({ sessionId, create: {}, entries: turn() });
    const tail = client.tail({ sessionId, timeoutMs: 1500, patienceMs: 600_000, onCaughtUp: () => running.stop() });
    assert.equal((await refused(collect(tail))).status, "DEADLINE_EXCEEDED");
    client.close();
    own.remove();
  });

  test("a closed client makes no calls any more, and ends those that it made", async () => {
    const client = Client.connect(server.address);
    const sessionId = "ses_closed";
    await client.append({ sessionId, create: {}, entries: turn() });
    const closed = { reason: Reason.UNSPECIFIED, status: "CANCELLED", message: "the client is closed" };
    const open = refused(collect(client.tail({ sessionId, onCaughtUp: () => client.close() })));
    const facts = ({ reason, status, message }: TurnwireError) => ({ reason, status, message });
    assert.deepEqual(facts(await open), closed);
    async function* nothing() {}
    for (const call of [
      client.getServerInfo(),
      client.append({ sessionId, entries: turn(2) }),
      client.history({ sessionId }),
      collect(client.tail({ sessionId })),
      collect(client.listSessions()),
      collect(client.appendStream(nothing())),
      collect(client.validateMessages(nothing())),
    ]) {
      assert.deepEqual(facts(await refused(call)), closed);
    }
    client.close();
    assert.equal((await tw.getSession(sessionId)).head?.revision, 4n);
  });

  test("closing ends what waits for a server that is gone", async () => {
    const client = Client.connect(`unix:${join(files.path, "gone")}`);
    const waiting = [
      refused(collect(client.tail({ sessionId: "ses_1", patienceMs: 600_000 }))),
      refused(client.getServerInfo({ timeoutMs: 600_000 })),
    ];
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.close();
    for (const { status, message } of await Promise.all(waiting)) {
      assert.deepEqual([status, message], ["CANCELLED", "the client is closed"]);
    }
  });

  test("a target of another form is a TypeError", () => {
    for (const target of ["", "localhost", "ftp://127.0.0.1:1", "127.0.0.1:7411/path"]) {
      assert.throws(() => Client.connect(target), TypeError);
    }
  });
});
