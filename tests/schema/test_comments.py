"""Every message, field, enum, value, service, rpc and option of the schema has a comment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from turnwire.rules import schema

FILES = {file.name: file for file in schema.descriptor_set().file if file.package == schema.PACKAGE}

# Field numbers in descriptor.proto, of which the paths of source positions are made.
FILE = {"message_type": 4, "enum_type": 5, "service": 6, "extension": 7}
MESSAGE = {"field": 2, "nested_type": 3, "enum_type": 4, "oneof_decl": 8}


def elements(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(name, path) of all that must have a comment."""
    for kind, number in FILE.items():
        for index, element in enumerate(getattr(file, kind)):
            path = (number, index)
            yield element.name, path
            yield from inside(kind, element, path)


def inside(kind: str, element: Any, path: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    if kind in ("message_type", "nested_type") and not element.options.map_entry:
        for inner, number in MESSAGE.items():
            for index, child in enumerate(getattr(element, inner)):
                synthetic = inner == "oneof_decl" and any(
                    field.proto3_optional and field.oneof_index == index for field in element.field
                )
                map_entry = inner == "nested_type" and child.options.map_entry
                if not synthetic and not map_entry:
                    yield f"{element.name}.{child.name}", (*path, number, index)
                    yield from inside(inner, child, (*path, number, index))
    elif kind == "enum_type":
        for index, value in enumerate(element.value):
            yield value.name, (*path, 2, index)
    elif kind == "service":
        for index, method in enumerate(element.method):
            yield f"{element.name}.{method.name}", (*path, 2, index)


def comments(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    return {tuple(each.path): each.leading_comments.strip() for each in file.source_code_info.location}


def test_all_files_are_there() -> None:
    assert {name.rpartition("/")[2] for name in FILES} >= {
        "session.proto", "turn.proto", "message.proto", "part.proto", "prompt.proto", "entry.proto", "errors.proto",
        "options.proto", "session_service.proto", "append_requests.proto",
    }  # fmt: skip


@pytest.mark.parametrize("file", FILES.values(), ids=lambda file: file.name)
def test_nothing_is_without_a_comment(file: FileDescriptorProto) -> None:
    found = list(elements(file))
    assert found
    said = comments(file)
    assert [name for name, path in found if not said.get(path)] == []


@pytest.mark.parametrize("file", FILES.values(), ids=lambda file: file.name)
def test_comments_are_sentences(file: FileDescriptorProto) -> None:
    said = comments(file)
    bad = [name for name, path in elements(file) if not said[path].endswith((".", ")", "}"))]
    assert bad == []


@pytest.mark.parametrize("file", FILES.values(), ids=lambda file: file.name)
def test_optional_fields_and_oneofs_say_what_unset_means(file: FileDescriptorProto) -> None:
    said = comments(file)
    silent = [
        f"{message.name}.{field.name}"
        for index, message in enumerate(file.message_type)
        for number, field in enumerate(message.field)
        if field.proto3_optional and "nset" not in said[(4, index, 2, number)]
    ]
    assert silent == []
