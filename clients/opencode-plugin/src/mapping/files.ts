// opencode's file objects: those of file parts, and those that belong to a tool's output.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FilePartSchema, FileSourceSchema, TextSpanSchema } from "@turnwire/client/v1";
import { bigOf, countOf, defined, INT32, isTree, type Json, type Tree, textOf, treeOf } from "./values.js";

type FileInit = MessageInitShape<typeof FilePartSchema>;

/** The file of a file object; undefined if it has no address. */
export function fileOf(tree: Tree): FileInit | undefined {
  const url = textOf(tree.url);
  if (!url) {
    return undefined;
  }
  return defined({
    mime: textOf(tree.mime, 256) ?? "",
    filename: textOf(tree.filename, 4096),
    url,
    source: sourceOf(tree.source),
  }) as FileInit;
}

function sourceOf(value: Json | undefined): MessageInitShape<typeof FileSourceSchema> | undefined {
  if (!isTree(value)) {
    return undefined;
  }
  const path = textOf(value.path) ?? "";
  const head = defined({ text: spanOf(value.text) });
  switch (value.type) {
    case "file":
      return { ...head, kind: { case: "file", value: { path } } };
    case "symbol": {
      const symbol = defined({
        path,
        range: isTree(value.range)
          ? { start: positionOf(value.range.start), end: positionOf(value.range.end) }
          : undefined,
        name: textOf(value.name) ?? "",
        kind: countOf(value.kind, INT32) ?? 0,
      });
      return { ...head, kind: { case: "symbol", value: symbol } };
    }
    case "resource": {
      const resource = { clientName: textOf(value.clientName) ?? "", uri: textOf(value.uri) ?? "" };
      return { ...head, kind: { case: "resource", value: resource } };
    }
    default:
      return undefined;
  }
}

/** A span of text; undefined if there is none. */
export function spanOf(value: Json | undefined): MessageInitShape<typeof TextSpanSchema> | undefined {
  return isTree(value)
    ? { value: textOf(value.value) ?? "", start: bigOf(value.start) ?? 0n, end: bigOf(value.end) ?? 0n }
    : undefined;
}

function positionOf(value: Json | undefined) {
  const { line, character } = treeOf(value);
  return { line: bigOf(line) ?? 0n, character: bigOf(character) ?? 0n };
}
