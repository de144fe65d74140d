/** Recorded sessions of real agents: what is computed here is what the service computes. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client, check, fold, PromptEditor } from "@turnwire/client";
import { toModelMessages } from "@turnwire/client/ai";
import { type Entry, EntrySchema } from "@turnwire/client/v1";
import { modelMessageSchema } from "ai";
import { folder, PYTHON, ROOT, serve, stopAll } from "./server.js";

const CORPUS = join(ROOT, "../shared/corpora/opencode-1.18.33");
const skip = existsSync(CORPUS) ? false : "the recorded corpora are not beside the repository";

const files = folder();

after(async () => {
  await stopAll();
  files.remove();
});

test("every session folds, assembles, digests and becomes messages of the AI SDK", { skip }, async () => {
  const db = join(files.path, "corpus.db");
  execFileSync(PYTHON, ["-m", "turnwire", "--db", db, "import", "opencode", CORPUS], { stdio: "ignore" });
  const server = await serve(db);
  const tw = Client.connect(server.address);
  let turns = 0;
  for await (const { id: sessionId } of tw.listSessions()) {
    const entries: Entry[] = [];
    for await (const entry of tw.readEntries({ sessionId })) {
      assert.deepEqual(check(EntrySchema, entry, { stored: true }), []);
      entries.push(entry);
    }
    const folded = fold(entries);
    const replayed = await tw.history({ sessionId, includeSummaries: true });
    assert.deepEqual(replayed.messages, folded.messages, sessionId);
    assert.deepEqual(replayed.summaries, folded.summaries, sessionId);
    const history = folded.history();
    for (const [turnId, { request }] of folded.turns) {
      for (const profile of ["default", "opencode"]) {
        const editor = PromptEditor.of(history, turnId, profile);
        const prompt = await tw.mutatePrompt({ sessionId, turnId, profile, dryRun: true });
        assert.deepEqual(editor.items, prompt.items, turnId);
        assert.deepEqual(Buffer.from(editor.digest()), Buffer.from(prompt.record.digest), turnId);
        assertAccepted(toModelMessages(prompt.items, request?.model ? { model: request.model } : {}));
        turns++;
      }
    }
  }
  assert.ok(turns > 100);
  tw.close();
});

/** The SDK's schema takes the messages, and directly after calls stand their results, in their order. */
function assertAccepted(messages: ReturnType<typeof toModelMessages>): void {
  const callIds = (at: number, type: "tool-call" | "tool-result") => {
    const content = messages[at]?.content ?? [];
    return typeof content === "string"
      ? []
      : content.flatMap((each) => (each.type === type && "toolCallId" in each ? [each.toolCallId] : []));
  };
  for (const [at, message] of messages.entries()) {
    const { success, error } = modelMessageSchema.safeParse(message);
    assert.ok(success, error?.message);
    const calls = callIds(at, "tool-call");
    if (calls.length > 0) {
      assert.deepEqual(callIds(at + 1, "tool-result"), calls);
    }
  }
}
