import { create, type DescField, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { requireText } from "./rules/index.js";

/**
 * The deterministic serialization of a message: equal messages give equal bytes, in every language. Fields go by their
 * numbers, maps by their keys in UTF-8, unknown fields come last, as they were read. Throws RULE_VIOLATION for a text that
 * is no valid Unicode and so has no bytes.
 */
export function deterministic<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array {
  requireText(schema, message);
  return serialized(schema, message);
}

/** The same for a message whose texts are known to be valid. */
export function serialized<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array {
  if (hasMaps(schema)) {
    const reflected = reflect(schema, message, false);
    if (holdsMaps(reflected)) {
      return written(reflected);
    }
  }
  return toBinary(schema, message);
}

const withMaps = new Map<DescMessage, boolean>();

/** Whether a message of this type can hold a map, in itself or in what is inside it. */
function hasMaps(schema: DescMessage): boolean {
  const known = withMaps.get(schema);
  if (known !== undefined) {
    return known;
  }
  withMaps.set(schema, false); // while it is looked at, for a type inside itself
  const found = schema.fields.some(
    (field) => field.fieldKind === "map" || (field.message !== undefined && hasMaps(field.message)),
  );
  withMaps.set(schema, found);
  return found;
}

/** Whether there is a map in a message, or in what is inside it, whose entries have an order. */
function holdsMaps(message: ReflectMessage): boolean {
  return message.desc.fields.some((field) => {
    if (!message.isSet(field)) {
      return false;
    }
    if (field.fieldKind === "map") {
      return message.get(field).size > 1;
    }
    if (field.message === undefined || !hasMaps(field.message)) {
      return false;
    }
    return field.fieldKind === "message"
      ? holdsMaps(message.get(field))
      : [...message.get(field as DescField & { fieldKind: "list" })].some((item) => holdsMaps(item as ReflectMessage));
  });
}

function written(message: ReflectMessage): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of message.desc.fields.toSorted((a, b) => a.number - b.number)) {
    if (message.isSet(field)) {
      writeField(writer, message, field);
    }
  }
  for (const { no, wireType, data } of message.getUnknown() ?? []) {
    writer.tag(no, wireType).raw(data);
  }
  return writer.finish();
}

function writeField(writer: BinaryWriter, message: ReflectMessage, field: DescField): void {
  if (field.fieldKind === "map") {
    const whole = message.get(field);
    const keys = [...whole.keys()].sort((a, b) => compareKeys(a, b));
    for (const key of keys) {
      const one = reflect(message.desc, create(message.desc), false);
      const value = whole.get(key);
      one.get(field).set(key, value);
      writer.raw(toBinary(message.desc, one.message as never));
    }
  } else if (field.fieldKind === "message" && hasMaps(field.message)) {
    writer.tag(field.number, WireType.LengthDelimited).bytes(written(message.get(field)));
  } else if (field.fieldKind === "list" && field.listKind === "message" && hasMaps(field.message)) {
    for (const item of message.get(field)) {
      writer.tag(field.number, WireType.LengthDelimited).bytes(written(item as ReflectMessage));
    }
  } else {
    const one = reflect(message.desc, create(message.desc), false);
    one.set(field, message.get(field) as never);
    writer.raw(toBinary(message.desc, one.message as never));
  }
}

/** Orders keys of maps: ascending, strings by their bytes in UTF-8. */
function compareKeys(a: unknown, b: unknown): number {
  if (typeof a !== "string" || typeof b !== "string") {
    return Number(a) - Number(b);
  }
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** A top-level field of serialized bytes; `data` is the content of a length-delimited one, else empty. */
export interface RawField {
  readonly number: number;
  readonly data: Uint8Array;
}

/** Walks the top level of serialized bytes. Throws an Error for bytes that are no message. */
export function* rawFields(bytes: Uint8Array): Generator<RawField> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited) {
      yield { number, data: reader.bytes() };
    } else {
      reader.skip(wireType, number);
      yield { number, data: new Uint8Array() };
    }
  }
}
