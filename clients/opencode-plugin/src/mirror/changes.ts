// Changes of one session, as entries behind what its log holds.

import {
  callIdOf,
  legalId,
  mapAssistant,
  mapPart,
  mapUser,
  placeOf,
  roleOf,
  type Tree,
  turnOf,
} from "../mapping/index.js";
import type { Change } from "./pending.js";
import type { Writer } from "./writer.js";

/** The change refers to what the log does not hold, or touches what only a comparison of the whole can put right. */
export class Stale extends Error {}

/** Adds a change of a message or part to an append. Throws Stale. */
export function write(change: Change, sessionId: string, writer: Writer): void {
  switch (change.kind) {
    case "message":
      writeMessage(JSON.parse(change.text) as Tree, writer);
      break;
    case "part":
      writePart(JSON.parse(change.text) as Tree, sessionId, change.messageId, writer);
      break;
    case "delta":
      writer.text(legalId(change.id), change.added);
      break;
    case "removeMessage":
      writer.removeMessage(legalId(change.id));
      break;
    case "removePart":
      writer.removePart(legalId(change.id));
      break;
  }
}

function writeMessage(info: Tree, writer: Writer): void {
  const { view } = writer;
  const place = placeOf(info);
  const there = view.message(legalId(place.id));
  if (roleOf(info) === "user") {
    const { turn, user, summary } = mapUser(info);
    if (there !== undefined && there.turnId !== turn.id) {
      throw new Stale("the settings of a turn have changed"); // and with them the turns of its answers
    }
    writer.turn(turn);
    writer.header(user, place);
    writer.summary(user.id, summary);
  } else if (roleOf(info) === "assistant") {
    const asked = typeof info.parentID === "string" ? view.message(legalId(info.parentID)) : undefined;
    const assistant = mapAssistant(info, asked?.isUser ?? false);
    const before = view.messages.findLast((message) => message.isUser && message.id !== there?.id);
    const turnId = asked?.isUser ? asked.turnId : there?.turnId || before?.turnId;
    if (turnId === undefined) {
      const turn = turnOf(assistant);
      writer.turn(turn);
      assistant.turnId = turn.id;
    } else {
      assistant.turnId = turnId;
    }
    writer.header(assistant, place);
  }
}

function writePart(tree: Tree, sessionId: string, messageId: string, writer: Writer): void {
  const message = writer.view.message(legalId(messageId));
  if (message === undefined) {
    throw new Stale("a part of a message that is not there");
  }
  const id = legalId(String(tree.id));
  const callId = callIdOf(tree);
  const { messages } = writer.view;
  const part = mapPart(tree, {
    role: message.isUser ? "user" : "assistant",
    owner: { sessionId, messageId },
    repeatsCall: callId !== undefined && message.parts.some((other) => other.id !== id && other.callId === callId),
    isEarlier: (other) =>
      messages.findIndex((each) => each.id === other) < messages.indexOf(message) &&
      writer.view.message(other) !== undefined,
  });
  writer.part(message.id, part);
}
