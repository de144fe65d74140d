/** Messages written here are read by Python and the other way; Python's package runs from the repository's .venv. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { sizeDelimitedEncode } from "@bufbuild/protobuf/wire";
import { Client, chain, check, deterministic, fold, PromptEditor, promptDigest, requireValid } from "@turnwire/client";
import { toModelMessages } from "@turnwire/client/ai";
import { type Entry, EntrySchema, PromptItemSchema, PromptPartSchema, TurnSchema } from "@turnwire/client/v1";
import { modelMessageSchema } from "ai";
import { folder, PYTHON, python, ROOT, serve, stopAll } from "./server.js";
import { turn } from "./session.js";

const files = folder();
const db = join(files.path, "sessions.db");

after(async () => {
  await stopAll();
  files.remove();
});

/** Reads one message of the type named, and writes it as the service stores it: a part in its canonical form. */
const REWRITE = `
import sys
from turnwire import v1
from turnwire.log import canonical
message = getattr(v1, sys.argv[1]).FromString(sys.stdin.buffer.read())
is_part = isinstance(message, v1.PromptPart)
sys.stdout.buffer.write(canonical.part(message) if is_part else message.SerializeToString(deterministic=True))
`;

/** Writes the entries of the session named, each after its length in four bytes. */
const ENTRIES = `
import asyncio, struct, sys
import turnwire
async def main():
    async with turnwire.open(sys.argv[1]) as tw:
        async for entry in tw.read_entries(sys.argv[2]):
            data = entry.SerializeToString(deterministic=True)
            sys.stdout.buffer.write(struct.pack(">I", len(data)) + data)
asyncio.run(main())
`;

/** The pieces of a stream, each of which stands after its length. */
function divided(bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at);
    pieces.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return pieces;
}

async function rewritten<D extends DescMessage>(schema: D, message: MessageShape<D>): Promise<Buffer> {
  return python(REWRITE, toBinary(schema, message), schema.name);
}

describe("bytes", () => {
  test("Python writes what is written here, maps and unknown fields included", async () => {
    const headers = {
      "retry-after-ms": "1",
      "retry-after": "2",
      "": "3",
      "10": "x",
      "9": "y",
      ä: "z",
      "😀": "",
      ﬀ: "",
    };
    const part = create(PromptPartSchema, {
      id: "prt_1",
      extraJson: '{"n": 1.0}',
      kind: { case: "retry", value: { failure: { kind: { case: "api", value: { responseHeaders: headers } } } } },
    });
    part.$unknown = [{ no: 900, wireType: 2, data: Buffer.from("03616263", "hex") }];
    const theirs = await rewritten(PromptPartSchema, part);
    assert.deepEqual(Buffer.from(deterministic(PromptPartSchema, part)), theirs);
    const back = fromBinary(PromptPartSchema, theirs);
    assert.deepEqual(
      back.$unknown?.map(({ no }) => no),
      [900],
    );
    const settings = create(TurnSchema, {
      id: "trn_1",
      request: { agent: "a", tools: { zeta: true, alpha: false, beta: true } },
    });
    assert.deepEqual(Buffer.from(deterministic(TurnSchema, settings)), await rewritten(TurnSchema, settings));
  });

  test("a prompt has the digest that Python computes", async () => {
    const editor = new PromptEditor();
    editor.append("user", "Grüße 🌍");
    editor.append("assistant", "x", create(PromptPartSchema, { kind: { case: "stepStart", value: {} } }));
    const program = `
import sys
from google.protobuf import proto
from turnwire import prompt, v1
items = []
while (item := proto.parse_length_prefixed(v1.PromptItem, sys.stdin.buffer)) is not None:
    items.append(item)
sys.stdout.buffer.write(prompt.digest(items))
`;
    const items = Buffer.concat(editor.items.map((item) => sizeDelimitedEncode(PromptItemSchema, item)));
    assert.deepEqual(await python(program, items), Buffer.from(editor.digest()));
  });
});

describe("a real session that Python imported", () => {
  const imported = async (): Promise<[string, Buffer[]]> => {
    const args = [
      "-m",
      "turnwire",
      "--db",
      db,
      "import",
      "opencode",
      join(ROOT, "tests/data/opencode/three-turns.json"),
    ];
    execFileSync(PYTHON, args, { stdio: "ignore" });
    const listed = execFileSync(PYTHON, ["-m", "turnwire", "--db", db, "--json", "sessions"], { encoding: "utf8" });
    const { id } = JSON.parse(listed.split("\n")[0] ?? "") as { id: string };
    return [id, divided(await python(ENTRIES, new Uint8Array(), db, id))];
  };

  test("is read, written again byte for byte, folded, checked, digested and made ready for the AI SDK", async () => {
    const [id, raw] = await imported();
    const entries = raw.map((bytes): Entry => fromBinary(EntrySchema, bytes));
    assert.ok(entries.length > 3);
    assert.deepEqual(
      entries.map((entry) => Buffer.from(deterministic(EntrySchema, entry))),
      raw,
    );
    assert.deepEqual(
      [...chain(id, raw)].map((digest) => Buffer.from(digest)),
      entries.map(({ digest }) => Buffer.from(digest)),
    );
    for (const entry of entries) {
      assert.deepEqual(check(EntrySchema, entry, { stored: true }), []);
    }
    const server = await serve(db);
    const tw = Client.connect(server.address);
    const folded = fold(entries);
    assert.deepEqual((await tw.history({ sessionId: id })).messages, folded.messages);
    for (const turnId of folded.turns.keys()) {
      const editor = PromptEditor.of(folded.history(), turnId);
      const prompt = await tw.mutatePrompt({ sessionId: id, turnId, dryRun: true });
      assert.deepEqual(editor.items, prompt.items);
      assert.deepEqual(Buffer.from(editor.digest()), Buffer.from(prompt.record.digest));
      assert.deepEqual(promptDigest(editor.messages), editor.digest());
      const model = prompt.items.at(-1)?.facts?.model;
      for (const message of toModelMessages(prompt.items, {
        ...(model && { model }),
      })) {
        assert.ok(modelMessageSchema.safeParse(message).success);
      }
    }
    tw.close();
    await server.stop();
  });

  test("and one written here is read and verified by Python", async () => {
    const server = await serve(db);
    const tw = Client.connect(server.address);
    const sessionId = "ses_typescript";
    await tw.append({ sessionId, create: { labels: { a: "1", "a-b": "2" } }, entries: turn() });
    tw.close();
    await server.stop();
    const verified = execFileSync(PYTHON, ["-m", "turnwire", "--db", db, "verify", sessionId], { encoding: "utf8" });
    assert.match(verified, /ses_typescript/);
    const raw = divided(await python(ENTRIES, new Uint8Array(), db, sessionId));
    const read = raw.map((bytes) => fromBinary(EntrySchema, bytes));
    for (const entry of read) {
      requireValid(EntrySchema, entry, "", { stored: true });
    }
    assert.deepEqual(
      [...chain(sessionId, raw)].map((digest) => Buffer.from(digest)),
      read.map(({ digest }) => Buffer.from(digest)),
    );
    const { messages } = fold(read);
    const tool = messages[1]?.parts[0]?.kind;
    assert.equal(tool?.case === "tool" && tool.value.inputJson, '{"n": 1.0}');
  });
});
