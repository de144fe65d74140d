/** What earlier versions stored (tests/compat) is read here too, and comes to the same. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import { equals, fromBinary, toJson } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { chain, check, deterministic, fold, readMessage } from "@turnwire/client";
import { AssistantSchema, EntrySchema, SessionSchema, UserSchema } from "@turnwire/client/v1";
import { ROOT } from "./server.js";

const COMPAT = join(ROOT, "tests/compat");
const VERSIONS = readdirSync(COMPAT).filter((name) => /^\d/.test(name));

/** Key bytes of Turnwire's own form: what follows the session is its entries. */
const SESSION = 1;

function manifest(version: string): { sessions: Record<string, { revision: number; digest: string }> } {
  return JSON.parse(readFileSync(join(COMPAT, version, "manifest.json"), "utf8"));
}

test("there is something to read", () => {
  assert.ok(VERSIONS.length > 0);
});

for (const version of VERSIONS) {
  describe(version, () => {
    test("no entry breaks a rule or has an unknown field, and each is the same when it is written and read again", () => {
      const reader = new BinaryReader(readFileSync(join(COMPAT, version, "entries.binpb")));
      while (reader.pos < reader.len) {
        const bytes = reader.bytes();
        const entry = readMessage(EntrySchema, bytes);
        assert.deepEqual(check(EntrySchema, entry, { stored: true }), []);
        // Entries of maps may stand in another order.
        const written = deterministic(EntrySchema, fromBinary(EntrySchema, bytes, { readUnknownFields: false }));
        assert.equal(written.length, bytes.length);
        assert.ok(equals(EntrySchema, fromBinary(EntrySchema, written), entry));
      }
    });

    for (const [id, { revision, digest }] of Object.entries(manifest(version).sessions)) {
      test(`the log of ${id} has its digest, and folds to the same history`, () => {
        const file = join(COMPAT, version, "sessions", `${id}.tw`);
        const reader = new BinaryReader(readFileSync(file));
        assert.equal(reader.tag()[0], SESSION);
        assert.equal(fromBinary(SessionSchema, reader.bytes()).id, basename(file, ".tw"));
        const raw: Uint8Array[] = [];
        while (reader.pos < reader.len) {
          reader.tag();
          raw.push(reader.bytes());
        }
        assert.equal(raw.length, revision);
        assert.equal(Buffer.from([...chain(id, raw)].at(-1) ?? []).toString("hex"), digest);
        const folded = fold(raw.map((bytes) => readMessage(EntrySchema, bytes)));
        const messages = folded.messages.map((message) =>
          message.$typeName === "turnwire.v1.User" ? toJson(UserSchema, message) : toJson(AssistantSchema, message),
        );
        const lines = readFileSync(file.replace(/\.tw$/, ".history.jsonl"), "utf8").trimEnd().split("\n");
        assert.deepEqual(
          messages,
          lines.map((line) => JSON.parse(line)),
        );
      });
    }
  });
}
