/**
 * Drives a real Turnwire server: creates a session, appends a turn with an answer that streams, mutates the prompt,
 * replays, tails, and runs into a conflict.
 *
 *     turnwire serve --db sessions.db &
 *     node build/examples/session.js 127.0.0.1:7411      # or: bun examples/session.ts 127.0.0.1:7411
 */
import { Client, entry, fold, PromptEditor, TurnwireError, textPart, toolPart } from "@turnwire/client";
import type { Entry } from "@turnwire/client/v1";

const target = process.argv[2] ?? "127.0.0.1:7411";
const tw = Client.connect(target);
const sessionId = `ses_example_${Date.now()}`;
const model = { providerId: "acme", modelId: "m-1" };

try {
  const session = await tw.createSession({ sessionId, properties: { title: "A talk" } });
  console.log(`created ${session.id} at revision ${session.head?.revision}`);

  // A turn, its user message, and the answer that is begun: one append, all or nothing.
  await tw.append({
    sessionId,
    entries: [
      entry.turn({ id: "trn_1", request: { agent: "build", model } }),
      entry.user({ id: "msg_1", turnId: "trn_1", parts: [textPart("What does the README say?")] }),
      entry.assistant({
        id: "msg_2",
        turnId: "trn_1",
        parentId: "msg_1",
        run: { agent: "build", model },
        parts: [
          toolPart("call_1", "read", { inputJson: '{"path":"README.md"}', output: "# Turnwire\nA message format." }),
          { id: "prt_text", kind: { case: "text", value: {} } },
        ],
      }),
    ],
  });

  // The answer streams: each piece says at which offset (in bytes of UTF-8) it starts.
  let offset = 0n;
  for (const text of ["It says that Turnwire ", "stores the sessions ", "of agents."]) {
    await tw.append({ sessionId, entries: [entry.delta("prt_text", offset, "text", text)] });
    offset += BigInt(Buffer.byteLength(text));
  }
  const { message } = await tw.getMessage({ sessionId, messageId: "msg_2" });
  console.log(
    "streamed:",
    message.parts.map((part) => (part.kind.case === "text" ? part.kind.value.text : "")).join(""),
  );

  // A hook edits the next prompt, locally; the history never changes.
  const history = await tw.history({ sessionId });
  const editor = PromptEditor.of(history.forPrompt(), "trn_1");
  editor.append("user", "Summarize the tool output above and continue.");
  editor.appendTo("user", textPart("Answer in one sentence.", { synthetic: true }));
  const prompt = await tw.mutatePrompt({ sessionId, turnId: "trn_1", mutations: editor.mutations });
  const same = Buffer.compare(prompt.record.digest, editor.digest()) === 0;
  console.log(`recorded ${prompt.record.id}: ${prompt.items.length} messages, same digest here and there: ${same}`);

  // The raw log, followed until there is nothing new, folds to the very same history.
  const entries: Entry[] = [];
  for await (const next of tw.tail({ sessionId, follow: false })) {
    entries.push(next);
  }
  const folded = fold(entries);
  console.log(`tailed ${entries.length} entries: ${folded.messages.length} messages at revision ${folded.revision}`);

  // Somebody else was faster: the error says what was expected and what is.
  try {
    const late = entry.user({ turnId: "trn_1", parts: [textPart("Too late")] });
    await tw.append({ sessionId, entries: [late], expectedRevision: 1n });
  } catch (error) {
    if (!(error instanceof TurnwireError) || error.conflict === undefined) {
      throw error;
    }
    const { expected, actual } = error.conflict;
    console.log(`${error.reasonName} at ${error.path}: expected ${expected}, the head is ${actual}`);
  }
} finally {
  tw.close();
}
