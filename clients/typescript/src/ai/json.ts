import type { JSONValue } from "ai";
import { TurnwireError } from "../errors.js";
import { Reason } from "../gen/turnwire/v1/errors_pb.js";
import { checkJson } from "../rules/json.js";

// Every escape, so that the second of two backslashes is not taken for the beginning of one. Groups: a high surrogate,
// the low one directly after it, a low one alone.
const ESCAPE = /\\(?:u(?:(d[89ab][0-9a-f]{2})(?:\\u(d[c-f][0-9a-f]{2}))?|(d[c-f][0-9a-f]{2}))|.)/gi;

// Strings, so that no number is taken out of one, and numbers.
const NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi;

/**
 * A JSON document as a value. Escapes of lone surrogates, which no request can carry, become U+FFFD; a number too great
 * for JavaScript becomes its text. Throws RULE_VIOLATION for what is no JSON, or nested too deep; `field` is its path.
 */
export function jsonValue(document: string, field: string): JSONValue {
  const fault = checkJson(document, false);
  if (fault !== undefined) {
    throw new TurnwireError(Reason.RULE_VIOLATION, fault.text, { metadata: { path: field, rule: fault.rule } });
  }
  const clean = document.replace(ESCAPE, (all, high?: string, low?: string, lone?: string) =>
    lone || (high && !low) ? "\\ufffd" : all,
  );
  const value = JSON.parse(clean) as JSONValue;
  return allFinite(value) ? value : (JSON.parse(clean.replace(NUMBER, finite)) as JSONValue);
}

/** A JSON document as an object; undefined for what is none, and for none. */
export function jsonObject(document: string, field: string): Record<string, JSONValue> | undefined {
  if (document === "") {
    return undefined;
  }
  const value = jsonValue(document, field);
  return isObject(value) ? value : undefined;
}

function allFinite(value: JSONValue | undefined): boolean {
  if (typeof value === "object" && value !== null) {
    return Object.values(value).every(allFinite);
  }
  return typeof value !== "number" || Number.isFinite(value);
}

function finite(token: string): string {
  return token.startsWith('"') || Number.isFinite(Number(token)) ? token : `"${token}"`;
}

export function isObject(value: JSONValue | undefined): value is Record<string, JSONValue> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
