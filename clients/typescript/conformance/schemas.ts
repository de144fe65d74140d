import { createRegistry, type DescFile, type DescMessage } from "@bufbuild/protobuf";
import * as v1 from "@turnwire/client/v1";

const registry = createRegistry(...Object.values<unknown>(v1).filter(isFile));

/** The schema of a message by its full name. Throws an Error for a name that no message has. */
export function schemaNamed(typeName: string): DescMessage {
  const schema = registry.getMessage(typeName);
  if (schema === undefined) {
    throw new Error(`there is no message ${typeName}`);
  }
  return schema;
}

function isFile(value: unknown): value is DescFile {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "file";
}
