"""The public face: what ``turnwire`` offers, and that it costs little until it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import turnwire
from turnwire import errors, v1

FACE = {
    "KEEP", "Answer", "Client", "Embedded", "EntryLike", "Prompt", "PromptEditor", "Rendering", "Session",
    "SessionHistory", "ToolCall", "Turn", "TurnwireError", "__version__", "append_request", "blocking", "errors",
    "formats", "ids", "open", "render", "v1", "validate",
}  # fmt: skip


def test_all_is_the_face() -> None:
    assert set(turnwire.__all__) == FACE
    assert len(turnwire.__all__) == len(FACE)
    assert dir(turnwire) == sorted(FACE)
    for name in FACE:
        assert getattr(turnwire, name) is not None, name


def test_a_star_import_gives_it_all() -> None:
    names: dict[str, object] = {}
    exec("from turnwire import *", names)
    assert names.keys() - {"__builtins__"} == FACE


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        turnwire.nothing  # noqa: B018  # the access is what is tested


def loaded(code: str) -> set[str]:
    """The modules that are loaded after some code, in a new interpreter."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_loads_nothing_of_weight() -> None:
    assert not loaded("import turnwire; turnwire.__version__") & {"google.protobuf", "grpc", "asyncio"}


def test_an_embedded_store_does_without_a_client() -> None:
    assert "turnwire.client" not in loaded("import turnwire; turnwire.open, turnwire.blocking.open, turnwire.validate")


def test_validate() -> None:
    message = v1.User(id="msg_1", turn_id="trn 1", time=v1.UserTime(), parts=[v1.PromptPart(id="prt_1")])
    message.time.created.FromSeconds(1)
    message.parts[0].text.text = "x"
    (found,) = turnwire.validate(message)
    assert found == errors.Violation("turn_id", "string.pattern", found.text)
    message.turn_id = "trn_1"
    assert turnwire.validate(message) == []
    assert turnwire.validate(message, stored=True) == []
    assert [each.path for each in turnwire.validate(message, stored=False)] == ["parts[0].id"]
    tool = v1.PromptPart(tool=v1.ToolPart(call_id="c", name="n", state=v1.ToolState.TOOL_STATE_PENDING))
    assert turnwire.validate(tool, role="assistant") == []
    assert [each.rule for each in turnwire.validate(tool, role="user")] == ["turnwire.held_by"]


def test_validate_takes_messages_only() -> None:
    with pytest.raises(TypeError, match="takes a message of the schema, and not str"):
        turnwire.validate("no message")  # type: ignore[arg-type]
