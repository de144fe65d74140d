import { type DescMessage, fromJsonString, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import {
  assemble,
  chain,
  check,
  type Fate,
  type Fates,
  fold,
  PromptEditor,
  promptDigest,
  readMessage,
  TurnwireError,
} from "@turnwire/client";
import { type Entry, EntrySchema, type PromptItem } from "@turnwire/client/v1";
import {
  type AnchorFate,
  type AssemblyRequest,
  type DigestRequest,
  Encoding,
  type EncodingRequest,
  Fate as FateNumber,
  type FoldRequest,
  type MutationRequest,
  PartIds,
  type Request,
  type ResponseSchema,
  type RulesRequest,
} from "#conformance";
import { schemaNamed } from "./schemas.js";

/** The outcome of a Response. */
export type Answer = NonNullable<MessageInitShape<typeof ResponseSchema>["response"]>;

/** Answers a request. Throws what no sentence of the spec explains. */
export function answer(request: Request["request"]): Answer {
  switch (request.case) {
    case "encoding":
      return encoding(request.value);
    case "rules":
      return rules(request.value);
    case "fold":
      return orRefused(() => folded(request.value));
    case "assembly":
      return orRefused(() => assembly(request.value));
    case "mutation":
      return orRefused(() => mutation(request.value));
    case "digest":
      return digest(request.value);
    default:
      throw new Error(`no such request: ${request.case}`);
  }
}

function orRefused(attempt: () => Answer): Answer {
  try {
    return attempt();
  } catch (error) {
    if (error instanceof TurnwireError) {
      return { case: "refused", value: { reason: error.reason, path: error.path } };
    }
    throw error;
  }
}

function encoding({ messageType, input, output }: EncodingRequest): Answer {
  const schema = schemaNamed(messageType);
  let message: ReturnType<typeof readMessage>;
  try {
    message =
      input.case === "json"
        ? fromJsonString(schema, input.value)
        : readMessage(schema, input.value ?? new Uint8Array());
  } catch {
    return { case: "refused", value: {} };
  }
  const value =
    output === Encoding.JSON
      ? ({ case: "json", value: toJsonString(schema, message) } as const)
      : ({ case: "binary", value: toBinary(schema, message) } as const);
  return { case: "encoding", value: { output: value } };
}

function rules({ messageType, message, partIds, role }: RulesRequest): Answer {
  const schema: DescMessage = schemaNamed(messageType);
  const stored = partIds === PartIds.UNSPECIFIED ? {} : { stored: partIds === PartIds.STORED };
  const violations = check(schema, readMessage(schema, message), { role, ...stored });
  return { case: "rules", value: { violations: violations.map(({ rule, path }) => ({ rule, path })) } };
}

function entriesOf(raw: Uint8Array[]): Entry[] {
  return raw.map((bytes) => readMessage(EntrySchema, bytes));
}

function folded({ entries, revision }: FoldRequest): Answer {
  const state = fold(entriesOf(entries), revision);
  const { summaries } = state;
  const messages = state.messages.map((message) => {
    const summary = summaries.get(message.id);
    const one =
      message.$typeName === "turnwire.v1.User"
        ? ({ case: "user", value: message } as const)
        : ({ case: "assistant", value: message } as const);
    return { message: one, ...(summary && { summary }) };
  });
  const { properties, revert } = state;
  const turns = [...state.turns.values()];
  return { case: "fold", value: { revision: state.revision, properties, turns, messages, ...(revert && { revert }) } };
}

function assembly({ entries, revision, turnId, profile }: AssemblyRequest): Answer {
  const { items } = assemble(fold(entriesOf(entries), revision).history(), turnId, profile);
  return { case: "assembly", value: { items: [...items], digest: digestOf(items) } };
}

function mutation({ items, basePromptId, mutations, fates }: MutationRequest): Answer {
  const editor = new PromptEditor(items, {
    fates: fatesOf(fates),
    ...(basePromptId !== undefined && { basePromptId }),
  });
  editor.apply(...mutations);
  return { case: "mutation", value: { items: editor.items, digest: editor.digest() } };
}

const FATES: Record<FateNumber, Fate> = {
  [FateNumber.UNSPECIFIED]: "unknown",
  [FateNumber.LIVE]: "live",
  [FateNumber.COMPACTED]: "compacted",
  [FateNumber.REMOVED]: "removed",
};

function fatesOf(fates: AnchorFate[]): Fates {
  const find = (kind: AnchorFate["anchor"]["case"], id: string): Fate =>
    FATES[fates.find(({ anchor }) => anchor.case === kind && anchor.value === id)?.fate ?? FateNumber.UNSPECIFIED];
  return { messageFate: (id) => find("messageId", id), partFate: (id) => find("partId", id) };
}

function digest({ input }: DigestRequest): Answer {
  switch (input.case) {
    case "log":
      return { case: "digest", value: { digests: [...chain(input.value.sessionId, input.value.entries)] } };
    case "prompt":
      return { case: "digest", value: { digests: [promptDigest(input.value.messages)] } };
    default:
      throw new Error("a digest of nothing");
  }
}

function digestOf(items: readonly PromptItem[]): Uint8Array {
  return promptDigest(items.flatMap(({ message }) => message ?? []));
}
