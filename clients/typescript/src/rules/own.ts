import { type DescField, type DescMessage, getOption, hasOption, type MessageShape } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { Violation } from "../errors.js";
import { AssistantSchema, UserSchema } from "../gen/turnwire/v1/message_pb.js";
import { held_by, JsonShape, json, Role, RoleSchema, stored_only } from "../gen/turnwire/v1/options_pb.js";
import { PromptPartSchema } from "../gen/turnwire/v1/part_pb.js";
import { MutationSchema } from "../gen/turnwire/v1/prompt_pb.js";
import { checkJson } from "./json.js";
import { pathKey } from "./paths.js";

/** What is known about a message from where it stands. */
export interface Context {
  /** Whether parts must have their ids (true), must have none (false), or either. */
  readonly stored: boolean | undefined;
  /** The role of the message that holds what is looked at; unspecified: not known. */
  readonly role: Role;
}

export const UNKNOWN = "turnwire.unknown";
export const STORED_ONLY = "turnwire.stored_only";
export const CALL_ID = "turnwire.call_id";
const HELD_BY = "turnwire.held_by";
const TIMESTAMP = "turnwire.timestamp";

/** Seconds since 1970 of 0001-01-01T00:00:00Z and of 9999-12-31T23:59:59Z, the limits that timestamp.proto sets. */
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

/** A mutation and its edits: everything inside them is written by a hook. */
const TRANSIENT = new Set<string>([MutationSchema, ...MutationSchema.fields.map((field) => field.message)].map(nameOf));

/** Lists Turnwire's own rules that a message breaks: what protovalidate cannot say. `proto/README.md` numbers them. */
export function ownViolations<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  context: Context,
): Violation[] {
  const found: Violation[] = [];
  if (concerns(schema)) {
    walk(reflect(schema, message, false), "", context, found);
  }
  return found;
}

function walk(message: ReflectMessage, prefix: string, outer: Context, found: Violation[]): void {
  const context = inside(message, outer);
  for (const field of message.desc.fields) {
    if (hasOption(field, stored_only)) {
      storedOnly(message, field, prefix, context, found);
    }
    if (!message.isSet(field)) {
      continue;
    }
    const path = prefix + field.name;
    const roles = getOption(field, held_by);
    if (context.role !== Role.UNSPECIFIED && roles.length > 0 && !roles.includes(context.role)) {
      const names = roles.map((role) => RoleSchema.value[role]?.localName.toLowerCase()).join(" or ");
      found.push({ path, rule: HELD_BY, text: `must be in a message of role ${names}` });
    }
    values(message, field, path, context, found);
  }
  if (roleOf(message) !== undefined) {
    repeatedCalls(message, prefix, found);
  }
}

function values(message: ReflectMessage, field: DescField, path: string, context: Context, found: Violation[]): void {
  switch (field.fieldKind) {
    case "scalar":
      if (hasOption(field, json)) {
        const fault = checkJson(message.get(field) as string, getOption(field, json) === JsonShape.OBJECT);
        if (fault !== undefined) {
          found.push({ path, ...fault });
        }
      }
      break;
    case "message":
      one(message.get(field), path, context, found);
      break;
    case "list":
      if (field.listKind === "message" && concerns(field.message)) {
        let index = 0;
        for (const item of message.get(field)) {
          one(item as ReflectMessage, `${path}[${index++}]`, context, found);
        }
      }
      break;
    case "map":
      if (field.mapKind === "message" && concerns(field.message)) {
        for (const [key, item] of message.get(field)) {
          one(item as ReflectMessage, `${path}[${pathKey(key)}]`, context, found);
        }
      }
      break;
  }
}

function one(message: ReflectMessage, path: string, context: Context, found: Violation[]): void {
  if (message.desc.typeName === TimestampSchema.typeName) {
    const { seconds, nanos } = message.message as MessageShape<typeof TimestampSchema>;
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND || nanos < 0 || nanos > 999_999_999) {
      found.push({
        path,
        rule: TIMESTAMP,
        text: "must lie in the years 0001 to 9999, with 0 to 999,999,999 nanoseconds",
      });
    }
  } else if (concerns(message.desc)) {
    walk(message, `${path}.`, context, found);
  }
}

function storedOnly(
  message: ReflectMessage,
  field: DescField,
  prefix: string,
  context: Context,
  found: Violation[],
): void {
  const path = prefix + field.name;
  if (message.isSet(field)) {
    if (context.stored === false) {
      found.push({ path, rule: STORED_ONLY, text: "must be empty in what a hook writes" });
    }
  } else if (context.stored === true) {
    found.push({ path, rule: "required", text: "must be set in what is stored" });
  }
}

function inside(message: ReflectMessage, outer: Context): Context {
  return {
    stored: TRANSIENT.has(message.desc.typeName) ? false : outer.stored,
    role: roleOf(message) ?? outer.role,
  };
}

/** The role of the parts in a message, where it says so itself: a number that is no role reads as not known. */
function roleOf(message: ReflectMessage): Role | undefined {
  if (message.desc.typeName === UserSchema.typeName) {
    return Role.USER;
  }
  if (message.desc.typeName === AssistantSchema.typeName) {
    return Role.ASSISTANT;
  }
  const field = message.desc.field.role;
  if (field?.fieldKind !== "enum" || message.desc.field.parts === undefined) {
    return undefined;
  }
  const role = message.get(field) as Role;
  return role === Role.USER || role === Role.ASSISTANT ? role : Role.UNSPECIFIED;
}

function repeatedCalls(message: ReflectMessage, prefix: string, found: Violation[]): void {
  const parts = message.desc.field.parts;
  if (parts?.fieldKind !== "list" || parts.message?.typeName !== PromptPartSchema.typeName) {
    return;
  }
  const seen = new Set<string>();
  let index = 0;
  for (const item of message.get(parts)) {
    const { kind } = (item as ReflectMessage).message as MessageShape<typeof PromptPartSchema>;
    if (kind.case === "tool") {
      // An empty call id breaks a rule of its own already.
      if (kind.value.callId !== "" && seen.has(kind.value.callId)) {
        found.push({
          path: `${prefix}parts[${index}].tool.call_id`,
          rule: CALL_ID,
          text: "must be unique in the message",
        });
      }
      seen.add(kind.value.callId);
    }
    index++;
  }
}

const concerned = new Map<DescMessage, boolean>();

/** Whether a rule of ours can be broken in a message of this type, or in what is inside it. */
function concerns(schema: DescMessage): boolean {
  const known = concerned.get(schema);
  if (known !== undefined) {
    return known;
  }
  concerned.set(schema, false); // while it is looked at, for a type inside itself
  const found =
    schema.typeName === TimestampSchema.typeName ||
    schema.fields.some(
      (field) =>
        hasOption(field, json) ||
        hasOption(field, stored_only) ||
        getOption(field, held_by).length > 0 ||
        (field.message !== undefined && concerns(field.message)),
    );
  concerned.set(schema, found);
  return found;
}

function nameOf(schema: DescMessage | undefined): string {
  return schema?.typeName ?? "";
}
