/** Prompt hooks for opencode, written with the PromptEditor: no ids, times or models of messages have to be made up. */
export { filePart, type PromptEditor, promptMessage, textPart, toolPart } from "@turnwire/client";
export { definePromptHook, type PromptContext, type PromptHook } from "./hook.js";
