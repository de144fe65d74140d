import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  assemble,
  deterministic,
  filePart,
  History,
  PromptEditor,
  promptDigest,
  promptMessage,
  Reason,
  textPart,
  toolPart,
} from "@turnwire/client";
import {
  type Assistant,
  AssistantSchema,
  PromptItemSchema,
  PromptMessageSchema,
  type PromptPart,
  PromptPartSchema,
  ResultKind,
  Role,
  type User,
  UserSchema,
} from "@turnwire/client/v1";

function user(id: string, parts: PromptPart[] = [{ ...textPart(`text of ${id}`), id: `prt_${id}` }]): User {
  return create(UserSchema, { id, turnId: "trn_1", parts });
}

function assistant(
  id: string,
  parts: PromptPart[],
  more: Parameters<typeof create<typeof AssistantSchema>>[1] = {},
): Assistant {
  return create(AssistantSchema, { ...more, id, turnId: "trn_1", parts });
}

const signed = create(PromptPartSchema, {
  id: "prt_signed",
  kind: { case: "reasoning", value: { text: "hm", provider: { signed: true } } },
});

function editor(): PromptEditor {
  const answer = assistant("msg_2", [signed, { ...toolPart("call_1", "read", { output: "out" }), id: "prt_tool" }]);
  return PromptEditor.of(new History([user("msg_1"), answer], { removedMessages: new Set(["msg_0"]) }), "trn_1");
}

/** The prompt in short: the ids of stored messages, and the numbers of the mutations that made the others. */
function shape({ items }: { items: Iterable<PromptEditor["items"][number]> }): (string | number | undefined)[] {
  return Array.from(items, ({ origin }) => (origin.case === "mutation" ? origin.value.index : origin.value));
}

describe("edits", () => {
  test("messages go where they are said to go, the later one nearer to its anchor", () => {
    const prompt = editor();
    prompt.append("user", "end"); // 0
    prompt.prepend("user", "begin"); // 1
    prompt.insertAfter("msg_1", "user", "after, far"); // 2
    prompt.insertAfter("msg_1", "user", "after, near"); // 3
    prompt.insertBefore("msg_2", promptMessage("user", "before, far")); // 4
    prompt.insertBefore("msg_2", "user", "before, near"); // 5
    assert.deepEqual(shape(prompt), [1, "msg_1", 3, 2, 4, 5, "msg_2", 0]);
    assert.equal(prompt.length, 8);
    assert.deepEqual(
      prompt.mutations.map(({ kind }) => kind.case),
      ["append", "prepend", "insertAfter", "insertAfter", "insertBefore", "insertBefore"],
    );
  });

  test("appendTo adds to the last message of a role, synthetic or not, signed or not", () => {
    const prompt = editor();
    prompt.appendTo("user", "one");
    prompt.append("user", "new");
    prompt.appendTo("user", "two", filePart("data:text/plain,x", "text/plain", "x.txt"));
    prompt.appendTo(Role.ASSISTANT, "three");
    assert.deepEqual(
      prompt.messages.map(({ parts }) => parts.length),
      [2, 3, 3],
    );
    assert.deepEqual(shape(prompt), ["msg_1", "msg_2", 1]);
  });

  test("parts are replaced and removed, and a message without parts goes", () => {
    const prompt = editor();
    prompt.replacePart("prt_tool", toolPart("call_1", "read", { error: "no" }));
    assert.equal(prompt.messages[1]?.parts[1]?.id, "");
    assert.throws(() => prompt.removePart("prt_tool"), { reason: Reason.ANCHOR_NOT_IN_PROMPT });
    prompt.removePart("prt_msg_1");
    assert.deepEqual(shape(prompt), ["msg_2"]);
    prompt.remove("msg_2");
    assert.equal(prompt.length, 0);
  });

  test("nothing outside changes, and nothing outside changes it", () => {
    const stored = user("msg_1");
    const history = new History([stored]);
    const prompt = PromptEditor.of(history, "trn_1");
    prompt.appendTo("user", "more");
    assert.equal(stored.parts.length, 1);
    const digest = prompt.digest();
    for (const { message } of prompt.items) {
      message?.parts.pop();
    }
    prompt.messages[0]?.parts.pop();
    prompt.mutations.pop();
    stored.parts.pop();
    assert.deepEqual(prompt.digest(), digest);
    assert.equal(prompt.mutations.length, 1);
  });

  test("a list of mutations is applied as a whole or not at all", () => {
    const prompt = editor();
    const before = prompt.digest();
    assert.throws(
      () =>
        prompt.apply(
          { kind: { case: "remove", value: { messageId: "msg_1" } } },
          { kind: { case: "remove", value: { messageId: "msg_1" } } },
        ),
      { reason: Reason.ANCHOR_NOT_IN_PROMPT, path: "mutations[1].remove.message_id" },
    );
    assert.deepEqual(prompt.digest(), before);
    prompt.apply();
    assert.deepEqual(prompt.digest(), before);
  });

  test("the result of a record is the base of the next editor", () => {
    const first = editor();
    first.append("user", "hook one");
    const second = new PromptEditor(first.items, { basePromptId: "prm_1" });
    second.append("user", "hook two");
    const origins = second.items.map(({ origin }) =>
      origin.case === "mutation" ? origin.value.promptId : origin.value,
    );
    assert.deepEqual(origins, ["msg_1", "msg_2", "prm_1", undefined]);
  });
});

describe("refusals", () => {
  const cases: [string, (prompt: PromptEditor) => void, Reason, string][] = [
    [
      "no message of the role",
      (p) => new PromptEditor().appendTo("user", "x") ?? p,
      Reason.NO_MESSAGE_OF_ROLE,
      "mutations[0].append_to",
    ],
    ["an unknown message", (p) => p.remove("msg_9"), Reason.ANCHOR_UNKNOWN, "mutations[0].remove.message_id"],
    [
      "a removed message",
      (p) => p.insertAfter("msg_0", "user", "x"),
      Reason.ANCHOR_REMOVED,
      "mutations[0].insert_after.message_id",
    ],
    [
      "a signed part, removed",
      (p) => p.removePart("prt_signed"),
      Reason.SIGNED_PART,
      "mutations[0].remove_part.part_id",
    ],
    [
      "a signed part, replaced",
      (p) => p.replacePart("prt_signed", "x"),
      Reason.SIGNED_PART,
      "mutations[0].replace_part.part_id",
    ],
    ["a message without parts", (p) => p.append("user"), Reason.RULE_VIOLATION, "mutations[0].append.message.parts"],
    [
      "a part with an id",
      (p) => p.append("user", { ...textPart("x"), id: "prt_9" }),
      Reason.TRANSIENT_PART_HAS_ID,
      "mutations[0].append.message.parts[0].id",
    ],
    [
      "a call id that is there",
      (p) => p.appendTo("assistant", toolPart("call_1", "x", { output: "" })),
      Reason.DUPLICATE_CALL_ID,
      "mutations[0].append_to.parts[0].tool.call_id",
    ],
    [
      "a tool in a user's message",
      (p) => p.replacePart("prt_msg_1", toolPart("call_2", "x", { output: "" })),
      Reason.RULE_VIOLATION,
      "mutations[0].replace_part.part.tool",
    ],
    ["no mutation at all", (p) => p.apply({}), Reason.UNKNOWN_TO_THIS_SERVER, "mutations[0].kind"],
    ["an id that is none", (p) => p.remove("no space"), Reason.RULE_VIOLATION, "mutations[0].remove.message_id"],
  ];
  for (const [what, edit, reason, path] of cases) {
    test(what, () => {
      const prompt = editor();
      const before = prompt.digest();
      assert.throws(() => edit(prompt), { name: "TurnwireError", reason, path });
      assert.deepEqual(prompt.digest(), before);
      assert.equal(prompt.mutations.length, 0);
    });
  }

  test("half of a surrogate pair, which has no bytes, and nothing has changed", () => {
    const prompt = editor();
    prompt.append("user", "whole");
    const half = "\ud83d";
    const edits: [string, () => void][] = [
      ["mutations[1].append.message.parts[0].text.text", () => prompt.append("user", half)],
      ["mutations[1].append_to.parts[0].text.text", () => prompt.appendTo("user", half)],
      ["mutations[1].remove.message_id", () => prompt.remove(half)],
      ["parts[1].text.text", () => deterministic(PromptMessageSchema, promptMessage("user", "whole", half))],
      ["messages[1].parts[0].text.text", () => promptDigest([promptMessage("user"), promptMessage("user", half)])],
      [
        "items[0].message.parts[0].text.text",
        () => new PromptEditor([create(PromptItemSchema, { message: promptMessage("user", half) })]),
      ],
    ];
    for (const [path, edit] of edits) {
      assert.throws(edit, { name: "TurnwireError", reason: Reason.RULE_VIOLATION, path });
    }
    assert.equal(prompt.mutations.length, 1);
  });

  test("a turn or a profile that is not known", () => {
    const history = new History([user("msg_1")]);
    assert.throws(() => PromptEditor.of(history, "trn_9"), { reason: Reason.TURN_NOT_FOUND });
    assert.throws(() => PromptEditor.of(history, "trn_1", "toString"), { reason: Reason.UNKNOWN_PROFILE });
  });

  test("what is no role is a TypeError", () => {
    assert.throws(() => editor().append("system" as "user", "x"), TypeError);
    assert.throws(() => editor().append(promptMessage("user", "x"), "y"), TypeError);
  });
});

describe("assembling", () => {
  const compaction = (tailStartId?: string): PromptPart =>
    create(PromptPartSchema, {
      id: "prt_c",
      kind: { case: "compaction", value: tailStartId === undefined ? {} : { tailStartId } },
    });
  const summary = (id: string, text: string, finish?: string) =>
    assistant(id, [{ ...textPart(text), id: `prt_${id}` }], {
      parentId: "msg_c",
      result: { kind: ResultKind.SUMMARY, ...(finish !== undefined && { finish }) },
    });

  test("from the newest completed compaction on: its message, summary, tail, rest", () => {
    const messages = [
      user("msg_1"),
      user("msg_2"),
      user("msg_c", [compaction("msg_2")]),
      summary("msg_s", "sum", "stop"),
    ];
    const assembly = assemble(new History([...messages, user("msg_3"), user("msg_4", [])]), "trn_1");
    assert.deepEqual(shape(assembly), ["msg_c", "msg_s", "msg_2", "msg_3"]);
    assert.equal(assembly.messageFate("msg_1"), "compacted");
    assert.equal(assembly.partFate("prt_msg_1"), "compacted");
    assert.equal(assembly.messageFate("msg_4"), "live");
    const prompt = new PromptEditor(assembly.items, { fates: assembly });
    assert.throws(() => prompt.remove("msg_1"), { reason: Reason.ANCHOR_COMPACTED });
    assert.throws(() => prompt.remove("msg_4"), { reason: Reason.ANCHOR_NOT_IN_PROMPT });
  });

  test("a summary that is not finished, or blank, compacts nothing", () => {
    for (const unfinished of [summary("msg_s", "sum"), summary("msg_s", " \u3000\n", "stop")]) {
      const history = new History([user("msg_1"), user("msg_c", [compaction()]), unfinished]);
      assert.deepEqual(shape(assemble(history, "trn_1")), ["msg_1", "msg_c", "msg_s"]);
    }
    const blank = new History([user("msg_1"), user("msg_c", [compaction()]), summary("msg_s", "", "stop")]);
    assert.deepEqual(shape(assemble(blank, "trn_1", "opencode")), ["msg_c", "msg_s"]);
  });

  test("a turn gets what comes up to its last message", () => {
    const later = { ...user("msg_2"), turnId: "trn_2" };
    const turns = [{ id: "trn_3" }] as never;
    const history = new History([user("msg_1"), later], { turns });
    assert.deepEqual(shape(assemble(history, "trn_1")), ["msg_1"]);
    assert.deepEqual(shape(assemble(history, "trn_3")), ["msg_1", "msg_2"]);
  });
});
