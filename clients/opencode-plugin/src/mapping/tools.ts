// opencode's tool parts: a call with its result.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ToolAttachmentSchema, ToolState } from "@turnwire/client/v1";
import { compare, extraJson } from "./extras.js";
import { fileOf } from "./files.js";
import { type Documents, type Made, periodOf, providerOf } from "./making.js";
import type { Owner } from "./shape.js";
import { attachmentTree } from "./shapeParts.js";
import { defined, documentOf, isTree, type Json, nameOf, type Tree, textOf, timeOf, treeOf } from "./values.js";

const STATES: Record<string, ToolState> = {
  running: ToolState.RUNNING,
  completed: ToolState.COMPLETED,
  error: ToolState.ERROR,
};
const CALL_ID_BYTES = 512;
const LABEL_BYTES = 128;
const MANY_ATTACHMENTS = 1000;

/** The call id of a part object; undefined if it is no tool part that can be held as one. */
export function callIdOf(tree: Tree): string | undefined {
  if (tree.type !== "tool" || !isTree(tree.state)) {
    return undefined;
  }
  const callId = nameOf(tree.callID, String(tree.id), CALL_ID_BYTES);
  return Buffer.byteLength(callId) > CALL_ID_BYTES ? undefined : callId;
}

/** The tool part for a part object; undefined if it has no state or no fitting call id. */
export function toolOf(tree: Tree, owner: Owner): Made {
  const callId = callIdOf(tree);
  if (callId === undefined) {
    return undefined;
  }
  const state = treeOf(tree.state);
  const { provider, documents } = providerOf(tree);
  const inputJson = documentOf(state.input);
  const metadataJson = documentOf(state.metadata, true);
  const taken: Documents = [...documents];
  if (inputJson) {
    taken.push([["state", "input"], inputJson]);
  }
  if (metadataJson) {
    taken.push([["state", "metadata"], metadataJson]);
  }
  const time = periodOf(state.time);
  const tool = defined({
    callId,
    name: nameOf(tree.tool, "unknown"),
    state: (typeof state.status === "string" && STATES[state.status]) || ToolState.PENDING,
    inputJson,
    rawInput: textOf(state.raw),
    output: textOf(state.output),
    error: textOf(state.error),
    title: textOf(state.title),
    metadataJson,
    attachments: attachmentsOf(state.attachments, owner),
    time: time && (time.start || time.end) ? time : undefined,
    compacted: timeOf(treeOf(state.time).compacted),
    provider,
  });
  return { kind: { case: "tool", value: tool }, documents: taken };
}

/** The attachments; none if one of them cannot be taken: all of them then stay in the part's extras. */
function attachmentsOf(value: Json | undefined, owner: Owner): MessageInitShape<typeof ToolAttachmentSchema>[] {
  if (!Array.isArray(value) || value.length > MANY_ATTACHMENTS) {
    return [];
  }
  const made: MessageInitShape<typeof ToolAttachmentSchema>[] = [];
  for (const one of value) {
    const file = isTree(one) ? fileOf(one) : undefined;
    if (file === undefined) {
      return [];
    }
    const named = textOf(treeOf(one).id) ?? "";
    const label = Buffer.byteLength(named) > LABEL_BYTES ? "" : named;
    const attachment = create(ToolAttachmentSchema, { label, file });
    attachment.extraJson = extraJson(compare(one, attachmentTree(attachment, owner)), one);
    made.push(attachment);
  }
  return made;
}
