import { type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Violation } from "../errors.js";
import { pathKey } from "./paths.js";

/** The rule that a string breaks which is no valid Unicode, as the service names it for bytes that are no UTF-8. */
const WIRE_FORMAT = "turnwire.wire_format";

/**
 * Lists the texts of a message that hold half of a surrogate pair. A string in JavaScript can, but UTF-8 has no form for
 * it, and writing the message would put U+FFFD in its place without a word.
 */
export function textViolations<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Violation[] {
  const found: Violation[] = [];
  walk(reflect(schema, message, false), "", found);
  return found;
}

function walk(message: ReflectMessage, prefix: string, found: Violation[]): void {
  for (const field of message.desc.fields) {
    if ((field.scalar !== undefined && field.scalar !== ScalarType.STRING) || !message.isSet(field)) {
      continue;
    }
    const path = prefix + field.name;
    switch (field.fieldKind) {
      case "scalar":
        value(message.get(field), path, found);
        break;
      case "message":
        value(message.get(field), path, found);
        break;
      case "list": {
        let index = 0;
        for (const item of message.get(field)) {
          value(item, `${path}[${index++}]`, found);
        }
        break;
      }
      case "map":
        for (const [key, item] of message.get(field)) {
          value(key, `${path}[${pathKey(key)}]`, found);
          value(item, `${path}[${pathKey(key)}]`, found);
        }
        break;
    }
  }
}

function value(content: unknown, path: string, found: Violation[]): void {
  if (typeof content === "string") {
    if (!content.isWellFormed()) {
      found.push({ path, rule: WIRE_FORMAT, text: "must be valid Unicode, without half of a surrogate pair" });
    }
  } else if (typeof content === "object" && content !== null && "desc" in content) {
    walk(content as ReflectMessage, `${path}.`, found);
  }
}
