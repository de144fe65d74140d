// What the makers of heads and of the several kinds of part share.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ModelRefSchema,
  PartTimeSchema,
  PromptPartSchema,
  ProviderMetadataSchema,
  UsageSchema,
} from "@turnwire/client/v1";
import {
  bigOf,
  costOf,
  Document,
  defined,
  documentOf,
  isTree,
  type Json,
  nameOf,
  type Tree,
  timeOf,
  treeOf,
} from "./values.js";

/** The documents that a maker took, by the path of the value that each was made from. */
export type Documents = [path: readonly [string] | readonly [string, string], text: string][];

/** What a maker gives: the kind of the part and the documents that it took; undefined: an extension must hold it. */
export type Made =
  | { kind: NonNullable<MessageInitShape<typeof PromptPartSchema>["kind"]>; documents?: Documents }
  | undefined;

/**
 * Keys of provider metadata whose value binds the content: Anthropic's signature and redacted reasoning, OpenAI's
 * encrypted reasoning, Google's thought signature.
 */
const BINDING = new Set([
  "signature",
  "redactedData",
  "reasoningEncryptedContent",
  "encryptedContent",
  "thoughtSignature",
]);

/** The provider metadata of a part, and the document that it is. */
export function providerOf({ metadata }: Tree): {
  provider?: MessageInitShape<typeof ProviderMetadataSchema>;
  documents: Documents;
} {
  const text = metadata === null ? "" : documentOf(metadata, true);
  return text && metadata !== undefined
    ? { provider: { metadataJson: text, signed: binds(metadata) }, documents: [[["metadata"], text]] }
    : { documents: [] };
}

function binds(value: Json, depth = 3): boolean {
  if (!isTree(value) || depth === 0) {
    return false;
  }
  return Object.entries(value).some(([key, item]) => (BINDING.has(key) ? isTruthy(item) : binds(item, depth - 1)));
}

function isTruthy(value: Json): boolean {
  if (typeof value === "object" && value !== null) {
    return Object.keys(value).length > 0;
  }
  return typeof value === "number" || Boolean(value);
}

/** The object with each document in the place of the value that it was made from. */
export function withDocuments(tree: Tree, documents: Documents): Tree {
  const copy = { ...tree };
  for (const [[first, second], text] of documents) {
    copy[first] = second === undefined ? new Document(text) : { ...treeOf(copy[first]), [second]: new Document(text) };
  }
  return copy;
}

/** The time of a part; undefined if there is none. */
export function periodOf(value: Json | undefined): MessageInitShape<typeof PartTimeSchema> | undefined {
  return isTree(value) ? defined({ start: timeOf(value.start), end: timeOf(value.end) }) : undefined;
}

/** A model object `{providerID, modelID}`; undefined if there is none. */
export function modelOf(value: Json | undefined): MessageInitShape<typeof ModelRefSchema> | undefined {
  return isTree(value)
    ? { providerId: nameOf(value.providerID, "unknown"), modelId: nameOf(value.modelID, "unknown") }
    : undefined;
}

/** The usage of an object with `cost` and `tokens`; undefined if it has neither. */
export function usageOf(tree: Tree): MessageInitShape<typeof UsageSchema> | undefined {
  const cost = costOf(tree.cost);
  if (!isTree(tree.tokens)) {
    return cost === undefined ? undefined : { cost };
  }
  const { total, input, output, reasoning, cache } = tree.tokens;
  const tokens = defined({
    total: bigOf(total),
    input: bigOf(input) ?? 0n,
    output: bigOf(output) ?? 0n,
    reasoning: bigOf(reasoning) ?? 0n,
    cache: isTree(cache) ? { read: bigOf(cache.read) ?? 0n, write: bigOf(cache.write) ?? 0n } : undefined,
  });
  return defined({ cost, tokens }) as MessageInitShape<typeof UsageSchema>;
}
