"""Reads entries through any client as the bytes that the server sends."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from turnwire import v1
from turnwire.calls.base import Base


class RawEntries(Base):
    """The entries of a client's sessions, serialized."""

    def __init__(self, client: Base) -> None:
        super().__init__(client._transport)

    async def read(self, session_id: str, first: int, last: int) -> AsyncGenerator[bytes, None]:
        """The entries of a range, both ends included. Raises what `turnwire.Client.read_entries` does."""
        request = v1.ReadEntriesRequest(session_id=session_id, from_revision=first, to_revision=last)
        responses = self._transport.stream("ReadEntries", request, _response(), timeout=self._timeout)
        async with aclosing(responses):
            async for response in responses:
                found: Any = response
                for entry in found.entries:
                    yield entry


@cache
def _response() -> type[Message]:
    """``ReadEntriesResponse`` with its entries as bytes, which is the same on the wire, and keeps them as they are."""
    field = v1.ReadEntriesResponse.DESCRIPTOR.fields_by_name["entries"]
    file = descriptor_pb2.FileDescriptorProto(name="turnwire/raw.proto", package="turnwire.raw", syntax="proto3")
    message = file.message_type.add(name="ReadEntriesResponse")
    message.field.add(
        name=field.name,
        number=field.number,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("turnwire.raw.ReadEntriesResponse"))
