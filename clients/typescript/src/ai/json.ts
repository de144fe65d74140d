import type { JSONValue } from "ai";

// Every escape, so that the second of two backslashes is not taken for the beginning of one. Groups: a high surrogate,
// the low one directly after it, a low one alone.
const ESCAPE = /\\(?:u(?:(d[89ab][0-9a-f]{2})(?:\\u(d[c-f][0-9a-f]{2}))?|(d[c-f][0-9a-f]{2}))|.)/gi;

/** A JSON document as a value. Escapes of lone surrogates, which no request can carry, become U+FFFD. */
export function jsonValue(document: string): JSONValue {
  const clean = document.replace(ESCAPE, (all, high?: string, low?: string, lone?: string) =>
    lone || (high && !low) ? "\\ufffd" : all,
  );
  return JSON.parse(clean) as JSONValue;
}

/** A JSON document as an object; undefined for what is none, and for none. */
export function jsonObject(document: string): Record<string, JSONValue> | undefined {
  if (document === "") {
    return undefined;
  }
  const value = jsonValue(document);
  return isObject(value) ? value : undefined;
}

export function isObject(value: JSONValue | undefined): value is Record<string, JSONValue> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
