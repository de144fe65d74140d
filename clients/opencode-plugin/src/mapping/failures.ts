// opencode's errors, `{name, data: {message, …}}`, and Turnwire's failures, both ways.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ApiFailure, Failure, FailureSchema } from "@turnwire/client/v1";
import { countOf, defined, flagOf, INT32, isTree, type Json, type Tree, textOf, treeOf } from "./values.js";

type FailureInit = MessageInitShape<typeof FailureSchema>;

const UNKNOWN = "UnknownError";

/** The failure for an `error` object; undefined if there is none. A name that is not known stays. */
export function toFailure(error: Json | undefined): FailureInit | undefined {
  if (error === undefined || error === null) {
    return undefined;
  }
  if (!isTree(error)) {
    return { kind: { case: "unknown", value: {} } };
  }
  const data = treeOf(error.data);
  const said = textOf(data.message);
  const message = said ?? "";
  const name = textOf(error.name);
  switch (name) {
    case "APIError":
      return { kind: { case: "api", value: api(data, message) } };
    case "ProviderAuthError":
      return { kind: { case: "auth", value: { providerId: textOf(data.providerID, 256) ?? "", message } } };
    case "MessageAbortedError":
      return { kind: { case: "aborted", value: { message } } };
    case "MessageOutputLengthError":
      return { kind: { case: "outputLength", value: defined({ message: said }) } };
    case "StructuredOutputError":
      return {
        kind: { case: "structuredOutput", value: defined({ message, retries: countOf(data.retries, INT32) }) },
      };
    case "ContextOverflowError":
      return {
        kind: { case: "contextOverflow", value: defined({ message, responseBody: textOf(data.responseBody) }) },
      };
    case "ContentFilterError":
      return { kind: { case: "contentFilter", value: { message } } };
    default:
      return { kind: { case: "unknown", value: defined({ message, name: name === UNKNOWN ? undefined : name }) } };
  }
}

function api(data: Tree, message: string) {
  const responseHeaders: Record<string, string> = {};
  for (const [key, value] of Object.entries(treeOf(data.responseHeaders))) {
    const text = textOf(value);
    if (text !== undefined) {
      responseHeaders[key.toWellFormed()] = text;
    }
  }
  return defined({
    message,
    statusCode: countOf(data.statusCode, 599, 100),
    retryable: flagOf(data.isRetryable) ?? false,
    responseHeaders,
    responseBody: textOf(data.responseBody),
    url: textOf(treeOf(data.metadata).url),
  });
}

/** The `error` object for a failure. */
export function toError({ kind }: Pick<Failure, "kind">): Json {
  const made = (name: string, data: Tree): Json => ({ name, data });
  switch (kind.case) {
    case "api":
      return made("APIError", apiData(kind.value));
    case "auth":
      return made("ProviderAuthError", { providerID: kind.value.providerId, message: kind.value.message });
    case "aborted":
      return made("MessageAbortedError", { message: kind.value.message });
    case "outputLength":
      return made("MessageOutputLengthError", defined({ message: kind.value.message }) as Tree);
    case "structuredOutput":
      return made(
        "StructuredOutputError",
        defined({ message: kind.value.message, retries: kind.value.retries }) as Tree,
      );
    case "contextOverflow":
      return made(
        "ContextOverflowError",
        defined({ message: kind.value.message, responseBody: kind.value.responseBody }) as Tree,
      );
    case "contentFilter":
      return made("ContentFilterError", { message: kind.value.message });
    default:
      return made(kind.value?.name ?? UNKNOWN, { message: kind.value?.message ?? "" });
  }
}

function apiData(api: ApiFailure): Tree {
  const { message, statusCode, retryable, responseHeaders, responseBody, url } = api;
  return defined({
    message,
    statusCode,
    isRetryable: retryable,
    responseHeaders: Object.keys(responseHeaders).length > 0 ? { ...responseHeaders } : undefined,
    responseBody,
    metadata: url === undefined ? undefined : { url },
  }) as Tree;
}
