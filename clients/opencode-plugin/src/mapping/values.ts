import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { checkJson } from "@turnwire/client";

/** A JSON value, or a document that stands for itself: two documents are equal if their texts are. */
export type Json = null | boolean | number | string | Document | Json[] | Tree;
export type Tree = { [key: string]: Json };

/** JSON text that a field of Turnwire holds, in the place of the value that it was made from. */
export class Document {
  constructor(readonly text: string) {}
}

export type Time = MessageInitShape<typeof TimestampSchema>;

export const INT32 = 2 ** 31 - 1;
const INT64 = 2 ** 63 - 1024; // the greatest that a JavaScript number can be below 2^63

/** 0001-01-01 and 9999-12-31, the range of a Timestamp, in milliseconds. */
const FIRST_MS = -62_135_596_800_000;
const LAST_MS = 253_402_300_799_999;

/** The members of an object; none for anything else. */
export function treeOf(value: Json | undefined): Tree {
  return isTree(value) ? value : {};
}

/** Whether a value is an object. */
export function isTree(value: Json | undefined): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Document);
}

/** The object without its members that are undefined: unset fields. */
export function defined<T extends object>(members: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const found = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(found) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** A text of at most `limit` code points; halves of surrogate pairs become U+FFFD, since UTF-8 has no form for them. */
export function textOf(value: Json | undefined, limit?: number): string | undefined {
  if (typeof value !== "string") {
    return undefined;
  }
  const text = value.toWellFormed();
  return limit !== undefined && text.length > limit ? Array.from(text).slice(0, limit).join("") : text;
}

/** A text that must not be empty. */
export function nameOf(value: Json | undefined, otherwise: string, limit = 256): string {
  return textOf(value, limit) || otherwise;
}

export function flagOf(value: Json | undefined): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** An integer from `least` to `greatest`. */
export function countOf(value: Json | undefined, greatest = INT64, least = 0): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= least && value <= greatest
    ? value
    : undefined;
}

/** The same as a 64-bit field takes it. */
export function bigOf(value: Json | undefined): bigint | undefined {
  const count = countOf(value);
  return count === undefined ? undefined : BigInt(count);
}

/** A price: not negative. */
export function costOf(value: Json | undefined): number | undefined {
  return typeof value === "number" && value >= 0 ? value : undefined;
}

/** A time in milliseconds since the epoch, fractions included. */
export function timeOf(value: Json | undefined): Time | undefined {
  if (typeof value !== "number" || value < FIRST_MS || value > LAST_MS) {
    return undefined;
  }
  const whole = Math.floor(value);
  const seconds = Math.floor(whole / 1000);
  // The digits, and not the binary fraction: 1.1 ms are 100,000 ns above the whole.
  const digits = /\.(\d+)$/.exec(String(value))?.[1] ?? "";
  const fraction = value < 0 ? Math.floor((value - whole) * 1e6) : Number(digits.slice(0, 6).padEnd(6, "0"));
  return { seconds: BigInt(seconds), nanos: (whole - seconds * 1000) * 1_000_000 + fraction };
}

/** A time of a field as whole milliseconds since the epoch. */
export function milliseconds(time: { seconds: bigint; nanos: number }): number {
  return Number(time.seconds) * 1000 + Math.floor(time.nanos / 1_000_000);
}

/** A value as a JSON document; empty if there is none, if it is too deep, or (`object`) not an object as it must be. */
export function documentOf(value: Json | undefined, object = false): string {
  if (value === undefined || (object && !isTree(value))) {
    return "";
  }
  const text = JSON.stringify(value);
  return isStorable(text) ? text : "";
}

/** Whether a JSON text can stand in a JSON field, `inside` that many arrays or objects. */
export function isStorable(text: string, inside = 0): boolean {
  return checkJson("[".repeat(inside) + text + "]".repeat(inside), false) === undefined;
}
