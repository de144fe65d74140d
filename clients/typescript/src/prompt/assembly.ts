import { create, isMessage } from "@bufbuild/protobuf";
import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import { type Assistant, AssistantSchema, ResultKind, type User, UserSchema } from "../gen/turnwire/v1/message_pb.js";
import { Role } from "../gen/turnwire/v1/options_pb.js";
import type { CompactionPart } from "../gen/turnwire/v1/part_pb.js";
import {
  type AssistantFacts,
  AssistantFactsSchema,
  type PromptItem,
  PromptItemSchema,
  PromptMessageSchema,
} from "../gen/turnwire/v1/prompt_pb.js";
import type { Fate, Fates, History } from "./history.js";
import { type Profile, profileNamed } from "./profiles.js";

/**
 * The characters with the Unicode property White_Space: what makes a summary's text blank must not differ between
 * languages and their versions, as their own notions of white space do.
 */
const BLANK = /^[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

/** The prompt of a turn before any mutation: its items, and what became of what they do not show. */
export interface Assembly extends Fates {
  readonly items: readonly PromptItem[];
}

/**
 * Assembles the prompt of a turn: every live message in place order up to the turn's last one, other turns' before it
 * included; a turn without messages yet gets all. From the newest completed compaction on there is: the compaction
 * message, its summary, the kept tail (from the tail start to the compaction message), the rest. Messages without parts
 * are left out.
 *
 * Throws TURN_NOT_FOUND when the history has no such turn, UNKNOWN_PROFILE.
 */
export function assemble(history: History, turnId: string, profileName = ""): Assembly {
  const profile = profileNamed(profileName);
  const messages = history.messages.slice(0, end(history, turnId));
  const compaction = newestCompaction(messages, profile);
  const compacted = compaction?.tailStart ?? 0;
  const fate = (place: number | undefined, otherwise: () => Fate): Fate =>
    place === undefined ? otherwise() : place < compacted ? "compacted" : "live";
  return {
    items: (compaction?.order ?? messages).filter((message) => message.parts.length > 0).map(item),
    messageFate: (id) => fate(history.place(id), () => history.messageFate(id)),
    partFate: (id) => fate(history.placeOfPart(id), () => history.partFate(id)),
  };
}

type Message = User | Assistant;

function end(history: History, turnId: string): number {
  const last = history.messages.findLastIndex((message) => message.turnId === turnId);
  if (last < 0 && !history.turns.has(turnId)) {
    throw new TurnwireError(Reason.TURN_NOT_FOUND, "the history has no such turn", { metadata: { turn_id: turnId } });
  }
  return last < 0 ? history.messages.length : last + 1;
}

/** What a compaction leaves: the messages in their order, and the place of the tail start. */
interface Compaction {
  readonly order: readonly Message[];
  readonly tailStart: number;
}

/** The last compaction message that a completed summary after it names as its parent. */
function newestCompaction(messages: readonly Message[], profile: Profile): Compaction | undefined {
  // From a parent's id to its first completed summary: going backwards, the earlier one overwrites. The first is taken
  // so that a second summary of the same compaction, which can only come at the end, does not move what stands.
  const summaries = new Map<string, number>();
  for (let place = messages.length - 1; place >= 0; place--) {
    const message = messages[place];
    if (isAssistant(message)) {
      if (completed(message, profile)) {
        summaries.set(message.parentId ?? "", place);
      }
      continue;
    }
    const summary = message && summaries.get(message.id);
    const part = message?.parts.find(({ kind }) => kind.case === "compaction");
    if (summary !== undefined && part?.kind.case === "compaction") {
      return ordered(messages, place, summary, part.kind.value, profile);
    }
  }
  return undefined;
}

/** Whether a message is a summary with a finish, no failure and, by most profiles, a text to read. */
function completed({ result, parts }: Assistant, profile: Profile): boolean {
  if (result?.kind !== ResultKind.SUMMARY || !result.finish || result.failure !== undefined) {
    return false;
  }
  return (
    profile.emptySummary ||
    parts.some(({ kind }) => kind.case === "text" && !kind.value.ignored && !BLANK.test(kind.value.text))
  );
}

/** Lays out what a compaction at `place` leaves. Undefined: it leaves everything, as it is. */
function ordered(
  messages: readonly Message[],
  place: number,
  summary: number,
  part: CompactionPart,
  profile: Profile,
): Compaction | undefined {
  const id = messages[place]?.id;
  let tailStart = place;
  if (part.tailStartId !== undefined && part.tailStartId !== id) {
    const found = messages.slice(0, place).findIndex((message) => message.id === part.tailStartId);
    if (found < 0 && profile.lostTailKeepsAll) {
      return undefined;
    }
    tailStart = found < 0 ? place : found;
  }
  const tail = messages.slice(tailStart, place);
  if (!profile.summaryInPlace) {
    const rest = messages.slice(place + 1, summary).concat(messages.slice(summary + 1));
    const first = [messages[place], messages[summary]].filter((message) => message !== undefined);
    return { order: [...first, ...tail, ...rest], tailStart };
  }
  const after = messages.findIndex(
    (message, index) =>
      index > place &&
      isAssistant(message) &&
      message.result?.kind === ResultKind.SUMMARY &&
      (message.parentId ?? "") === id,
  );
  return { order: [...messages.slice(place, after + 1), ...tail, ...messages.slice(after + 1)], tailStart };
}

function item(message: Message): PromptItem {
  const role = isMessage(message, UserSchema) ? Role.USER : Role.ASSISTANT;
  const made = create(PromptItemSchema, { origin: { case: "messageId", value: message.id } });
  made.message = create(PromptMessageSchema, { role });
  made.message.parts = message.parts;
  if (isAssistant(message)) {
    made.facts = facts(message);
  }
  return made;
}

function facts({ run, time, result }: Assistant): AssistantFacts {
  const made = create(AssistantFactsSchema, {
    completed: time?.completed !== undefined,
    kind: result?.kind || ResultKind.REPLY,
  });
  if (run?.model !== undefined) {
    made.model = run.model;
  }
  if (result?.failure !== undefined) {
    made.failure = result.failure;
  }
  if (result?.finish !== undefined) {
    made.finish = result.finish;
  }
  return made;
}

function isAssistant(message: Message | undefined): message is Assistant {
  return message !== undefined && isMessage(message, AssistantSchema);
}
