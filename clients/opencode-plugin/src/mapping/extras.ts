// What keeps the mapping lossless, as Turnwire's importer does it: the object that would be written from the fields is
// compared with the original, and where both differ the original stands in `extra_json`, under the program's name:
//
//     {"opencode": {"/slug": "swift-engine", "drop": ["/mode"], "text": {"/deep": "[[…]]"}}}
//
// A key that begins with "/" is a JSON pointer (RFC 6901) into the original; `drop` lists what the original has not;
// `text` holds as strings what would nest too deep.

import { Document, isStorable, isTree, type Json, type Tree } from "./values.js";

/** The name space of opencode's extras. */
export const SPACE = "opencode";
/** What opencode keeps beside a session, and no export has. */
export const BESIDE = "opencode/beside";

/** A value inside the extras stands inside two objects. */
const WRAPPED = 2;

export type Path = readonly string[];

/** Where an original and a derived tree differ: what to set from the original, and what to drop. */
export interface Difference {
  readonly sets: Path[];
  readonly drops: Path[];
}

/** Where `derived` has to be changed to become `original`; the order of keys does not count. */
export function compare(original: Json, derived: Json): Difference {
  const difference: Difference = { sets: [], drops: [] };
  collect(original, derived, [], difference);
  return difference;
}

function collect(original: Json, derived: Json, path: Path, { sets, drops }: Difference): void {
  if (isTree(original) && isTree(derived)) {
    for (const [key, value] of Object.entries(original)) {
      const other = Object.hasOwn(derived, key) ? derived[key] : undefined;
      if (other === undefined) {
        sets.push([...path, key]);
      } else {
        collect(value, other, [...path, key], { sets, drops });
      }
    }
    for (const key of Object.keys(derived)) {
      if (!Object.hasOwn(original, key)) {
        drops.push([...path, key]);
      }
    }
  } else if (Array.isArray(original) && Array.isArray(derived) && original.length === derived.length) {
    for (const [index, value] of original.entries()) {
      collect(value, derived[index] as Json, [...path, String(index)], { sets, drops });
    }
  } else if (original instanceof Document && derived instanceof Document) {
    if (original.text !== derived.text) {
      sets.push(path);
    }
  } else if (original !== derived) {
    sets.push(path);
  }
}

/** `extra_json` of one object: empty if there is no difference. `keep` chooses paths by their first step. */
export function extraJson(difference: Difference, original: Json, keep: (key: string) => boolean = () => true): string {
  const members: string[] = [];
  const texts: string[] = [];
  for (const path of difference.sets.filter(([first = ""]) => keep(first))) {
    const text = JSON.stringify(at(original, path));
    const key = JSON.stringify(pointer(path));
    if (isStorable(text, WRAPPED)) {
      members.push(`${key}:${text}`);
    } else {
      texts.push(`${key}:${JSON.stringify(text)}`);
    }
  }
  const drops = difference.drops.filter(([first = ""]) => keep(first)).map((path) => JSON.stringify(pointer(path)));
  if (drops.length > 0) {
    members.push(`"drop":[${drops.join(",")}]`);
  }
  if (texts.length > 0) {
    members.push(`"text":{${texts.join(",")}}`);
  }
  return members.length > 0 ? ofSpaces([[SPACE, `{${members.join(",")}}`]]) : "";
}

function at(tree: Json, path: Path): Json {
  return path.reduce<Json>((node, step) => (node as Tree)[step] as Json, tree);
}

function pointer(path: Path): string {
  return path.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** `extra_json` from the JSON texts of name spaces. */
export function ofSpaces(spaces: Iterable<readonly [string, string]>): string {
  const members = Array.from(spaces, ([name, text]) => `${JSON.stringify(name)}:${text}`);
  return members.length > 0 ? `{${members.join(",")}}` : "";
}

/** The JSON text of each name space of an `extra_json`, as it stands there. */
export function spacesOf(extraJson: string): Map<string, string> {
  const spaces = new Map<string, string>();
  const member = /\s*("(?:[^"\\]|\\.)*")\s*:\s*/y;
  let start = extraJson.indexOf("{") + 1;
  while (start > 0) {
    member.lastIndex = start;
    const key = member.exec(extraJson)?.[1];
    if (key === undefined) {
      break;
    }
    const end = endOfValue(extraJson, member.lastIndex);
    spaces.set(JSON.parse(key), extraJson.slice(member.lastIndex, end).trimEnd());
    start = extraJson[end] === "," ? end + 1 : 0;
  }
  return spaces;
}

/** The index of the comma or brace behind the value that starts at `start`. */
function endOfValue(text: string, start: number): number {
  const token = /"(?:[^"\\]|\\.)*"|[[\]{},]/g;
  token.lastIndex = start;
  let depth = 0;
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    const [mark] = found;
    if (mark === "{" || mark === "[") {
      depth++;
    } else if (depth === 0 && !mark.startsWith('"')) {
      return found.index;
    } else if (mark === "}" || mark === "]") {
      depth--;
    }
  }
  return text.length;
}
