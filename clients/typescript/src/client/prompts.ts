import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import type { PromptItem, PromptMessage, PromptRecord } from "../gen/turnwire/v1/prompt_pb.js";
import type { PromptChunk, PromptEnd, RenderEnd, RenderPromptResponse } from "../gen/turnwire/v1/prompt_requests_pb.js";
import type { RenderChange } from "../gen/turnwire/v1/render_pb.js";

/** A prompt as the service computed it. */
export interface Prompt {
  /** In order, with their origins. */
  readonly items: PromptItem[];
  /** What it was computed from. In a dry run it has no id and is not stored. */
  readonly record: PromptRecord;
  /** The rest: the head of the log afterwards, the context, whether the digest of a recorded prompt holds. */
  readonly end: PromptEnd;
}

/** The messages of a prompt alone. */
export function messagesOf({ items }: Pick<Prompt, "items">): PromptMessage[] {
  return items.flatMap(({ message }) => message ?? []);
}

/** The body of a provider's request. */
export interface Rendering {
  /** Compact JSON text. */
  readonly body: string;
  /** What is sent otherwise than it is stored, in the order of the rules. */
  readonly changes: RenderChange[];
  /** The rest: the SHA-256 of the body, the model, the profile, the version of the rules. */
  readonly end: RenderEnd;
}

/** Puts a prompt together out of its responses. */
export async function collectPrompt(
  responses: AsyncIterable<{ chunk?: PromptChunk | undefined; end?: PromptEnd | undefined }>,
): Promise<Prompt> {
  const items: PromptItem[] = [];
  let end: PromptEnd | undefined;
  for await (const response of responses) {
    const { items: next = [], continues = false } = response.chunk ?? {};
    const last = items.at(-1)?.message;
    if (continues && last !== undefined) {
      last.parts.push(...(next.shift()?.message?.parts ?? []));
    }
    items.push(...next);
    end = response.end ?? end;
  }
  if (end?.record === undefined) {
    throw incomplete("prompt");
  }
  return { items, record: end.record, end };
}

/** Puts a rendering together out of its responses. */
export async function collectRendering(responses: AsyncIterable<RenderPromptResponse>): Promise<Rendering> {
  let body = "";
  const changes: RenderChange[] = [];
  let end: RenderEnd | undefined;
  for await (const response of responses) {
    body += response.body;
    changes.push(...response.changes);
    end = response.end ?? end;
  }
  if (end === undefined) {
    throw incomplete("rendering");
  }
  return { body, changes, end };
}

function incomplete(what: string): TurnwireError {
  return new TurnwireError(Reason.UNSPECIFIED, `the server sent a ${what} without its end`, { status: "INTERNAL" });
}
