import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Violation } from "../errors.js";

/** A name, the key of a map that is a text, or an index or other key. */
const STEP = /([a-z0-9_]+)|\[("(?:[^"\\]|\\.)*")]|\[([^\]]*)]/gs;

type Place = (number | string)[];

/**
 * Sorts violations, so that every language names the same one first: by the numbers of fields from the message on, a
 * field before what is inside it, items by index, entries of maps by the bytes of their keys; several rules of one place
 * by their ids.
 */
export function inOrder(schema: DescMessage, violations: readonly Violation[]): Violation[] {
  return violations
    .map((violation) => ({ violation, place: placeOf(schema, violation.path) }))
    .sort((one, other) => compare(one.place, other.place) || compareText(one.violation.rule, other.violation.rule))
    .map(({ violation }) => violation);
}

function placeOf(schema: DescMessage, path: string): Place {
  const place: Place = [];
  let message: DescMessage | undefined = schema;
  for (const [, name, key, index] of path.matchAll(STEP)) {
    if (key !== undefined) {
      place.push(JSON.parse(key) as string);
    } else if (name === undefined) {
      place.push(/^\d+$/.test(index ?? "") ? Number(index) : (index ?? ""));
    } else if (message !== undefined) {
      const field: DescField | undefined = message.fields.find((each) => each.name === name);
      if (field === undefined) {
        // A oneof without member: the first that it could have.
        const members = message.oneofs.find((each) => each.name === name)?.fields ?? [];
        place.push(Math.min(...members.map(({ number }) => number)));
      } else {
        place.push(field.number);
        message = field.message;
      }
    }
  }
  return place;
}

function compare(one: Place, other: Place): number {
  for (const [at, step] of one.entries()) {
    const beside = other[at];
    if (beside === undefined) {
      break;
    }
    if (step !== beside) {
      // Steps in one position are of one kind: what is before them is the same.
      return typeof step === "number" ? step - Number(beside) : compareText(step, String(beside));
    }
  }
  return one.length - other.length;
}

/** Compares texts by their bytes in UTF-8. */
function compareText(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
