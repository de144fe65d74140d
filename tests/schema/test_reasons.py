"""The reasons of errors: what their comments and options must hold, and that each has its exception."""

from __future__ import annotations

import json
import re
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from tests.schema.test_comments import FILES, comments
from turnwire import errors, v1
from turnwire.rules import schema
from turnwire.v1 import errors_pb2

ENUM = v1.Reason.DESCRIPTOR
VALUES = [value for value in ENUM.values if value.number != 0]
FILE = FILES["turnwire/v1/errors.proto"]
INDEX = [enum.name for enum in FILE.enum_type].index("Reason")
SAID = comments(FILE)


def comment(value: Any) -> str:
    return SAID[(5, INDEX, 2, value.index)]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.name)
def test_a_reason_has_a_status(value: Any) -> None:
    status = value.GetOptions().Extensions[errors_pb2.status]
    assert status in {code.name for code in grpc.StatusCode} - {"OK", "UNKNOWN"}


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.name)
def test_the_detail_of_a_reason_exists(value: Any) -> None:
    detail = value.GetOptions().Extensions[errors_pb2.detail]
    package, _, name = detail.rpartition(".")
    if package == "google.rpc":
        assert hasattr(error_details_pb2, name)
    elif detail:
        assert schema.message(detail).full_name == detail


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.name)
def test_a_reason_shows_what_to_do_and_a_real_example(value: Any) -> None:
    text = comment(value)
    assert re.search(r"^ ?What to do: .+", text, re.MULTILINE)
    shown = re.search(r"^ ?Example: (.+)$", text, re.MULTILINE)
    assert shown is not None
    example = json.loads(shown[1])
    info = error_details_pb2.ErrorInfo(**example)
    assert "REASON_" + info.reason == value.name
    assert info.domain == errors.DOMAIN


def test_every_reason_has_one_exception_and_every_exception_a_reason() -> None:
    assert sorted(errors.BY_REASON) == [value.number for value in VALUES]
    # The command line has refusals of its own, which no server sends.
    tree = {cls for cls in walk(errors.TurnwireError) if cls.__module__ == errors.__name__}
    leaves = {cls for cls in tree if not any(each.__module__ == errors.__name__ for each in cls.__subclasses__())}
    without = {cls.__name__ for cls in leaves if not cls.reason}
    # These come from the way to a server, and not from Turnwire.
    assert without == {"ConnectionFailed", "DeadlineExceeded", "Cancelled", "Unimplemented", "Unrecognized"}
    assert sorted(cls.reason for cls in leaves if cls.reason) == sorted(errors.BY_REASON)


@pytest.mark.parametrize("cls", errors.BY_REASON.values(), ids=lambda cls: cls.__name__)
def test_an_exception_is_named_after_its_reason_and_stands_under_its_status(cls: type[errors.TurnwireError]) -> None:
    reason = v1.Reason.Name(cls.reason).removeprefix("REASON_")
    camel = "".join(word.capitalize() for word in reason.split("_"))
    assert cls.__name__ == {"Internal": "InternalError"}.get(camel, camel)
    status = "".join(word.capitalize() for word in cls.status.split("_"))
    assert cls.__base__ is not None
    assert cls.__base__.__name__ == status


def walk(base: type[errors.TurnwireError]) -> list[type[errors.TurnwireError]]:
    return [each for cls in base.__subclasses__() for each in (cls, *walk(cls))]
