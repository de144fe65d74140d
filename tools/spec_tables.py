"""Writes the tables of docs/spec.md, which are read off the descriptors; `make generate` calls it.

A table stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. Everything else in the file is left alone.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message

from turnwire.rules import schema
from turnwire.v1 import errors_pb2

SPEC = Path("docs/spec.md")
#: Where the kinds of elements stand in FileDescriptorProto.
MESSAGE, ENUM, EXTENSION = 4, 5, 7
#: Turnwire's own options that are rules.
MARKS = {
    "turnwire.v1.json": "json",
    "turnwire.v1.stored_only": "stored_only",
    "turnwire.v1.held_by": "held_by",
}


def main() -> None:
    text = SPEC.read_text("utf-8")
    for name, make in TABLES.items():
        before, begin, rest = text.partition(f"<!-- generated: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not begin or not end:
            sys.exit(f"{SPEC}: no table {name!r}")
        text = before + begin + "\n".join(make()) + "\n" + end + after
    SPEC.write_text(text, "utf-8")


def files() -> list[FileDescriptorProto]:
    """The files of the schema."""
    return [file for file in schema.descriptor_set().file if file.package == schema.PACKAGE]


def comment(file: FileDescriptorProto, *path: int) -> str:
    """What the schema says of the element at a path, on one line and safe in a table."""
    for location in file.source_code_info.location:
        if tuple(location.path) == path:
            return " ".join(location.leading_comments.split()).replace("|", "\\|").replace("<", "&lt;")
    return ""


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def own_rules() -> Iterator[str]:
    """The options that mark Turnwire's own rules."""
    yield "| option | what it says |"
    yield "|---|---|"
    (file,) = (file for file in files() if file.name.endswith("/options.proto"))
    for at, extension in enumerate(file.extension):
        yield row(f"`{extension.name}`", comment(file, EXTENSION, at))


def payloads() -> Iterator[str]:
    """The payloads of an entry."""
    yield "| number | payload | what it does |"
    yield "|---|---|---|"
    for file in files():
        for at, message in enumerate(file.message_type):
            for place, field in enumerate(message.field):
                if message.name == "Entry" and field.HasField("oneof_index"):
                    said = comment(file, MESSAGE, at, 2, place)
                    yield row(str(field.number), f"`{field.name}`: {field.type_name.rpartition('.')[2]}", said)


def reasons() -> Iterator[str]:
    """Every reason with its status and detail message."""
    yield "| number | reason | status | detail | when | what to do |"
    yield "|---|---|---|---|---|---|"
    (file,) = (file for file in files() if file.name.endswith("/errors.proto"))
    for at, enum in enumerate(file.enum_type):
        for place, value in enumerate(enum.value):
            if enum.name != "Reason" or not value.number:
                continue
            options = errors_pb2.Reason.DESCRIPTOR.values_by_number[value.number].GetOptions()
            said = comment(file, ENUM, at, 2, place).partition(" Example: ")[0]
            when, _, advice = said.partition(" What to do: ")
            detail = options.Extensions[errors_pb2.detail]
            name = value.name.removeprefix("REASON_")
            status = options.Extensions[errors_pb2.status]
            yield row(str(value.number), name, status, f"`{detail}`" if detail else "", when, advice)


def messages() -> Iterator[str]:
    """Every message with its fields and their rules."""
    for file in files():
        for at, declared in enumerate(file.message_type):
            descriptor = schema.message(f"{schema.PACKAGE}.{declared.name}")
            yield ""
            yield f"### {declared.name}"
            yield ""
            yield comment(file, MESSAGE, at)
            if declared.field:
                yield ""
                yield "| number | field | type | rules | meaning |"
                yield "|---|---|---|---|---|"
            for place, field in enumerate(declared.field):
                found = descriptor.fields_by_number[field.number]
                said = comment(file, MESSAGE, at, 2, place)
                yield row(str(field.number), f"`{field.name}`", kind(found), ", ".join(rules(found)), said)


def enums() -> Iterator[str]:
    """Every enum but the reasons with its values."""
    for file in files():
        for at, enum in enumerate(file.enum_type):
            if enum.name == "Reason":
                continue
            yield ""
            yield f"### {enum.name}"
            yield ""
            yield comment(file, ENUM, at)
            yield ""
            yield "| number | value | meaning |"
            yield "|---|---|---|"
            for place, value in enumerate(enum.value):
                yield row(str(value.number), f"`{value.name}`", comment(file, ENUM, at, 2, place))


def kind(field: FieldDescriptor) -> str:
    """The type of a field as the schema spells it."""
    oneof = field.containing_oneof
    if oneof is not None and oneof.name != f"_{field.name}":
        return f"{scalar(field)}, one of {oneof.name}"
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        return f"map of {scalar(entry['key'])} to {scalar(entry['value'])}"
    if field.is_repeated:
        return f"repeated {scalar(field)}"
    return f"optional {scalar(field)}" if oneof is not None else scalar(field)


def scalar(field: FieldDescriptor) -> str:
    named: Descriptor | Any = field.message_type or field.enum_type
    if named is not None:
        return str(named.name)
    name: str = _TYPES[field.type]
    return name


_TYPES = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in ("string", "bytes", "bool", "double", "int32", "int64")
}


def rules(field: FieldDescriptor) -> Iterator[str]:
    """The rules of a field, each as ``id value``."""
    oneof = field.containing_oneof
    if oneof is not None and oneof.name != f"_{field.name}":
        found = schema.option(oneof, "buf.validate.oneof")
        if found is not None and found.required:
            yield f"`{oneof.name}` required"
    standard = schema.option(field, "buf.validate.field")
    if standard is not None:
        yield from flat(standard, "")
    for extension, name in MARKS.items():
        value = schema.option(field, extension)
        if value:
            yield f"`{name}`" + words(extension, value)
    ref = schema.option(field, "turnwire.v1.ref")
    if ref is not None:
        kinds = schema.pool().FindEnumTypeByName("turnwire.v1.RefKind").values_by_number
        foreign = " of another session" if ref.foreign else ""
        yield f"`ref` {kinds[ref.kind].name.removeprefix('REF_KIND_').lower()}{foreign}"


def words(extension: str, value: Any) -> str:
    enums = {"turnwire.v1.json": "JsonShape", "turnwire.v1.held_by": "Role"}
    if extension not in enums:
        return ""
    names = schema.pool().FindEnumTypeByName(f"turnwire.v1.{enums[extension]}").values_by_number
    numbers: list[int] = list(value) if extension == "turnwire.v1.held_by" else [value]
    return " " + " ".join(names[number].name.rpartition("_")[2].lower() for number in numbers)


def flat(rules: Message, prefix: str) -> Iterator[str]:
    """The rules of protovalidate's message, with the names under which it reports them."""
    for field, value in rules.ListFields():
        name = f"{prefix}{field.name}"
        if field.is_repeated:
            yield f"`{name}` {', '.join(map(str, value))}"
        elif isinstance(value, Message):
            yield from flat(value, f"{name}.")
        elif field.enum_type is not None:
            yield f"`{name}` {field.enum_type.values_by_number[value].name.removeprefix('IGNORE_').lower()}"
        elif value is True:
            yield f"`{name}`"
        else:
            shown = str(value).replace("|", "\\|")
            yield f"`{name}` " + (f"`{shown}`" if isinstance(value, str) else shown)


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "own rules": own_rules,
    "payloads": payloads,
    "reasons": reasons,
    "messages": messages,
    "enums": enums,
}

if __name__ == "__main__":
    main()
