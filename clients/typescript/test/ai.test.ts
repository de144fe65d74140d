import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { PromptEditor, Reason, textPart, toolPart } from "@turnwire/client";
import { type ModelMessagesOptions, toModelMessages } from "@turnwire/client/ai";
import { PromptItemSchema, type PromptPartSchema, Role, ToolState } from "@turnwire/client/v1";
import { generateText, type ModelMessage, modelMessageSchema } from "ai";
import { MockLanguageModelV3 } from "ai/test";

type Part = MessageInitShape<typeof PromptPartSchema>;
type Facts = MessageInitShape<typeof PromptItemSchema>["facts"];

const MODEL = { providerId: "acme", modelId: "m-1" };
const PNG = "data:image/png;base64,iVBORw0KGgo=";

function item(role: Role, parts: Part[], facts?: Facts) {
  const origin = { case: "messageId", value: "msg_1" } as const;
  return create(PromptItemSchema, { message: { role, parts }, origin, ...(facts && { facts }) });
}

const user = (...parts: Part[]) => item(Role.USER, parts);
const assistant = (...parts: Part[]) => item(Role.ASSISTANT, parts, { model: MODEL, completed: true });

function text(content: string): Part {
  return { kind: { case: "text", value: { text: content } } };
}

function reasoning(content: string, metadataJson = "", model = MODEL): Part {
  return { kind: { case: "reasoning", value: { text: content, provider: { metadataJson, model } } } };
}

function tool(value: Extract<NonNullable<Part["kind"]>, { case: "tool" }>["value"]): Part {
  return { kind: { case: "tool", value: { callId: "call_1", name: "read", ...value } } };
}

function file(url: string, mime: string, filename = "a.bin"): Part {
  return { kind: { case: "file", value: { url, mime, filename } } };
}

const STEP: Part = { kind: { case: "stepStart", value: {} } };

/** The messages, which the AI SDK's own schema takes. */
function messages(items: Parameters<typeof toModelMessages>[0], options?: ModelMessagesOptions): ModelMessage[] {
  const made = toModelMessages(items, options);
  for (const message of made) {
    const { success, error } = modelMessageSchema.safeParse(message);
    assert.ok(success, error?.message);
  }
  return made;
}

/** The messages in short: role, and the types of what they hold. */
function shape(made: ModelMessage[]): string[] {
  return made.map(({ role, content }) => {
    const types = typeof content === "string" ? [content] : content.map(({ type }) => type);
    return `${role}: ${types.join(" ")}`;
  });
}

describe("calls and results", () => {
  test("a result follows its call, before what was written after it", () => {
    const done = tool({ state: ToolState.COMPLETED, inputJson: '{"path":"a","n":[1]}', output: "out" });
    const made = messages([user(text("Go")), assistant(text("Reading"), done, text("Read."))]);
    assert.deepEqual(made, [
      { role: "user", content: [{ type: "text", text: "Go" }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Reading" },
          { type: "tool-call", toolCallId: "call_1", toolName: "read", input: { path: "a", n: [1] } },
        ],
      },
      {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: "call_1", toolName: "read", output: { type: "text", value: "out" } },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "Read." }] },
      { role: "user", content: [{ type: "text", text: "Continue." }] },
    ]);
  });

  test("parallel calls share one message of results, and steps divide", () => {
    const call = (callId: string) => tool({ callId, state: ToolState.COMPLETED, output: callId });
    const made = messages([user(text("Go")), assistant(STEP, call("a"), call("b"), STEP, call("c"))], {
      assistantLast: true,
    });
    assert.deepEqual(shape(made), [
      "user: text",
      "assistant: tool-call tool-call",
      "tool: tool-result tool-result",
      "assistant: tool-call",
      "tool: tool-result",
    ]);
  });

  const outputs: [string, Part, unknown][] = [
    [
      "a pending call",
      tool({ state: ToolState.PENDING }),
      { type: "error-text", value: "[Tool execution was interrupted]" },
    ],
    [
      "a running call",
      tool({ state: ToolState.RUNNING, output: "half" }),
      { type: "error-text", value: "[Tool execution was interrupted]" },
    ],
    [
      "a state of a later schema",
      tool({ state: 99 as ToolState }),
      { type: "error-text", value: "[Tool execution was interrupted]" },
    ],
    ["an error", tool({ state: ToolState.ERROR, error: "no file" }), { type: "error-text", value: "no file" }],
    ["an empty output", tool({ state: ToolState.COMPLETED, output: "" }), { type: "text", value: "[No output]" }],
    [
      "a compacted output",
      tool({ state: ToolState.COMPLETED, output: "long", compacted: { seconds: 1n } }),
      { type: "text", value: "[Old tool result content cleared]" },
    ],
  ];
  for (const [what, part, output] of outputs) {
    test(`${what} has its result`, () => {
      const made = messages([user(text("Go")), assistant(part)]);
      const result = made[2]?.content[0];
      assert.deepEqual(typeof result === "object" && "output" in result && result.output, output);
    });
  }

  test("an input that is no object is put into one, and half of a surrogate pair is mended", () => {
    const inputs = ['"x"', '{"a":"\\ud83d","b":"\\\\ud83d","c":"\\ud83d\\ude00"}', ""];
    const made = messages([
      user(text("Go")),
      assistant(...inputs.map((inputJson, at) => tool({ callId: `c${at}`, state: ToolState.COMPLETED, inputJson }))),
    ]);
    const calls = made[1]?.content as { input: unknown }[];
    assert.deepEqual(
      calls.map(({ input }) => input),
      [{ input: "x" }, { a: "\ufffd", b: "\\ud83d", c: "😀" }, {}],
    );
  });

  test("equal call ids of several messages become different, the first stays", () => {
    const done = tool({ state: ToolState.COMPLETED, output: "x" });
    const made = messages([user(text("Go")), assistant(done), user(text("Again")), assistant(done)]);
    const ids = made.flatMap(({ content }) =>
      typeof content === "string" ? [] : content.flatMap((part) => ("toolCallId" in part ? [part.toolCallId] : [])),
    );
    assert.deepEqual(ids, ["call_1", "call_1", "call_1_2", "call_1_2"]);
  });
});

describe("reasoning", () => {
  const signed = reasoning("hm", '{"acme":{"signature":"s"},"odd":1}');
  const foreign = reasoning("else", '{"acme":{"signature":"s"}}', { providerId: "acme", modelId: "m-2" });

  test("it goes back with its signature to the model that made it, and to no other", () => {
    const items = [user(text("Go")), assistant(signed, foreign, text("Done"))];
    const made = messages(items, { model: MODEL });
    assert.deepEqual(made[1]?.content, [
      { type: "reasoning", text: "hm", providerOptions: { acme: { signature: "s" } } },
      { type: "text", text: "Done" },
    ]);
    assert.deepEqual(shape(messages(items))[1], "assistant: text");
    const asText = messages(items, { model: MODEL, foreignReasoning: "text" });
    assert.equal(shape(asText)[1], "assistant: reasoning text text");
  });

  test("what nothing follows is left out", () => {
    assert.deepEqual(shape(messages([user(text("Go")), assistant(signed)], { model: MODEL })), ["user: text"]);
  });
});

describe("files", () => {
  test("they stay files, text becomes text, and a name stands for what is not here", () => {
    const made = messages([
      user(
        file(PNG, "image/png", "a.png"),
        file("https://example.com/a.pdf", "application/pdf"),
        file("data:text/plain,a%20%C3%A4", "text/plain", "a.txt"),
        file("file:///tmp/a.png", "image/png", "b.png"),
        file("file:///tmp/a.txt", "text/plain"),
        file("file:///tmp", "application/x-directory"),
      ),
    ]);
    assert.deepEqual(made[0]?.content, [
      { type: "file", data: "iVBORw0KGgo=", mediaType: "image/png", filename: "a.png" },
      { type: "file", data: new URL("https://example.com/a.pdf"), mediaType: "application/pdf", filename: "a.bin" },
      { type: "text", text: '[File "a.txt"]\na ä' },
      { type: "text", text: '[Image "b.png": its content is not available]' },
    ]);
  });

  test("those of a tool result follow the answer, or stay in it by option", () => {
    const attachments = [{ file: { url: PNG, mime: "image/png" } }];
    const items = [
      user(text("Go")),
      assistant(tool({ state: ToolState.COMPLETED, output: "see", attachments }), text("So.")),
    ];
    assert.deepEqual(shape(messages(items)), [
      "user: text",
      "assistant: tool-call",
      "tool: tool-result",
      "assistant: text",
      "user: text file",
    ]);
    const made = messages(items, { mediaInResults: true, assistantLast: true });
    assert.equal(made.length, 4);
    assert.deepEqual(made[2]?.content, [
      {
        type: "tool-result",
        toolCallId: "call_1",
        toolName: "read",
        output: {
          type: "content",
          value: [
            { type: "text", text: "see" },
            { type: "file-data", data: "iVBORw0KGgo=", mediaType: "image/png" },
          ],
        },
      },
    ]);
  });
});

describe("what is left out", () => {
  test("empty and ignored texts, no content for a model, and what is then empty", () => {
    const made = messages([
      user(text("Go"), text(""), { kind: { case: "text", value: { text: "for people", ignored: true } } }),
      assistant(text(""), { kind: { case: "snapshot", value: { snapshot: "s" } } }),
      user({ kind: { case: "agent", value: { name: "plan" } } }),
      user({ kind: { case: "compaction", value: {} } }, { kind: { case: "subtask", value: { agent: "plan" } } }),
    ]);
    assert.deepEqual(shape(made), ["user: text", "user: text text"]);
  });

  test("a withheld answer, and a stopped one of nothing but reasoning", () => {
    const stopped = (kind: "aborted" | "contentFilter", ...parts: Part[]) =>
      item(Role.ASSISTANT, parts, { model: MODEL, failure: { kind: { case: kind, value: {} } } });
    const made = messages([
      user(text("Go")),
      stopped("contentFilter", text("no")),
      stopped("aborted", STEP, reasoning("hm")),
      stopped("aborted", text("half")),
    ]);
    assert.deepEqual(shape(made), ["user: text", "assistant: text", "user: text"]);
  });

  test("numbers too great for JavaScript are sent as their text", () => {
    const inputJson = '{"n":-1E999,"s":"1e999 \\" 1e999","list":[1e999,2.5]}';
    const metadataJson = '{"acme":{"n":1e999}}';
    const call = tool({
      state: ToolState.COMPLETED,
      inputJson,
      output: "out",
      provider: { metadataJson, model: MODEL },
    });
    const [, made] = messages([user(text("Go")), assistant(call)], { model: MODEL });
    assert.deepEqual(made?.content, [
      {
        type: "tool-call",
        toolCallId: "call_1",
        toolName: "read",
        input: { n: "-1E999", s: '1e999 " 1e999', list: ["1e999", 2.5] },
        providerOptions: { acme: { n: "1e999" } },
      },
    ]);
  });

  test("what is no JSON and what is no role is RULE_VIOLATION", () => {
    const refusals: [ReturnType<typeof item>, string][] = [
      [assistant(tool({ state: ToolState.COMPLETED, inputJson: "{no" })), "tool.input_json"],
      [assistant(reasoning("hm", "{no")), "provider.metadata_json"],
      [item(Role.UNSPECIFIED, [text("Go")]), "items[1].message.role"],
      [item(7 as Role, [text("Go")]), "items[1].message.role"],
    ];
    for (const [wrong, path] of refusals) {
      const made = () => toModelMessages([user(text("Go")), wrong], { model: MODEL });
      assert.throws(made, { name: "TurnwireError", reason: Reason.RULE_VIOLATION, path });
    }
  });

  test("a prompt with nothing left is EMPTY_PROMPT", () => {
    assert.throws(() => toModelMessages([user(text(""))]), { reason: Reason.EMPTY_PROMPT });
  });

  test("the conversation begins with the user", () => {
    assert.deepEqual(shape(messages([assistant(text("Hello")), user(text("Hi"))])), [
      "user: text",
      "assistant: text",
      "user: text",
    ]);
  });

  test("an editor's items are what it takes", () => {
    const editor = new PromptEditor();
    editor.append("user", "Go");
    editor.append("assistant", toolPart("call_1", "read", { error: "no" }), textPart("So."));
    assert.equal(messages(editor.items).length, 5);
  });

  test("generateText of the SDK sends them", async () => {
    const model = new MockLanguageModelV3({
      doGenerate: {
        content: [{ type: "text", text: "Done" }],
        finishReason: { unified: "stop", raw: "stop" },
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
          outputTokens: { total: 1, text: 1, reasoning: 0 },
        },
        warnings: [],
      },
    });
    const items = [
      user(text("Go"), file(PNG, "image/png")),
      assistant(reasoning("hm", '{"acme":{"signature":"s"}}'), tool({ state: ToolState.PENDING }), text("So.")),
    ];
    const result = await generateText({ model, messages: messages(items, { model: MODEL }) });
    assert.equal(result.text, "Done");
    assert.deepEqual(
      model.doGenerateCalls[0]?.prompt.map(({ role, content }) => [role, content.length]),
      [
        ["user", 2],
        ["assistant", 2],
        ["tool", 1],
        ["assistant", 1],
        ["user", 1],
      ],
    );
  });
});
