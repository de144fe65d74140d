// Parts as opencode writes them: what would be written from the fields alone.

import type {
  FilePart,
  FileSource,
  PartTime,
  Position,
  PromptPart,
  ProviderMetadata,
  SubtaskPart,
  TextSpan,
  ToolAttachment,
  ToolPart,
} from "@turnwire/client/v1";
import { ToolState } from "@turnwire/client/v1";
import { toError } from "./failures.js";
import { type Owner, usageTree } from "./shape.js";
import { Document, defined, type Json, milliseconds, type Tree } from "./values.js";

/** The prefix of opencode's part types in extension parts. */
export const EXTENSION = "opencode/";

const STATUS: Partial<Record<ToolState, string>> = {
  [ToolState.RUNNING]: "running",
  [ToolState.COMPLETED]: "completed",
  [ToolState.ERROR]: "error",
};

/**
 * The object of a part; undefined if opencode has nothing like it. `tailStart` is opencode's id of the message that a
 * compaction keeps from.
 */
export function partTree(part: PromptPart, owner: Owner, tailStart?: string): Tree | undefined {
  const members = kindTree(part, owner, tailStart);
  return members && { id: part.id, sessionID: owner.sessionId, messageID: owner.messageId, ...members };
}

function kindTree({ kind }: PromptPart, owner: Owner, tailStart: string | undefined): Tree | undefined {
  switch (kind.case) {
    case "text": {
      const { text, synthetic, ignored, time, provider } = kind.value;
      return tree({ type: "text", text, synthetic, ignored, time: period(time), metadata: metadata(provider) });
    }
    case "reasoning": {
      const { text, time, provider } = kind.value;
      return tree({ type: "reasoning", text, time: period(time), metadata: metadata(provider) });
    }
    case "file":
      return fileTree(kind.value);
    case "tool":
      return toolTree(kind.value, owner);
    case "subtask":
      return subtaskTree(kind.value);
    case "agent":
      return tree({ type: "agent", name: kind.value.name, source: kind.value.source && span(kind.value.source) });
    case "stepStart":
      return tree({ type: "step-start", snapshot: kind.value.snapshot });
    case "stepFinish": {
      const { reason, snapshot, usage } = kind.value;
      return tree({ type: "step-finish", reason, snapshot, ...usageTree(usage) });
    }
    case "snapshot":
      return { type: "snapshot", snapshot: kind.value.snapshot };
    case "patch":
      return { type: "patch", hash: kind.value.hash, files: [...kind.value.files] };
    case "retry": {
      const { attempt, failure, created } = kind.value;
      const error = toError(failure ?? { kind: { case: undefined } });
      return tree({ type: "retry", attempt, error, time: created && { created: milliseconds(created) } });
    }
    case "compaction":
      return tree({
        type: "compaction",
        auto: kind.value.auto,
        overflow: kind.value.overflow,
        tail_start_id: tailStart,
      });
    default:
      return undefined;
  }
}

/** The object of a file that belongs to a tool's output. */
export function attachmentTree({ label, file }: ToolAttachment, owner: Owner): Tree {
  const members = file === undefined ? {} : fileTree(file);
  return { id: label, sessionID: owner.sessionId, messageID: owner.messageId, ...members };
}

function tree(members: Record<string, Json | undefined>): Tree {
  return defined(members) as Tree;
}

function period(time: PartTime | undefined): Tree | undefined {
  return time && tree({ start: time.start && milliseconds(time.start), end: time.end && milliseconds(time.end) });
}

function metadata(provider: ProviderMetadata | undefined): Document | undefined {
  return provider?.metadataJson ? new Document(provider.metadataJson) : undefined;
}

function span({ value, start, end }: TextSpan): Tree {
  return { value, start: Number(start), end: Number(end) };
}

function fileTree({ mime, filename, url, source }: FilePart): Tree {
  return tree({ type: "file", mime, filename, url, source: source && sourceTree(source) });
}

function sourceTree({ text, kind }: FileSource): Tree {
  const head = { text: text && span(text) };
  switch (kind.case) {
    case "symbol": {
      const { path, range, name, kind: symbol } = kind.value;
      const place = range && { start: position(range.start), end: position(range.end) };
      return tree({ ...head, type: "symbol", path, range: place, name, kind: symbol });
    }
    case "resource":
      return tree({ ...head, type: "resource", clientName: kind.value.clientName, uri: kind.value.uri });
    default:
      return tree({ ...head, type: "file", path: kind.value?.path ?? "" });
  }
}

function position(position: Position | undefined): Tree {
  return { line: Number(position?.line ?? 0), character: Number(position?.character ?? 0) };
}

function subtaskTree({ prompt, description, agent, model, command }: SubtaskPart): Tree {
  const ref = model && { providerID: model.providerId, modelID: model.modelId };
  return tree({ type: "subtask", prompt, description, agent, model: ref, command });
}

function toolTree(tool: ToolPart, owner: Owner): Tree {
  const time = tree({
    ...period(tool.time),
    compacted: tool.compacted && milliseconds(tool.compacted),
  });
  const state = tree({
    status: STATUS[tool.state] ?? "pending",
    input: tool.inputJson ? new Document(tool.inputJson) : undefined,
    raw: tool.rawInput,
    output: tool.output,
    error: tool.error,
    title: tool.title,
    metadata: tool.metadataJson ? new Document(tool.metadataJson) : undefined,
    time: Object.keys(time).length > 0 ? time : undefined,
    attachments: tool.attachments.length > 0 ? tool.attachments.map((one) => attachmentTree(one, owner)) : undefined,
  });
  return tree({ type: "tool", callID: tool.callId, tool: tool.name, state, metadata: metadata(tool.provider) });
}
