import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EntryInputSchema } from "./gen/turnwire/v1/append_requests_pb.js";
import type { RemovalSchema } from "./gen/turnwire/v1/entry_pb.js";
import type { AssistantSchema, MessageSummarySchema, UserSchema } from "./gen/turnwire/v1/message_pb.js";
import type { PromptPartSchema } from "./gen/turnwire/v1/part_pb.js";
import type { RevertSchema, SessionPropertiesSchema } from "./gen/turnwire/v1/session_pb.js";
import type { TurnSchema } from "./gen/turnwire/v1/turn_pb.js";

/** An entry for an append, as `Client.append` takes it. */
export type EntryInit = MessageInitShape<typeof EntryInputSchema>;

/** Short ways to write the entries of an append. `beforeId`, on a first put only: the place to take. */
export const entry = {
  /** The session's properties, whole. */
  session(properties: MessageInitShape<typeof SessionPropertiesSchema>): EntryInit {
    return { payload: { case: "session", value: properties } };
  },
  turn(turn: MessageInitShape<typeof TurnSchema>): EntryInit {
    return { payload: { case: "turn", value: turn } };
  },
  /** Replaces the header of a user message, and sets the parts that it carries. */
  user(user: MessageInitShape<typeof UserSchema>, beforeId?: string): EntryInit {
    return { payload: { case: "user", value: { user, ...before(beforeId) } } };
  },
  /** Replaces the header of an assistant message, and sets the parts that it carries. */
  assistant(assistant: MessageInitShape<typeof AssistantSchema>, beforeId?: string): EntryInit {
    return { payload: { case: "assistant", value: { assistant, ...before(beforeId) } } };
  },
  part(messageId: string, part: MessageInitShape<typeof PromptPartSchema>, beforeId?: string): EntryInit {
    return { payload: { case: "part", value: { messageId, part, ...before(beforeId) } } };
  },
  /** Text for the end of an open part; `offset` is the length of what is there, in bytes of UTF-8. */
  delta(partId: string, offset: bigint, target: "text" | "rawInput" | "output", text: string): EntryInit {
    return { payload: { case: "delta", value: { partId, offset, target: { case: target, value: text } } } };
  },
  summary(summary: MessageInitShape<typeof MessageSummarySchema>): EntryInit {
    return { payload: { case: "summary", value: summary } };
  },
  removal(target: NonNullable<MessageInitShape<typeof RemovalSchema>["target"]>): EntryInit {
    return { payload: { case: "removal", value: { target } } };
  },
  revert(revert: MessageInitShape<typeof RevertSchema>): EntryInit {
    return { payload: { case: "revert", value: revert } };
  },
  revertClear(): EntryInit {
    return { payload: { case: "revertClear", value: {} } };
  },
};

function before(beforeId: string | undefined): { beforeId?: string } {
  return beforeId === undefined ? {} : { beforeId };
}
