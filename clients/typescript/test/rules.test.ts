import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { check, checkJson, Reason, requireValid, textPart, toolPart } from "@turnwire/client";
import {
  AppendToSchema,
  ModelRefSchema,
  MutationSchema,
  PromptPartSchema,
  Role,
  SessionPropertiesSchema,
  UserSchema,
} from "@turnwire/client/v1";

describe("JSON texts", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const cases: [string, boolean, string | undefined][] = [
    ["", true, undefined],
    [' {"a": 1.0, "a": 1e999}\n', true, undefined],
    ['"\\ud83d"', false, undefined],
    ["NaN", false, "turnwire.json.syntax"],
    ["\ufeff{}", false, "turnwire.json.syntax"],
    ["{} {}", false, "turnwire.json.syntax"],
    ["[1,]", false, "turnwire.json.syntax"],
    ["[]", true, "turnwire.json.shape"],
    ["null", true, "turnwire.json.shape"],
    [nested(128), false, undefined],
    [nested(129), false, "turnwire.json.depth"],
    [`"${"[".repeat(200)}\\"${"[".repeat(200)}"`, false, undefined],
    ["[".repeat(1_000_000), false, "turnwire.json.depth"],
  ];
  for (const [text, object, rule] of cases) {
    test(`${text.slice(0, 30)}${object ? " as an object" : ""} is ${rule ?? "right"}`, () => {
      assert.equal(checkJson(text, object)?.rule, rule);
    });
  }
});

describe("rules", () => {
  const found = (...args: Parameters<typeof check>) => check(...args).map(({ path, rule }) => [path, rule]);

  test("protovalidate's have its ids, and our own have ours", () => {
    assert.deepEqual(found(ModelRefSchema, create(ModelRefSchema)), [
      ["provider_id", "string.min_len"],
      ["model_id", "string.min_len"],
    ]);
    const labels = { ["k".repeat(200)]: "v", "no space": "v" };
    const properties = create(SessionPropertiesSchema, { labels, created: { seconds: 253_402_300_800n } });
    assert.deepEqual(found(SessionPropertiesSchema, properties), [
      [`labels["${"k".repeat(64)}…"]`, "string.max_bytes"],
      ['labels["no space"]', "string.pattern"],
      ["created", "turnwire.timestamp"],
    ]);
  });

  test("ids are asked of what is stored, and refused in what a hook writes", () => {
    const part = textPart("x");
    assert.deepEqual(found(PromptPartSchema, part), []);
    assert.deepEqual(found(PromptPartSchema, part, { stored: true }), [["id", "required"]]);
    const withId = { ...part, id: "prt_1" };
    assert.deepEqual(found(PromptPartSchema, withId, { stored: false }), [["id", "turnwire.stored_only"]]);
    const append = create(AppendToSchema, { role: Role.USER, parts: [withId] });
    assert.deepEqual(found(AppendToSchema, append, { stored: true }), [["parts[0].id", "turnwire.stored_only"]]);
  });

  test("a kind of part has its holders", () => {
    const call = toolPart("call_1", "read", { output: "" });
    assert.deepEqual(found(PromptPartSchema, call), []);
    assert.deepEqual(found(PromptPartSchema, call, { role: Role.USER }), [["tool", "turnwire.held_by"]]);
    const user = create(UserSchema, { id: "msg_1", turnId: "trn_1", time: { created: {} }, parts: [call] });
    assert.deepEqual(found(UserSchema, user), [["parts[0].tool", "turnwire.held_by"]]);
  });

  test("half of a surrogate pair is a violation, since it cannot be written", () => {
    assert.deepEqual(found(PromptPartSchema, textPart("\ud83d")), [["text.text", "turnwire.wire_format"]]);
  });

  test("violations come by number, index and key, whatever found them", () => {
    const labels = { "😀": "", "\uffee": "", a: "", 'a"b': "", "": "" };
    const properties = create(SessionPropertiesSchema, { title: "x".repeat(4097), labels, extraJson: "[" });
    assert.deepEqual(found(SessionPropertiesSchema, properties), [
      ["title", "string.max_len"],
      ['labels[""]', "string.min_len"],
      ['labels[""]', "string.pattern"],
      ['labels["a\\"b"]', "string.pattern"],
      ['labels["\uffee"]', "string.pattern"],
      ['labels["😀"]', "string.pattern"],
      ["created", "required"],
      ["extra_json", "turnwire.json.syntax"],
    ]);
    const parts = [...Array(10).fill(textPart("")), toolPart("", "read", { output: "" }), create(PromptPartSchema)];
    const append = create(AppendToSchema, { role: Role.USER, parts });
    assert.deepEqual(found(AppendToSchema, append), [
      ["parts[10].tool", "turnwire.held_by"],
      ["parts[10].tool.call_id", "string.min_len"],
      ["parts[11].kind", "turnwire.unknown"],
    ]);
  });

  test("the first thing wrong chooses the reason", () => {
    const unknown = create(MutationSchema);
    assert.throws(() => requireValid(MutationSchema, unknown, "mutations[0]"), {
      reason: Reason.UNKNOWN_TO_THIS_SERVER,
      status: "INVALID_ARGUMENT",
      path: "mutations[0].kind",
    });
    const twice = create(AppendToSchema, {
      role: Role.ASSISTANT,
      parts: [toolPart("c", "read", { output: "" }), toolPart("c", "read", { output: "" })],
    });
    assert.throws(() => requireValid(AppendToSchema, twice), {
      reason: Reason.DUPLICATE_CALL_ID,
      status: "FAILED_PRECONDITION",
      path: "parts[1].tool.call_id",
    });
    assert.throws(() => requireValid(ModelRefSchema, create(ModelRefSchema)), {
      reason: Reason.RULE_VIOLATION,
      metadata: { path: "provider_id", rule: "string.min_len", violations: "2" },
    });
  });
});
