/**
 * Reads binary as the spec says (chapter 1). protobuf-es takes a field that it knows by whatever wire type comes, and
 * does not hold a field to the end of the message around it, so that malformed bytes are read as something else. Here
 * the bytes are looked at first, by the descriptors.
 */
import {
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** How deep messages, and groups of fields that are not known, may nest; as in every library of protobuf. */
const MOST_LEVELS = 100;

/** A number that no schema may use: under it a field waits whose wire type is not the schema's. */
const SET_ASIDE = 19_999;

/**
 * Reads a message. A field whose wire type is not that of the schema is kept as an unknown field. Throws an Error for
 * bytes that are truncated, malformed, or nest more than 100 levels deep, and for a text that is not UTF-8.
 */
export function readMessage<Desc extends DescMessage>(schema: Desc, bytes: Uint8Array): MessageShape<Desc> {
  const fitting = conforming(schema, bytes, MOST_LEVELS);
  const message = fromBinary(schema, fitting);
  if (fitting !== bytes) {
    restore(reflect(schema, message, false));
  }
  return message;
}

/** The same bytes if all wire types are those of the schema; else others, in which such fields are set aside. */
function conforming(schema: DescMessage, bytes: Uint8Array, levels: number): Uint8Array {
  if (levels === 0) {
    throw new Error("messages nest too deeply");
  }
  const cursor = new Cursor(bytes);
  const fields = fieldsOf(schema);
  const pieces: Uint8Array[] = [];
  let kept = 0;
  while (cursor.position < bytes.length) {
    const start = cursor.position;
    const [number, wireType] = cursor.tag();
    const content = cursor.skip(number, wireType, levels);
    const field = fields.get(number);
    let instead: Uint8Array | undefined;
    if (field !== undefined && !fits(field, wireType)) {
      instead = new BinaryWriter()
        .tag(SET_ASIDE, WireType.LengthDelimited)
        .bytes(bytes.subarray(start, cursor.position))
        .finish();
    } else if (field?.fieldKind === "map") {
      instead = entry(field, content, levels - 1);
    } else if (field?.message !== undefined) {
      const inside = conforming(field.message, content, levels - 1);
      if (inside !== content) {
        instead = new BinaryWriter().tag(number, wireType).bytes(inside).finish();
      }
    }
    if (instead !== undefined) {
      pieces.push(bytes.subarray(kept, start), instead);
      kept = cursor.position;
    }
  }
  return pieces.length === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(kept)]);
}

/** An entry of a map without what is neither key nor value, which no map can hold; undefined: there is no such thing. */
function entry(field: DescField & { fieldKind: "map" }, bytes: Uint8Array, levels: number): Uint8Array | undefined {
  if (field.mapKind === "message") {
    throw new Error("maps of messages are not known here; the schema has none");
  }
  const wireTypes = [wireTypeOf(field.mapKey), field.mapKind === "enum" ? WireType.Varint : wireTypeOf(field.scalar)];
  const cursor = new Cursor(bytes);
  const pieces: Uint8Array[] = [];
  while (cursor.position < bytes.length) {
    const start = cursor.position;
    const [number, wireType] = cursor.tag();
    cursor.skip(number, wireType, levels);
    if (wireTypes[number - 1] === wireType) {
      pieces.push(bytes.subarray(start, cursor.position));
    }
  }
  const inside = Buffer.concat(pieces);
  return inside.length === bytes.length
    ? undefined
    : new BinaryWriter().tag(field.number, WireType.LengthDelimited).bytes(inside).finish();
}

/** Makes unknown fields, at any depth, of what was set aside. */
function restore(message: ReflectMessage): void {
  const unknown = (message.message as Message).$unknown ?? [];
  for (const [at, { no, data }] of unknown.entries()) {
    if (no === SET_ASIDE) {
      const raw = new BinaryReader(data).bytes();
      const reader = new BinaryReader(raw);
      const [number, wireType] = reader.tag();
      unknown[at] = { no: number, wireType, data: raw.subarray(reader.pos) };
    }
  }
  for (const field of message.desc.fields) {
    if (field.fieldKind === "message" && message.isSet(field)) {
      restore(message.get(field));
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const item of message.get(field)) {
        restore(item as ReflectMessage);
      }
    }
  }
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(schema: DescMessage): ReadonlyMap<number, DescField> {
  let found = known.get(schema);
  if (found === undefined) {
    found = new Map(schema.fields.map((field) => [field.number, field]));
    known.set(schema, found);
  }
  return found;
}

function fits(field: DescField, wireType: WireType): boolean {
  switch (field.fieldKind) {
    case "scalar":
      return wireType === wireTypeOf(field.scalar);
    case "enum":
      return wireType === WireType.Varint;
    case "list":
      if (wireType === WireType.LengthDelimited) {
        return true; // A list of numbers may come packed.
      }
      return field.listKind !== "message" && wireType === (field.scalar ? wireTypeOf(field.scalar) : WireType.Varint);
    default:
      return wireType === WireType.LengthDelimited;
  }
}

function wireTypeOf(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

/** A place in bytes; what goes beyond their end is an Error. */
class Cursor {
  position = 0;

  constructor(private readonly bytes: Uint8Array) {}

  /** The number and wire type of the field that begins here. */
  tag(): [number, WireType] {
    const tag = this.varint();
    const number = Math.floor(tag / 8);
    if (number < 1 || number > 536_870_911) {
      throw new Error("a field with an impossible number");
    }
    return [number, tag % 8];
  }

  /** Goes beyond the field whose tag was read; the content of one with a length, else nothing. */
  skip(number: number, wireType: WireType, levels: number): Uint8Array {
    const none = new Uint8Array();
    switch (wireType) {
      case WireType.Varint:
        this.varint();
        return none;
      case WireType.Bit64:
        this.forward(8);
        return none;
      case WireType.Bit32:
        this.forward(4);
        return none;
      case WireType.LengthDelimited: {
        const size = this.varint();
        this.forward(size);
        return this.bytes.subarray(this.position - size, this.position);
      }
      case WireType.StartGroup:
        this.group(number, levels - 1);
        return none;
      default:
        throw new Error("a field of no wire type, or the end of a group that did not begin");
    }
  }

  private group(number: number, levels: number): void {
    if (levels === 0) {
      throw new Error("groups nest too deeply");
    }
    for (;;) {
      const [inner, wireType] = this.tag();
      if (wireType === WireType.EndGroup) {
        if (inner !== number) {
          throw new Error("the end of another group");
        }
        return;
      }
      this.skip(inner, wireType, levels);
    }
  }

  /** A varint. It may be rounded beyond 2^53, where no tag and no length is right anyway. */
  private varint(): number {
    let value = 0;
    for (let at = 0; at < 10; at++) {
      const byte = this.bytes[this.position++];
      if (byte === undefined) {
        throw new Error("bytes that end within a field");
      }
      value += (byte & 0x7f) * 2 ** (7 * at);
      if (byte < 0x80) {
        return value;
      }
    }
    throw new Error("a varint of more than ten bytes");
  }

  private forward(size: number): void {
    if (size > this.bytes.length - this.position) {
      throw new Error("a field that goes beyond the end of the message around it");
    }
    this.position += size;
  }
}
