// What opencode wants in a part and the author of a hook does not have to know, as turnwire.formats.opencode.complete
// fills it in for what did not come from opencode.

import { Document, isTree, type Json, type Tree, treeOf } from "../mapping/values.js";

/** A part as opencode takes it; `created` is when its message was. Documents become the values that they stand for. */
export function complete(part: Tree, created: Json): Tree {
  const plain = parsed(part) as Tree;
  switch (plain.type) {
    case "reasoning":
      return { ...plain, time: { start: created, ...treeOf(plain.time) } };
    case "tool":
      return { ...plain, state: state(treeOf(plain.state), created) };
    default:
      return plain;
  }
}

function state(given: Tree, created: Json): Tree {
  const { status, input, time } = given;
  const object = isTree(input) ? input : input === undefined ? {} : { input };
  const start = { start: created, ...treeOf(time) };
  switch (status) {
    case "pending":
      return { raw: "", ...given, input: object };
    case "running":
      return { ...given, input: object, time: start };
    case "completed":
      return { output: "", title: "", metadata: {}, ...given, input: object, time: { end: start.start, ...start } };
    default:
      return { error: "", ...given, input: object, time: { end: start.start, ...start } };
  }
}

function parsed(value: Json): Json {
  if (value instanceof Document) {
    return JSON.parse(value.text) as Json;
  }
  if (Array.isArray(value)) {
    return value.map(parsed);
  }
  return isTree(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, parsed(item)])) : value;
}
