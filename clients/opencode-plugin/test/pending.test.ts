import assert from "node:assert/strict";
import { test } from "node:test";
import { ofSpaces, spacesOf } from "#mapping/extras";
import { type Change, Pending } from "#mirror";

function drain(pending: Pending): Change[] {
  const found: Change[] = [];
  for (let change = pending.shift(); change !== undefined; change = pending.shift()) {
    found.push(change);
  }
  return found;
}

const part = (text: string): Change => ({ kind: "part", id: "prt_1", messageId: "msg_1", text });
const delta = (added: string): Change => ({ kind: "delta", id: "prt_1", messageId: "msg_1", added });

test("of each object the newest state waits, in the place of the first", () => {
  const pending = new Pending(1000);
  pending.add(part("1"));
  pending.add({ kind: "message", id: "msg_2", text: "{}" });
  pending.add(part("2"));
  assert.deepEqual(drain(pending), [part("2"), { kind: "message", id: "msg_2", text: "{}" }]);
});

test("streamed text is gathered, and goes when its part comes whole or is taken out", () => {
  const pending = new Pending(1000);
  pending.add(part("1"));
  pending.add(delta("a"));
  pending.add(delta("b"));
  assert.deepEqual(drain(pending), [part("1"), delta("ab")]);
  pending.add(delta("c"));
  pending.add(part("2"));
  assert.deepEqual(drain(pending), [part("2")]);
  pending.add(part("3"));
  pending.add(delta("d"));
  pending.add({ kind: "removePart", id: "prt_1" });
  assert.deepEqual(drain(pending), [{ kind: "removePart", id: "prt_1" }]);
});

test("a queue is full beyond its limit, and empty again when it is cleared or drained", () => {
  const pending = new Pending(1000);
  pending.add(part("x".repeat(850)));
  assert.equal(pending.isFull, false);
  pending.add(part("x".repeat(950)));
  assert.equal(pending.isFull, true);
  drain(pending);
  assert.deepEqual([pending.isFull, pending.isEmpty], [false, true]);
  pending.add(part("x".repeat(950)));
  pending.clear();
  assert.deepEqual([pending.isFull, pending.isEmpty], [false, true]);
});

test("name spaces of extras come back as they are spelled", () => {
  const spaces: [string, string][] = [
    ["opencode", '{"/a":1.0,"/b":"}\\\\\\",{"}'],
    ['odd "name"', "[1e2,[],{}]"],
    ["text", '"x"'],
  ];
  assert.deepEqual([...spacesOf(ofSpaces(spaces))], spaces);
  assert.deepEqual(
    [...spacesOf(' { "a" : 1 , "b" : { "c" : [ ] } } ')],
    [
      ["a", "1"],
      ["b", '{ "c" : [ ] }'],
    ],
  );
  assert.equal(spacesOf("").size, 0);
  assert.equal(spacesOf("{}").size, 0);
});
