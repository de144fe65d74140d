import { create, isMessage } from "@bufbuild/protobuf";
import { Role } from "../gen/turnwire/v1/options_pb.js";
import { type PromptPart, PromptPartSchema, ToolState } from "../gen/turnwire/v1/part_pb.js";
import { type PromptMessage, PromptMessageSchema } from "../gen/turnwire/v1/prompt_pb.js";

/** A role by its name in conversation, or as the schema's enum. */
export type RoleLike = "user" | "assistant" | Role;

/** A part, or a text that is to become one. */
export type Content = string | PromptPart;

const ROLES: Record<string, Role> = { user: Role.USER, assistant: Role.ASSISTANT };

/** The enum value of a role. Throws a TypeError for another word. */
export function roleOf(role: RoleLike): Role {
  const found = typeof role === "string" ? ROLES[role] : role;
  if (found === undefined) {
    throw new TypeError(`a role is "user" or "assistant", not ${JSON.stringify(role)}`);
  }
  return found;
}

/** A text. `synthetic`: a program and not the role's author wrote it; `ignored`: it is not for the model. */
export function textPart(text: string, flags: { synthetic?: boolean; ignored?: boolean } = {}): PromptPart {
  return create(PromptPartSchema, { kind: { case: "text", value: { text, ...flags } } });
}

/** A file by its URL (a data URL holds the content) and media type. */
export function filePart(url: string, mime: string, filename?: string): PromptPart {
  const value = filename === undefined ? { url, mime } : { url, mime, filename };
  return create(PromptPartSchema, { kind: { case: "file", value } });
}

/** A finished tool call with its result: an `output`, or an `error` if it failed. `inputJson` is one JSON document. */
export function toolPart(
  callId: string,
  name: string,
  result: { inputJson?: string } & ({ output: string } | { error: string }),
): PromptPart {
  const state = "error" in result ? ToolState.ERROR : ToolState.COMPLETED;
  return create(PromptPartSchema, {
    kind: { case: "tool", value: { callId, name, state, inputJson: "{}", ...result } },
  });
}

/** A part as it is, a string as a text part. */
export function partOf(content: Content): PromptPart {
  return typeof content === "string" ? textPart(content) : content;
}

/** A prompt message of a role with parts; strings become text parts. */
export function promptMessage(role: RoleLike, ...content: Content[]): PromptMessage {
  return create(PromptMessageSchema, { role: roleOf(role), parts: content.map(partOf) });
}

/** A message as it is, or one of a role and parts. */
export function messageOf(message: PromptMessage | RoleLike, content: Content[]): PromptMessage {
  if (!isMessage(message, PromptMessageSchema)) {
    return promptMessage(message, ...content);
  }
  if (content.length > 0) {
    throw new TypeError("a PromptMessage brings its own parts; give either it or a role and parts");
  }
  return message;
}
