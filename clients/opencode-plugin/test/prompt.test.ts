import assert from "node:assert/strict";
import { test } from "node:test";
import type { PluginInput } from "@opencode-ai/plugin";
import type { Tree } from "@turnwire/opencode-plugin/mapping";
import {
  definePromptHook,
  type PromptContext,
  type PromptHook,
  textPart,
  toolPart,
} from "@turnwire/opencode-plugin/prompt";
import { EXPORTS } from "./recorded.js";

interface Message {
  info: Tree;
  parts: Tree[];
}

function treeOf(value: unknown): Tree {
  return (value ?? {}) as Tree;
}

/** The messages of a real session, as opencode hands them to a transform. */
function recorded(name: string): Message[] {
  const found = [...EXPORTS.values()].find(({ path }) => path.endsWith(`/${name}.json`));
  return structuredClone(found?.tree.messages) as Message[];
}

/** What a hook makes of messages, and what it told opencode's log. */
async function edit(messages: Message[], hook: PromptHook): Promise<string[]> {
  const told: string[] = [];
  const client = {
    app: {
      log: async ({ body }: { body: { message: string } }) => {
        told.push(body.message);
      },
    },
  };
  const hooks = await definePromptHook(hook)({ client } as unknown as PluginInput);
  await hooks["experimental.chat.messages.transform"]?.({}, { messages } as never);
  return told;
}

test("a hook that does nothing leaves every object as it is", async () => {
  const messages = recorded("tool_turn");
  const before = [...messages];
  await edit(messages, () => undefined);
  assert.deepEqual(messages, recorded("tool_turn"));
  assert.ok(messages.every((message, at) => message === before[at]));
});

test("text that is added to the user's last message is a part of opencode's form", async () => {
  const messages = recorded("tool_turn");
  const before = [...messages];
  await edit(messages, (editor) => editor.appendTo("user", textPart("Be brief.", { synthetic: true })));
  const at = before.findLastIndex(({ info }) => info.role === "user");
  const [edited, there] = [messages[at], before[at]];
  const { id, ...added } = edited?.parts.at(-1) ?? {};
  assert.match(String(id), /^prt_/);
  assert.deepEqual(added, {
    type: "text",
    text: "Be brief.",
    synthetic: true,
    sessionID: there?.info.sessionID,
    messageID: there?.info.id,
  });
  assert.equal(edited?.info, there?.info);
  assert.equal(there?.parts.length, (edited?.parts.length ?? 0) - 1); // opencode's own object is not changed
  assert.ok(messages.every((message, each) => each === at || message === before[each]));
});

test("messages are appended and inserted with what opencode wants of them", async () => {
  const messages = recorded("tool_turn");
  const [first, second] = [...messages];
  await edit(messages, (editor) => {
    editor.insertAfter(String(first?.info.id), "assistant", toolPart("call_1", "clock", { output: "noon" }));
    editor.append("user", "Go on.");
  });
  const [, inserted, next] = messages;
  assert.equal(next, second);
  assert.equal(inserted?.info.role, "assistant");
  assert.equal(inserted?.info.parentID, first?.info.id);
  const { state, tool, callID, type } = inserted?.parts[0] ?? {};
  const start = treeOf(inserted?.info.time).created;
  assert.deepEqual(
    { state, tool, callID, type },
    {
      state: { status: "completed", input: {}, output: "noon", title: "", metadata: {}, time: { start, end: start } },
      tool: "clock",
      callID: "call_1",
      type: "tool",
    },
  );
  const last = messages.at(-1);
  const asked = recorded("tool_turn").findLast(({ info }) => info.role === "user");
  assert.deepEqual(
    { ...last?.info, id: "", time: {} },
    {
      id: "",
      sessionID: asked?.info.sessionID,
      role: "user",
      time: {},
      agent: asked?.info.agent,
      model: asked?.info.model,
    },
  );
  assert.equal(last?.parts[0]?.text, "Go on.");
});

test("parts are replaced and removed; a message without parts stays out of the editor, and in its place", async () => {
  const messages = recorded("tool_turn");
  messages[1]?.parts.splice(0);
  const before = [...messages];
  const [text] = before[0]?.parts ?? [];
  const step = before[2]?.parts.find(({ type }) => type === "step-start");
  await edit(messages, (editor) => {
    assert.equal(editor.length, before.length - 1);
    editor.replacePart(String(text?.id), "Something else.");
    editor.removePart(String(step?.id));
  });
  assert.equal(messages[0]?.parts[0]?.text, "Something else.");
  assert.equal(messages[1], before[1]);
  assert.ok(messages[2]?.parts.every((part) => part !== step));
  assert.equal(messages[2]?.parts.length, (before[2]?.parts.length ?? 0) - 1);
});

test("the context tells of the session; a hook that throws changes nothing, and the log says so once", async () => {
  const messages = recorded("file");
  const seen: PromptContext[] = [];
  const told = await edit(messages, (editor, context) => {
    seen.push(context);
    editor.append("user", "Never sent.");
    throw new Error("no weather");
  });
  const { sessionID, agent } = messages[0]?.info ?? {};
  assert.deepEqual(
    seen.map((context) => [context.sessionId, context.agent, context.model]),
    [[sessionID, agent, { providerId: "fake", modelId: "fake-model" }]],
  );
  assert.deepEqual(messages, recorded("file"));
  assert.deepEqual(told, ["a prompt hook failed, the prompt goes out as it was: no weather"]);
});
