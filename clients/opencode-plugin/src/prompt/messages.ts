// The messages that opencode is about to send, as the items of a prompt, and back.

import { randomUUID } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Assistant,
  type AssistantFactsSchema,
  type PromptItem,
  PromptItemSchema,
  type PromptMessage,
  type PromptPart,
  ResultKind,
  Role,
} from "@turnwire/client/v1";
import { isUser, legalId, type MessageRecord, mapWhole, type Tree } from "../mapping/index.js";
import { partTree } from "../mapping/shapeParts.js";
import { defined, treeOf } from "../mapping/values.js";
import { complete } from "./complete.js";

/** A message in the array that opencode hands to a transform. */
export interface Message {
  info: Tree;
  parts: Tree[];
}

/** The messages as items. One without parts is nothing that a model gets, and none of them. */
export function itemsOf(messages: readonly Message[]): PromptItem[] {
  const records = JSON.parse(JSON.stringify(messages)) as MessageRecord[];
  // One by one: the order is opencode's, in which a compaction's summary can stand before what it keeps.
  return records.flatMap((record) => {
    const [message] = mapWhole({}, [record]).messages;
    if (message === undefined || message.parts.length === 0) {
      return [];
    }
    const { header, parts } = message;
    const role = isUser(header) ? Role.USER : Role.ASSISTANT;
    return create(PromptItemSchema, {
      message: { role, parts },
      origin: { case: "messageId", value: header.id },
      ...(isUser(header) ? {} : { facts: factsOf(header) }),
    });
  });
}

function factsOf({ run, time, result }: Assistant): MessageInitShape<typeof AssistantFactsSchema> {
  const { failure, finish, kind } = result ?? {};
  const completed = time?.completed !== undefined;
  return defined({ model: run?.model, failure, finish, completed, kind: kind || ResultKind.REPLY });
}

/**
 * The messages for the items of an edited prompt. What was not edited is the very object that was there; what is new
 * gets the ids, the times and the model that opencode wants, from the messages around it.
 */
export function messagesOf(items: readonly PromptItem[], before: readonly Message[], now: number): Message[] {
  const byId = new Map(before.map((message) => [legalId(String(message.info.id)), message]));
  const after: Message[] = [];
  for (const { message, origin } of items) {
    const there = origin.case === "messageId" ? byId.get(origin.value) : undefined;
    if (message === undefined) {
      continue;
    }
    if (there !== undefined) {
      after.push(edited(there, message));
    } else {
      after.push(made(message, after, before, now));
    }
  }
  return withEmpty(after, before);
}

/** A message with the parts that it now has; the message itself if these are the same. */
function edited(there: Message, { parts }: PromptMessage): Message {
  const byId = new Map(there.parts.map((part) => [legalId(String(part.id)), part]));
  const now = parts.flatMap((part): Tree[] => {
    const own = byId.get(part.id);
    return own === undefined ? partOf(part, there.info) : [own];
  });
  const same = now.length === there.parts.length && now.every((part, at) => part === there.parts[at]);
  return same ? there : { info: there.info, parts: now };
}

/** A message that the hook made. */
function made(
  { role, parts }: PromptMessage,
  after: readonly Message[],
  before: readonly Message[],
  now: number,
): Message {
  const known = [...after].reverse().concat(before);
  const user = known.find(({ info }) => info.role === "user")?.info ?? {};
  const assistant = known.find(({ info }) => info.role === "assistant")?.info ?? {};
  const head = { id: newId("msg"), sessionID: user.sessionID ?? assistant.sessionID ?? "" };
  const model = treeOf(user.model);
  const agent = user.agent ?? assistant.agent ?? "";
  const info: Tree =
    role === Role.USER
      ? {
          ...head,
          role: "user",
          time: { created: now },
          agent,
          model: user.model ?? { providerID: assistant.providerID ?? "", modelID: assistant.modelID ?? "" },
        }
      : {
          ...head,
          role: "assistant",
          time: { created: now, completed: now },
          parentID: user.id ?? head.id,
          modelID: model.modelID ?? assistant.modelID ?? "",
          providerID: model.providerID ?? assistant.providerID ?? "",
          mode: agent,
          agent,
          path: assistant.path ?? { cwd: "/", root: "/" },
          cost: 0,
          tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
          finish: "stop",
        };
  return { info, parts: parts.flatMap((part) => partOf(part, info)) };
}

/** A part that the hook made; nothing for one that opencode has nothing like. */
function partOf(part: PromptPart, { id, sessionID, time }: Tree): Tree[] {
  const owner = { sessionId: String(sessionID), messageId: String(id) };
  const tree = partTree({ ...part, id: newId("prt") }, owner);
  return tree === undefined ? [] : [complete(tree, treeOf(time).created ?? 0)];
}

function newId(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll("-", "")}`;
}

/** Messages without parts are no items; they stay behind the message that they stood behind. */
function withEmpty(after: Message[], before: readonly Message[]): Message[] {
  const kept = [...after];
  let previous: Message | undefined;
  for (const message of before) {
    if (message.parts.length === 0) {
      const at = kept.findIndex(({ info }) => info === previous?.info);
      kept.splice(at + 1, 0, message);
    }
    if (message.parts.length === 0 || kept.some(({ info }) => info === message.info)) {
      previous = message;
    }
  }
  return kept;
}
