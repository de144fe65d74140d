"""What a caller gives, made into messages: what protobuf cannot take is a broken rule, with the field's name.

A Python string can hold half of a surrogate pair, which UTF-8 and so the schema has no form for; protobuf says so
without telling where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, ParamSpec, TypeVar, cast

from google.protobuf.message import Message

from turnwire import errors

M = TypeVar("M", bound=Message)
P = ParamSpec("P")

#: The same rule as for bytes of a request that are no UTF-8.
_WIRE: Final = "turnwire.wire_format"
_JSON: Final = "turnwire.json.syntax"


def built(make: Callable[P, M], *args: P.args, **kwargs: P.kwargs) -> M:
    """A message of the fields given. Raises `RuleViolation`, with the path, for a text that is no valid Unicode."""
    try:
        return make(*args, **kwargs)
    except UnicodeEncodeError:
        for name, value in kwargs.items():
            valid(name, value)
        raise


def fill(message: Message, **fields: Any) -> None:
    """Set single fields of a message; None leaves one as it is. Raises what `built` raises."""
    for name, value in fields.items():
        if value is not None:
            try:
                setattr(message, name, value)
            except UnicodeEncodeError:
                valid(name, value)
                raise


def utf8(path: str, text: str) -> bytes:
    """A text as UTF-8. Raises `RuleViolation` for half of a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        told = f"must be valid Unicode: the character at {error.start} is half of a surrogate pair"
        raise errors.RuleViolation([errors.Violation(path, _WIRE, told)]) from None


def valid(path: str, value: object) -> None:
    """Look through texts, and lists and maps of them. Raises what `utf8` raises."""
    if isinstance(value, str):
        utf8(path, value)
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[object, object]", value).items():
            valid(path, key)
            valid(f'{path}["{key}"]', each)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(cast("Iterable[object]", value)):
            valid(f"{path}[{index}]", each)


def json_text(path: str, value: str | Mapping[str, Any]) -> str:
    """JSON as text: a text as it is, anything else written down.

    Raises `RuleViolation` for NaN, infinities and what holds itself; TypeError for what JSON has no form for.
    """
    if isinstance(value, str):
        utf8(path, value)
        return value
    if not value:
        return "{}"
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        # The message may quote the value that is wrong, which can be content.
        told = "must be JSON, which has no NaN and no infinity, and cannot hold itself"
        raise errors.RuleViolation([errors.Violation(path, _JSON, told)]) from error
    # Half of a surrogate pair is legal in JSON, as an escape.
    return text if text.isascii() or _encodes(text) else json.dumps(value, allow_nan=False, separators=(",", ":"))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
