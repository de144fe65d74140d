// Compares a whole session with what its log holds.

import { isUser, type WholeMessage, type WholeSession } from "../mapping/index.js";
import { milliseconds } from "../mapping/values.js";
import type { LogView } from "./view.js";
import type { Writer } from "./writer.js";

/** What has to be done so that a log holds a whole session, step by step. */
export function* steps(whole: WholeSession, view: LogView): Generator<(writer: Writer) => void> {
  const wished = new Map(whole.messages.map((message) => [message.header.id, message]));
  for (const message of [...view.messages]) {
    const parts = wished.get(message.id)?.parts;
    if (parts === undefined) {
      if (message.ours) {
        yield (writer) => writer.removeMessage(message.id);
      }
      continue;
    }
    const ids = new Set(parts.map(({ id }) => id));
    for (const part of message.parts.filter(({ id, ours }) => ours && !ids.has(id))) {
      yield (writer) => writer.removePart(part.id);
    }
  }
  for (const { turn, header, summary } of parentsFirst(whole.messages, wished)) {
    const created = header.time?.created ? milliseconds(header.time.created) : 0;
    yield (writer) => {
      writer.turn(turn);
      writer.header(header, { created, id: header.id });
      if (isUser(header)) {
        writer.summary(header.id, summary);
      }
    };
  }
  for (const { header, parts } of whole.messages) {
    for (const part of parts) {
      yield (writer) => writer.part(header.id, part);
    }
  }
}

/** The messages in order, but for those that an assistant before them, whose clock ran ahead, names as its parent. */
function parentsFirst(messages: readonly WholeMessage[], byId: Map<string, WholeMessage>): Set<WholeMessage> {
  const ordered = new Set<WholeMessage>();
  for (const message of messages) {
    const parent = isUser(message.header) ? undefined : byId.get(message.header.parentId ?? "");
    ordered.add(parent ?? message).add(message);
  }
  return ordered;
}
