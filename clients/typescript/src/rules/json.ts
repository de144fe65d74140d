/** The most levels of arrays and objects in a JSON text; `[]` is one level, a number none. */
export const JSON_DEPTH = 128;

/** Why a text is refused: a rule's id, and a text that tells what is right. */
export interface JsonFault {
  readonly rule: string;
  readonly text: string;
}

/**
 * Checks one JSON text by RFC 8259 in UTF-8; `object` asks for an object at its top. An empty text means that there is
 * none: no fault. Escapes of lone surrogates, duplicate keys and numbers of any length are legal; NaN, Infinity and a
 * byte order mark are not.
 */
export function checkJson(text: string, object: boolean): JsonFault | undefined {
  if (text === "") {
    return undefined;
  }
  if (depth(text) > JSON_DEPTH) {
    return { rule: "turnwire.json.depth", text: `must nest at most ${JSON_DEPTH} levels deep` };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { rule: "turnwire.json.syntax", text: "must be one JSON document (RFC 8259)" };
  }
  if (object && (typeof value !== "object" || value === null || Array.isArray(value))) {
    return { rule: "turnwire.json.shape", text: "must be a JSON object" };
  }
  return undefined;
}

/** How many levels are open at the deepest place of a text, valid JSON or not. */
function depth(text: string): number {
  let level = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) {
        at++; // a backslash and what it escapes
      } else if (code === 0x22) {
        inString = false;
      }
    } else if (code === 0x22) {
      inString = true;
    } else if (code === 0x5b || code === 0x7b) {
      deepest = Math.max(deepest, ++level);
    } else if (code === 0x5d || code === 0x7d) {
      level--;
    }
  }
  return deepest;
}
