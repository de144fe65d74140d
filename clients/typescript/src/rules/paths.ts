import type { Path } from "@bufbuild/protobuf/reflect";

/** How many characters of a map's key a path shows. */
const KEY_SHOWN = 64;

/** Writes a map's key for a path: a text in quotes and cut to 64 characters, anything else as it is. */
export function pathKey(key: unknown): string {
  if (typeof key !== "string") {
    return String(key);
  }
  const shown = [...key];
  return JSON.stringify(shown.length <= KEY_SHOWN ? key : `${shown.slice(0, KEY_SHOWN).join("")}…`);
}

/** Writes a path as errors name it: `parts[1].tool.input_json`, `labels["k"]`; the names are the schema's. */
export function pathText(path: Path): string {
  let text = "";
  for (const step of path) {
    switch (step.kind) {
      case "list_sub":
        text += `[${step.index}]`;
        break;
      case "map_sub":
        text += `[${pathKey(step.key)}]`;
        break;
      case "extension":
        text += `${text && "."}[${step.typeName}]`;
        break;
      default:
        text += `${text && "."}${step.name}`;
    }
  }
  return text;
}
