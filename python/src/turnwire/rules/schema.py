"""The shipped descriptors and their options, in a pool of their own.

The generated Python code has no protovalidate rules in its descriptors (two copies of ``validate_pb2`` in one process
clash at import). ``schema.binpb`` has them, so the rules are read from there, through a private pool that shares
nothing with the default one: a descriptor of the default pool would look like a message without any rules.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

PACKAGE: Final = "turnwire.v1"

#: The tag of protovalidate's extension of ``FieldOptions``: number 1159, length-delimited.
_RULES: Final = b"\xba\x48"


class StrippedSchema(Exception):
    """The shipped descriptors have lost their rules, so that a check by them would find nothing wrong with anything."""


def descriptor_set() -> FileDescriptorSet:
    """Read ``schema.binpb``: all files of the schema with their imports, each after the files that it imports."""
    return FileDescriptorSet.FromString(files("turnwire").joinpath("schema.binpb").read_bytes())


@cache
def pool() -> DescriptorPool:
    """Return the private pool that holds the shipped descriptors, rules included.

    Raises `StrippedSchema` if they are of a build that left the rules out, as code generators are told to.
    """
    result = DescriptorPool()
    ruled = False
    for file in descriptor_set().file:
        result.AddSerializedFile(file.SerializeToString())
        ruled = ruled or any(_RULES in field.options.SerializeToString() for field in _fields(file))
    if not ruled:
        raise StrippedSchema("the shipped descriptors have no rules")
    return result


def _fields(file: FileDescriptorProto) -> list[FieldDescriptorProto]:
    return [field for message in file.message_type if file.package == PACKAGE for field in message.field]


@cache
def value_comments(enum_name: str) -> dict[int, str]:
    """Return the comments of the values of an enum of the schema, by their numbers."""
    found: dict[int, str] = {}
    for file in descriptor_set().file:
        for index, enum in enumerate(file.enum_type):
            if file.package != PACKAGE or enum.name != enum_name:
                continue
            for location in file.source_code_info.location:
                path = list(location.path)
                if len(path) == 4 and path[:3] == [5, index, 2]:  # FileDescriptorProto.enum_type, EnumDescriptor.value
                    found[enum.value[path[3]].number] = location.leading_comments
    return found


def message(full_name: str) -> Descriptor:
    """Return the descriptor of a message of the schema; ``KeyError`` if there is none of that name."""
    return pool().FindMessageTypeByName(full_name)


@cache
def message_class(full_name: str) -> type[Message]:
    """Return the class of a message in the private pool. Its descriptor, unlike the generated class's, has rules."""
    return GetMessageClass(message(full_name))


def file_names() -> list[str]:
    """Return the names of the schema's own files."""
    return [file.name for file in descriptor_set().file if file.package == PACKAGE]


def own_files() -> list[FileDescriptor]:
    """Return the schema's own files in the private pool."""
    return [pool().FindFileByName(name) for name in file_names()]


@cache
def option(descriptor: Descriptor | FieldDescriptor | OneofDescriptor, extension: str) -> Any:
    """Return the value of an option, for example ``buf.validate.field`` or ``turnwire.v1.ref``.

    ``None`` if it is not set; a tuple, maybe empty, if it is repeated. Not to be changed: it is made once.
    """
    # Python reads options as a message of the default pool, which takes extensions of this one for unknown fields; as
    # a message of this pool they are known.
    kind = "Message"
    if isinstance(descriptor, FieldDescriptor):
        kind = "Field"
    elif isinstance(descriptor, OneofDescriptor):
        kind = "Oneof"
    cls = GetMessageClass(pool().FindMessageTypeByName(f"google.protobuf.{kind}Options"))
    options: Any = cls.FromString(descriptor.GetOptions().SerializeToString())
    handle = pool().FindExtensionByName(extension)
    if handle.is_repeated:
        return tuple(options.Extensions[handle])
    return options.Extensions[handle] if options.HasExtension(handle) else None
