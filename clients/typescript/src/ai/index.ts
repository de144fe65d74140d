/** A prompt as the messages of the AI SDK (`ai` on npm, version 6): `generateText({ model, messages })`. */
import type {
  AssistantModelMessage,
  FilePart,
  JSONValue,
  ModelMessage,
  ProviderMetadata as ProviderOptions,
  TextPart,
  ToolModelMessage,
  ToolResultPart,
  UserModelMessage,
} from "ai";
import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import type { ModelRef } from "../gen/turnwire/v1/model_pb.js";
import { Role } from "../gen/turnwire/v1/options_pb.js";
import { type ProviderMetadata, type ReasoningPart, type ToolPart, ToolState } from "../gen/turnwire/v1/part_pb.js";
import type { PromptItem } from "../gen/turnwire/v1/prompt_pb.js";
import { isObject, jsonObject, jsonValue } from "./json.js";
import { mediaOf } from "./media.js";

/** What a caller can choose. */
export interface ModelMessagesOptions {
  /**
   * The model that the messages are for. Reasoning and provider metadata go back only to the model that made them, so
   * that without it none is sent.
   */
  model?: Pick<ModelRef, "providerId" | "modelId">;
  /** What becomes of reasoning that another model made: it is left out (the default), or sent as text. */
  foreignReasoning?: "drop" | "text";
  /**
   * Whether the provider takes files in tool results. The default is false: they follow the answer in a message of the
   * user, which every provider takes.
   */
  mediaInResults?: boolean;
  /** Whether the provider takes a prompt that ends with the assistant. The default is false: "Continue." follows. */
  assistantLast?: boolean;
}

// The fixed texts are those of the default profile of the service's own renderer.
const INTERRUPTED = "[Tool execution was interrupted]";
const COMPACTED = "[Old tool result content cleared]";
const EMPTY_OUTPUT = "[No output]";
const LEADING = "[The conversation begins with the assistant.]";
const CLOSING = "Continue.";
const MOVED = "Attached media from tool result:";
const COMPACTION = "What did we do so far?";
const SUBTASK = "The following tool was executed by the user";

type AssistantBlock = Exclude<AssistantModelMessage["content"], string>[number];

/**
 * The messages of a prompt (`Prompt.items`, `PromptEditor.items`) for the AI SDK, made acceptable as the service's own
 * renderer makes them:
 *
 * - every call has one result, directly after the calls before which nothing else was written; one that never got a result
 *   has an error that says it was interrupted; equal call ids of several messages become different;
 * - texts that are empty or only for people, and what is no content for a model (steps, snapshots, patches), are left out,
 *   and so is an answer that the provider withheld, and a stopped one of nothing but reasoning;
 * - reasoning, signatures included, goes back only to the model that made it;
 * - text files become text, other files stay files, and a text names a file whose content is not here;
 * - a compacted or empty tool output becomes a placeholder;
 * - the messages begin and end with the user.
 *
 * Tool inputs are parsed, which the SDK asks for: what a number in them was spelled as is lost, and one
 * too great for JavaScript is sent as its text. The items are not changed.
 *
 * Throws EMPTY_PROMPT when nothing is left that can be sent; RULE_VIOLATION for a role that is neither user nor assistant,
 * and for an input or metadata that is no JSON.
 */
export function toModelMessages(items: Iterable<PromptItem>, options: ModelMessagesOptions = {}): ModelMessage[] {
  const writer = new Writer(options);
  let index = 0;
  for (const item of items) {
    const role = item.message?.role;
    if (role === Role.USER) {
      writer.user(item);
    } else if (role !== Role.ASSISTANT) {
      const metadata = { path: `items[${index}].message.role`, rule: "enum.in" };
      throw new TurnwireError(Reason.RULE_VIOLATION, "must be user or assistant", { metadata });
    } else if (isWanted(item)) {
      writer.assistant(item);
    }
    index++;
  }
  return writer.finish();
}

class Writer {
  readonly #messages: ModelMessage[] = [];
  readonly #callIds = new Set<string>();
  readonly #options: ModelMessagesOptions;

  constructor(options: ModelMessagesOptions) {
    this.#options = options;
  }

  user(item: PromptItem): void {
    const content: (TextPart | FilePart)[] = [];
    for (const { kind } of item.message?.parts ?? []) {
      switch (kind.case) {
        case "text":
          if (!kind.value.ignored && kind.value.text !== "") {
            content.push({ type: "text", text: kind.value.text });
          }
          break;
        case "file":
          content.push(...defined(mediaOf(kind.value)));
          break;
        case "compaction":
          content.push({ type: "text", text: COMPACTION });
          break;
        case "subtask":
          content.push({ type: "text", text: SUBTASK });
          break;
      }
    }
    this.#push({ role: "user", content });
  }

  assistant(item: PromptItem): void {
    const model = item.facts?.model;
    const moved: (TextPart | FilePart)[] = [];
    let step = new Step();
    for (const { kind } of item.message?.parts ?? []) {
      switch (kind.case) {
        case "text": {
          const { text, ignored, provider } = kind.value;
          const own = this.#ownOptions(provider, model);
          if (!ignored && (text !== "" || own !== undefined)) {
            step.add({ type: "text", text, ...withOptions(own) });
          }
          break;
        }
        case "reasoning":
          step.add(...defined(this.#reasoning(kind.value, model)));
          break;
        case "tool":
          this.#tool(kind.value, model, step, moved);
          break;
        case "file":
          moved.push(...defined(mediaOf(kind.value)));
          break;
        case "stepStart":
          this.#write(step);
          step = new Step();
          break;
      }
    }
    this.#write(step);
    if (moved.length > 0) {
      this.#push({ role: "user", content: [{ type: "text", text: MOVED }, ...moved] });
    }
  }

  finish(): ModelMessage[] {
    const messages = this.#messages;
    if (messages.length === 0) {
      throw new TurnwireError(Reason.EMPTY_PROMPT, "nothing of the prompt can be sent to a model");
    }
    if (messages[0]?.role === "assistant") {
      messages.unshift({ role: "user", content: [{ type: "text", text: LEADING }] });
    }
    if (messages.at(-1)?.role === "assistant" && !this.#options.assistantLast) {
      messages.push({ role: "user", content: [{ type: "text", text: CLOSING }] });
    }
    return messages;
  }

  #reasoning({ text, provider }: ReasoningPart, model: ModelRef | undefined): AssistantBlock | undefined {
    if (this.#isOwn(provider, model)) {
      return { type: "reasoning", text, ...withOptions(this.#ownOptions(provider, model)) };
    }
    const asText = this.#options.foreignReasoning === "text" && text.trim() !== "";
    return asText ? { type: "text", text } : undefined;
  }

  #tool(tool: ToolPart, model: ModelRef | undefined, step: Step, moved: (TextPart | FilePart)[]): void {
    const input = jsonValue(tool.inputJson || "{}", "tool.input_json");
    const call = { toolCallId: this.#freeCallId(tool.callId), toolName: tool.name };
    step.call(
      {
        type: "tool-call",
        ...call,
        input: isObject(input) ? input : { input },
        ...withOptions(this.#ownOptions(tool.provider, model)),
      },
      { type: "tool-result", ...call, output: this.#output(tool, moved) },
    );
  }

  #output(tool: ToolPart, moved: (TextPart | FilePart)[]): ToolResultPart["output"] {
    if (tool.state === ToolState.ERROR) {
      return { type: "error-text", value: tool.error || tool.output || EMPTY_OUTPUT };
    }
    if (tool.state !== ToolState.COMPLETED) {
      return { type: "error-text", value: INTERRUPTED };
    }
    if (tool.compacted !== undefined) {
      return { type: "text", value: COMPACTED };
    }
    const media = tool.attachments.flatMap(({ file }) => (file ? defined(mediaOf(file)) : []));
    const texts = media.flatMap((each) => (each.type === "text" ? [each.text] : []));
    const files = media.filter((each): each is FilePart => each.type === "file");
    const value = [...(tool.output ? [tool.output] : []), ...texts].join("\n");
    if (this.#options.mediaInResults && files.length > 0) {
      const text = value === "" ? [] : [{ type: "text" as const, text: value }];
      return { type: "content", value: [...text, ...files.map(resultFile)] };
    }
    moved.push(...files);
    return { type: "text", value: value || (files.length > 0 ? "" : EMPTY_OUTPUT) };
  }

  /** Writes a step: its blocks, divided wherever something else follows a call, with the results of the calls between. */
  #write(step: Step): void {
    for (const { content, results } of step.runs()) {
      this.#push({ role: "assistant", content });
      this.#push({ role: "tool", content: results });
    }
  }

  #push(message: UserModelMessage | AssistantModelMessage | ToolModelMessage): void {
    if (message.content.length > 0) {
      this.#messages.push(message);
    }
  }

  /** The metadata that goes back to the provider with a part; undefined: none, or another model made it. */
  #ownOptions(provider: ProviderMetadata | undefined, model: ModelRef | undefined): ProviderOptions | undefined {
    if (provider === undefined || !this.#isOwn(provider, model)) {
      return undefined;
    }
    const metadata = Object.entries(jsonObject(provider.metadataJson, "provider.metadata_json") ?? {}).filter(
      (pair): pair is [string, Record<string, JSONValue>] => isObject(pair[1]),
    );
    return metadata.length > 0 ? Object.fromEntries(metadata) : undefined;
  }

  /** Whether the model that the messages are for made a part. */
  #isOwn(provider: ProviderMetadata | undefined, model: ModelRef | undefined): boolean {
    const maker = provider?.model ?? model;
    const target = this.#options.model;
    return target !== undefined && maker?.providerId === target.providerId && maker.modelId === target.modelId;
  }

  /** The first to have a call id keeps it, so that what is added at the end renames nothing before it. */
  #freeCallId(callId: string): string {
    let free = callId;
    for (let number = 2; this.#callIds.has(free); number++) {
      free = `${callId}_${number}`;
    }
    this.#callIds.add(free);
    return free;
  }
}

/** A run of blocks that ends with calls, and the results of these. */
interface Run {
  readonly content: AssistantBlock[];
  readonly results: ToolResultPart[];
}

/** What one model call wrote. */
class Step {
  readonly #runs: Run[] = [{ content: [], results: [] }];

  add(...blocks: AssistantBlock[]): void {
    for (const block of blocks) {
      let run = this.#runs.at(-1);
      if (run === undefined || run.results.length > 0) {
        run = { content: [], results: [] };
        this.#runs.push(run);
      }
      run.content.push(block);
    }
  }

  call(call: AssistantBlock, result: ToolResultPart): void {
    const run = this.#runs.at(-1);
    run?.content.push(call);
    run?.results.push(result);
  }

  /** Reasoning at the end came of a call that broke off, and providers refuse it: it goes. */
  runs(): Run[] {
    const last = this.#runs.at(-1);
    while (last?.content.at(-1)?.type === "reasoning") {
      last.content.pop();
    }
    return this.#runs;
  }
}

/** Whether an assistant is sent at all, by how its run ended. */
function isWanted({ facts, message }: PromptItem): boolean {
  switch (facts?.failure?.kind.case) {
    case "aborted":
      return (message?.parts ?? []).some(({ kind }) => kind.case !== "stepStart" && kind.case !== "reasoning");
    case "contentFilter":
      return false; // what the provider withheld is not put before it again
    default:
      return true;
  }
}

type ResultContent = Extract<ToolResultPart["output"], { type: "content" }>["value"][number];

function resultFile({ data, mediaType, filename }: FilePart): ResultContent {
  if (data instanceof URL) {
    return { type: "file-url", url: data.href };
  }
  return { type: "file-data", data: String(data), mediaType, ...(filename !== undefined && { filename }) };
}

function withOptions(providerOptions: ProviderOptions | undefined): { providerOptions?: ProviderOptions } {
  return providerOptions === undefined ? {} : { providerOptions };
}

function defined<T>(value: T | undefined): T[] {
  return value === undefined ? [] : [value];
}
