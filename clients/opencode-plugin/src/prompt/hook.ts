import type { Plugin, PluginInput } from "@opencode-ai/plugin";
import { PromptEditor } from "@turnwire/client";
import { Logger } from "../logger.js";
import { treeOf } from "../mapping/values.js";
import { itemsOf, type Message, messagesOf } from "./messages.js";

/** What a prompt hook is told beside the prompt. */
export interface PromptContext {
  readonly sessionId: string;
  /** The agent and the model of the last user message. */
  readonly agent: string;
  readonly model: { readonly providerId: string; readonly modelId: string };
  /** What opencode gave the plugin: its client, the project, the shell. */
  readonly opencode: PluginInput;
}

/** Edits the prompt of one model call. It may be async; opencode waits for it. */
export type PromptHook = (editor: PromptEditor, context: PromptContext) => void | Promise<void>;

/**
 * A plugin that edits each prompt before opencode sends it:
 *
 * ```ts
 * // .opencode/plugin/brief.ts
 * import { definePromptHook, textPart } from "@turnwire/opencode-plugin/prompt";
 *
 * export const Brief = definePromptHook((editor) => {
 *   editor.appendTo("user", textPart("Answer in one sentence.", { synthetic: true }));
 * });
 * ```
 *
 * What the hook does is in this prompt alone, never in the session: opencode stores nothing of it. When it throws,
 * the prompt goes out as it was, and opencode's log says why.
 */
export function definePromptHook(hook: PromptHook): Plugin {
  return async (opencode) => {
    const logger = new Logger(opencode.client);
    return {
      "experimental.chat.messages.transform": async (_, output) => {
        try {
          await transform(hook, opencode, output.messages as unknown as Message[]);
        } catch (error) {
          const why = error instanceof Error ? error.message : String(error);
          logger.log(`hook/${why}`, "error", `a prompt hook failed, the prompt goes out as it was: ${why}`);
        }
      },
    };
  };
}

/** opencode goes on with the array that it handed out, so that this very array is changed. */
async function transform(hook: PromptHook, opencode: PluginInput, messages: Message[]): Promise<void> {
  const before = [...messages];
  const info = before.findLast((message) => message.info.role === "user")?.info;
  if (info === undefined) {
    return;
  }
  const { providerID, modelID } = treeOf(info.model);
  const editor = new PromptEditor(itemsOf(before));
  await hook(editor, {
    sessionId: String(info.sessionID),
    agent: String(info.agent),
    model: { providerId: String(providerID), modelId: String(modelID) },
    opencode,
  });
  if (editor.mutations.length > 0) {
    messages.splice(0, messages.length, ...messagesOf(editor.items, before, Date.now()));
  }
}
