"""JSON Schemas of the messages, for their canonical ProtoJSON form, made from the shipped descriptors.

A schema is as strict as JSON Schema can be: what it refuses, Turnwire refuses. It cannot say everything: a limit in
bytes is given in characters, 64-bit numbers are strings in ProtoJSON whose ranges are patterns, and the rules of
Turnwire's own options stand in the descriptions. Parsers of ProtoJSON take other spellings too (numbers for
strings, snake_case names); the schema is that of what Turnwire writes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor, OneofDescriptor

from turnwire.rules import own, schema, standard

Schema: TypeAlias = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_WELL_KNOWN: Final[dict[str, Schema]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.FieldMask": {"type": "string", "description": "Names of fields in camelCase, with commas."},
}
_INT32: Final = {FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1), FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1)}
_INT64: Final = {FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64}
_BASE64: Final = "^[A-Za-z0-9+/]*={0,2}$"

# Fields of the messages in descriptor.proto, of which the paths in a file's source code info are made.
_FILE_MESSAGE, _FILE_ENUM, _MESSAGE_FIELD, _MESSAGE_ONEOF, _ENUM_VALUE = 4, 5, 2, 8, 2


def message_names() -> list[str]:
    """The full names of the schema's messages, in the order of the files."""
    return [message.full_name for file in schema.own_files() for message in file.message_types_by_name.values()]


def find(name: str) -> Descriptor:
    """A message by its full name, or by its name in ``turnwire.v1``. Raises KeyError."""
    full = name if name.startswith(f"{schema.PACKAGE}.") else f"{schema.PACKAGE}.{name}"
    if full not in message_names():
        raise KeyError(name)
    return schema.message(full)


def comment(descriptor: Descriptor | FieldDescriptor) -> str:
    """The comment of a message or field, as one paragraph."""
    holder = descriptor.containing_type if isinstance(descriptor, FieldDescriptor) else descriptor
    assert holder is not None  # no field of the schema is an extension
    return _comments(holder.file)[descriptor.full_name]


def json_schema(message: Descriptor) -> Schema:
    """The JSON Schema of a message; the messages inside it are under ``$defs`` by their full names."""
    definitions: dict[str, Schema] = {}
    _define(message, definitions)
    return {
        "$schema": DIALECT,
        "title": message.full_name,
        "$ref": _pointer(message.full_name),
        "$defs": dict(sorted(definitions.items())),
    }


def _define(message: Descriptor, definitions: dict[str, Schema]) -> None:
    if message.full_name in definitions:
        return
    if message.full_name in _WELL_KNOWN:
        definitions[message.full_name] = _WELL_KNOWN[message.full_name]
        return
    result: Schema = {"type": "object", "description": comment(message)}
    definitions[message.full_name] = result
    result["properties"] = {field.json_name: _field(field, definitions) for field in message.fields}
    required = [field.json_name for field in message.fields if _required(field)]
    if required:
        result["required"] = required
    result["additionalProperties"] = False
    choices = [_choice(oneof) for oneof in message.oneofs if own.is_real(oneof)]
    if len(choices) == 1:
        result.update(choices[0])
    elif choices:
        result["allOf"] = choices


def _field(field: FieldDescriptor, definitions: dict[str, Schema]) -> Schema:
    rules: Any = schema.option(field, "buf.validate.field")
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        result = _map(field, rules.map if rules is not None and rules.HasField("map") else None, definitions)
    elif field.is_repeated:
        limits = rules.repeated if rules is not None and rules.HasField("repeated") else None
        items = limits.items if limits is not None and limits.HasField("items") else None
        result = {"type": "array", "items": _single(field, items, definitions)}
        result |= _limits(limits, {"min_items": "minItems", "max_items": "maxItems"})
    else:
        result = _single(field, rules, definitions)
    return {"description": _description(field), **result}


def _map(field: FieldDescriptor, rules: Any, definitions: dict[str, Schema]) -> Schema:
    assert field.message_type is not None
    entry = field.message_type.fields_by_name
    values = rules.values if rules is not None and rules.HasField("values") else None
    result: Schema = {"type": "object", "additionalProperties": _single(entry["value"], values, definitions)}
    if rules is not None and rules.HasField("keys"):
        result["propertyNames"] = {key: value for key, value in _string(rules.keys).items() if key != "type"}
    return result | _limits(rules, {"min_pairs": "minProperties", "max_pairs": "maxProperties"})


def _single(field: FieldDescriptor, rules: Any, definitions: dict[str, Schema]) -> Schema:
    """One value of a field, which may be one of many."""
    if field.message_type is not None:
        _define(field.message_type, definitions)
        return {"$ref": _pointer(field.message_type.full_name)}
    if field.enum_type is not None:
        return _enum(field.enum_type, rules)
    if field.type == FieldDescriptor.TYPE_STRING:
        result = _string(rules)
        return result | ({"contentMediaType": "application/json"} if own.json_object(field) is not None else {})
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(rules)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"type": "boolean"}
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return _double(rules)
    if field.type in _INT64:
        return _int64(rules.int64 if rules is not None and rules.HasField("int64") else None)
    low, high = _INT32[field.type]
    result = {"type": "integer", "minimum": low, "maximum": high}
    return result | _limits(rules.int32 if rules is not None and rules.HasField("int32") else None, _RANGE)


_RANGE: Final = {"gte": "minimum", "lte": "maximum"}


# A text of so many bytes has at most so many characters.
_TEXT_LIMITS: Final = {"min_len": "minLength", "max_bytes": "maxLength", "max_len": "maxLength", "pattern": "pattern"}


def _string(rules: Any) -> Schema:
    found = rules.string if rules is not None and rules.HasField("string") else None
    limits = _limits(found, _TEXT_LIMITS)
    return {"type": "string", **limits}


def _bytes(rules: Any) -> Schema:
    result: Schema = {"type": "string", "contentEncoding": "base64", "pattern": _BASE64}
    if rules is not None and rules.HasField("bytes") and rules.bytes.HasField("len"):
        length = (rules.bytes.len + 2) // 3 * 4
        result |= {"minLength": length, "maxLength": length}
    return result


def _double(rules: Any) -> Schema:
    found = rules.double if rules is not None and rules.HasField("double") else None
    number = {"type": "number"} | _limits(found, _RANGE)
    if found is not None and found.finite:
        return number
    return {"anyOf": [number, {"enum": ["NaN", "Infinity", "-Infinity"]}]}


def _int64(rules: Any) -> Schema:
    least = rules.gte if rules is not None and rules.HasField("gte") else None
    if least == 1:
        pattern = "^[1-9][0-9]{0,18}$"
    elif least == 0:
        pattern = "^(0|[1-9][0-9]{0,18})$"
    else:
        pattern = "^(0|-?[1-9][0-9]{0,18})$"
    return {"type": "string", "pattern": pattern}


def _enum(enum: EnumDescriptor, rules: Any) -> Schema:
    refused = set(rules.enum.not_in) if rules is not None and rules.HasField("enum") else set[int]()
    return {"enum": [value.name for value in enum.values if value.number not in refused]}


def _limits(rules: Any, names: dict[str, str]) -> Schema:
    if rules is None:
        return {}
    return {keyword: getattr(rules, name) for name, keyword in names.items() if rules.HasField(name)}


def _required(field: FieldDescriptor) -> bool:
    """Whether a message without the field breaks a rule. ProtoJSON leaves out what is zero or unset."""
    rules = standard.field_rules(field)
    if rules.required:
        return True
    if field.has_presence or field.containing_oneof is not None or rules.skip_zero:
        return False
    zero: Any = () if field.is_repeated else field.default_value
    return not standard.holds(rules.clauses, zero)


def _choice(oneof: OneofDescriptor) -> Schema:
    members: list[Schema] = [{"required": [field.json_name]} for field in oneof.fields]
    if not standard.oneof_required(oneof):
        members.append({"not": {"anyOf": members[:]}})
    return {"oneOf": members}


def _description(field: FieldDescriptor) -> str:
    told = [comment(field)]
    is_object = own.json_object(field)
    if is_object is not None:
        told.append(f"A JSON {'object' if is_object else 'document'} as text, at most 128 levels deep.")
    if own.stored_only(field):
        told.append("Empty in what a hook writes.")
    roles = own.held_by(field)
    if roles:
        told.append(f"In messages of role {' or '.join(own.ROLES[role] for role in roles)}.")
    return " ".join(told)


def _pointer(full_name: str) -> str:
    return f"#/$defs/{full_name}"


@cache
def _comments(file: FileDescriptor) -> dict[str, str]:
    """The comments of a file's messages and fields by full name."""
    source = next(each for each in schema.descriptor_set().file if each.name == file.name)
    found = {tuple(place.path): _paragraph(place.leading_comments) for place in source.source_code_info.location}
    result: dict[str, str] = {}
    for number, message in enumerate(file.message_types_by_name.values()):
        result[message.full_name] = found.get((_FILE_MESSAGE, number), "")
        for index, field in enumerate(message.fields):
            result[field.full_name] = found.get((_FILE_MESSAGE, number, _MESSAGE_FIELD, index), "")
    return result


def _paragraph(lines: str) -> str:
    return " ".join(line.strip() for line in lines.splitlines()).strip()


def first_sentence(text: str) -> str:
    """The first sentence of a comment."""
    head, stop, _ = text.partition(". ")
    return head + stop.rstrip() if stop else text
