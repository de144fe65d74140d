"""Where the bytes of a request are that is too large."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from turnwire import errors, v1


def check(request: Message, limit: int) -> None:
    """Raise ``RequestTooLarge``, naming the largest part, if a request is larger than so many bytes."""
    size = request.ByteSize()
    if size > limit:
        error = too_large(size, limit)
        path = largest_part(request)
        raise error.at(path) if path else error


def too_large(size: int, limit: int) -> errors.RequestTooLarge:
    """The error for a request of more bytes than the limit, without a path."""
    detail = v1.SizeLimit(size=size, limit=limit, unit="bytes")
    return errors.RequestTooLarge(f"the request has {size:,} bytes, more than the limit of {limit:,}", detail=detail)


def largest_part(request: Message) -> str:
    """The path of the largest part of a request; empty if it has none."""
    return max(_parts(request, ""), default=(0, ""))[1]


def _parts(message: Message, path: str) -> Iterator[tuple[int, str]]:
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        at = f"{path}.{field.name}" if path else field.name
        many = field.is_repeated
        for index, each in enumerate(value if many else (value,)):
            here = f"{at}[{index}]" if many else at
            if isinstance(each, v1.PromptPart):
                yield each.ByteSize(), here
            else:
                yield from _parts(each, here)
