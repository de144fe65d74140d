import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { create, fromBinary, toJson } from "@bufbuild/protobuf";
import { deterministic } from "@turnwire/client";
import { EntryInputSchema, SessionPropertiesSchema } from "@turnwire/client/v1";
import { isUser, type MessageRecord, mapWhole, type Tree, type WholeSession } from "@turnwire/opencode-plugin/mapping";
import { DATA, python, ROOT } from "./support.js";

// What Turnwire's own importer makes of a file: its properties, and its objects in order, each as an entry.
const IMPORT = `
import base64, json, sys
from pathlib import Path
from turnwire import v1
from turnwire.formats.base import sessions
from turnwire.formats.opencode import OPENCODE
from turnwire.formats.report import Report

def text(message):
    return base64.b64encode(message.SerializeToString(deterministic=True)).decode()

for path in sys.argv[1:]:
    for session in sessions(OPENCODE, Path(path), Report()):
        entries = []
        for entry in session.entries:
            parts = []
            if entry.WhichOneof("payload") in ("user", "assistant"):
                header = entry.user.user if entry.HasField("user") else entry.assistant.assistant
                parts = [v1.EntryInput(part=v1.PartPut(message_id=header.id, part=part)) for part in header.parts]
                del header.parts[:]
            entries += [entry, *parts]
        print(json.dumps({"path": path, "properties": text(session.properties), "entries": list(map(text, entries))}))
`;

interface Imported {
  path: string;
  properties: string;
  entries: string[];
}

async function compareWithImporter(paths: string[]): Promise<void> {
  const lines = (await python(["-c", IMPORT, ...paths])).trim().split("\n");
  assert.equal(lines.length, paths.length);
  for (const line of lines) {
    const { path, properties, entries } = JSON.parse(line) as Imported;
    const { info, messages } = JSON.parse(read(path)) as { info: Tree; messages: MessageRecord[] };
    const mapped = mapWhole(info, messages);
    const sent = create(SessionPropertiesSchema, mapped.properties);
    assert.deepEqual(
      toJson(SessionPropertiesSchema, sent),
      toJson(SessionPropertiesSchema, fromBinary(SessionPropertiesSchema, Buffer.from(properties, "base64"))),
      path,
    );
    const made = entriesOf(mapped);
    const wanted = entries.map((text) => fromBinary(EntryInputSchema, Buffer.from(text, "base64")));
    assert.deepEqual(
      made.map((entry) => toJson(EntryInputSchema, entry)),
      wanted.map((entry) => toJson(EntryInputSchema, entry)),
      path,
    );
    assert.deepEqual(
      made.map((entry) => Buffer.from(deterministic(EntryInputSchema, entry)).toString("base64")),
      entries,
      path,
    );
  }
}

function read(path: string): string {
  const data = readFileSync(path);
  return (path.endsWith(".gz") ? gunzipSync(data) : data).toString();
}

/** The objects of a session in the order of the importer's: turns before their first message, parts behind theirs. */
function entriesOf({ messages, revert }: WholeSession) {
  const turns = new Set<string>();
  const made = messages.flatMap(({ turn, header, parts, summary }) => {
    const first = !turns.has(turn.id);
    turns.add(turn.id);
    return [
      ...(first ? [{ payload: { case: "turn" as const, value: turn } }] : []),
      isUser(header)
        ? { payload: { case: "user" as const, value: { user: header } } }
        : { payload: { case: "assistant" as const, value: { assistant: header } } },
      ...parts.map((part) => ({ payload: { case: "part" as const, value: { messageId: header.id, part } } })),
      ...(summary ? [{ payload: { case: "summary" as const, value: summary } }] : []),
    ];
  });
  const last = revert ? [{ payload: { case: "revert" as const, value: revert } }] : [];
  return [...made, ...last].map((entry) => create(EntryInputSchema, entry));
}

function exportsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /(^|\/)exports\/[^/]*\.json(\.gz)?$/.test(name))
    .map((name) => join(folder, name));
}

test("the committed sessions are mapped as the importer maps them, byte for byte", async () => {
  const folder = join(DATA, "exports");
  const paths = readdirSync(folder).map((name) => join(folder, name));
  assert.ok(paths.length > 3);
  await compareWithImporter(paths);
});

// Those before 1.2 kept JSON files; nothing but the order of their session's members differs.
const recorded = ["1.2.27", "1.18.33"].map((version) => join(ROOT, `../shared/corpora/opencode-${version}`));

test("every recorded session since 1.2 likewise", { skip: !recorded.every(existsSync) }, async () => {
  const paths = recorded.flatMap(exportsIn);
  assert.ok(paths.length > 100);
  await compareWithImporter(paths);
});
