import { create } from "@bufbuild/protobuf";
import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import type { Assistant, MessageSummary, User } from "../gen/turnwire/v1/message_pb.js";
import type { HistoryFrame } from "../gen/turnwire/v1/replay_requests_pb.js";
import { type Head, HeadSchema } from "../gen/turnwire/v1/session_pb.js";
import type { Turn } from "../gen/turnwire/v1/turn_pb.js";
import { History } from "../prompt/history.js";

/**
 * What a replay yields: each turn once, before the first message that uses it; a message with all its parts; the message's
 * summary if it was asked for; at the end the head. `$typeName` tells them apart, as does isMessage.
 */
export type ReplayItem = Turn | User | Assistant | MessageSummary | Head;

/** The folded history of a session at the revision of its head. */
export class SessionHistory {
  head: Head = create(HeadSchema);
  /** By id, in the order of their first messages. */
  readonly turns = new Map<string, Turn>();
  /** In their order, whole. */
  readonly messages: (User | Assistant)[] = [];
  /** By the id of the message, if they were asked for. */
  readonly summaries = new Map<string, MessageSummary>();

  /** Takes in the next item of a replay. */
  add(item: ReplayItem): void {
    switch (item.$typeName) {
      case "turnwire.v1.Turn":
        this.turns.set(item.id, item);
        break;
      case "turnwire.v1.User":
      case "turnwire.v1.Assistant":
        this.messages.push(item);
        break;
      case "turnwire.v1.MessageSummary":
        this.summaries.set(item.messageId, item);
        break;
      case "turnwire.v1.Head":
        this.head = item;
        break;
    }
  }

  /**
   * The same for a PromptEditor. It does not know what was removed: an anchor on a removed message is unknown here, and
   * removed to the server.
   */
  forPrompt(): History {
    return new History(this.messages, { turns: this.turns.values() });
  }
}

/**
 * Puts whole messages together out of the frames of a replay. Throws UNKNOWN_PAYLOAD for a frame of a later schema, which
 * may hold what belongs to the history.
 */
export async function* whole(
  responses: AsyncIterable<{ readonly frames: HistoryFrame[] }>,
): AsyncGenerator<ReplayItem, void, undefined> {
  let message: User | Assistant | undefined;
  let number = 0;
  for await (const { frames } of responses) {
    for (const { frame, $unknown } of frames) {
      number++;
      if (frame.case === "parts" && message !== undefined) {
        message.parts.push(...frame.value.parts);
        continue;
      }
      if (message !== undefined) {
        yield message;
        message = undefined;
      }
      if (frame.case === "user" || frame.case === "assistant") {
        message = frame.value;
      } else if (frame.case === "parts") {
        throw new TurnwireError(Reason.UNSPECIFIED, `frame ${number} of the replay has parts of no message`);
      } else if (frame.case !== undefined) {
        yield frame.value;
      } else if ($unknown?.length) {
        const metadata = { frame: String(number) };
        throw new TurnwireError(Reason.UNKNOWN_PAYLOAD, "the replay has a frame of a later schema", { metadata });
      }
    }
  }
  if (message !== undefined) {
    yield message;
  }
}
