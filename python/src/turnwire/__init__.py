"""Turnwire: schema-first messages for AI-agent sessions: store, replay, resume.

::

    import turnwire

    async with turnwire.open("agent.db") as tw:                     # a file; no server
    async with turnwire.Client.connect("127.0.0.1:7411") as tw:     # a server; the same methods
    with turnwire.blocking.open("agent.db") as tw:                  # without async

    session = await tw.open_session("ses_demo", title="A talk")
    turn = await session.start_turn(agent="build", provider="anthropic", model="claude-sonnet-4-5")
    await turn.add_user("What does the README say?")

``v1`` has the messages, ``errors`` the exceptions, `PromptEditor` edits prompts, `render` makes the request of a
provider of one, `validate` checks messages, ``formats`` imports and exports. Names are loaded when they are first used,
so that ``import turnwire`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnwire import blocking, errors, formats, ids, v1
    from turnwire.calls import KEEP, EntryLike, Prompt, SessionHistory, append_request
    from turnwire.client import Client
    from turnwire.embedded import Embedded, open
    from turnwire.errors import TurnwireError
    from turnwire.handle import Answer, Session, ToolCall, Turn
    from turnwire.prompt import PromptEditor
    from turnwire.rendering import Rendering, render
    from turnwire.validation import validate

__version__ = "0.1.0"

__all__ = [
    "KEEP",
    "Answer",
    "Client",
    "Embedded",
    "EntryLike",
    "Prompt",
    "PromptEditor",
    "Rendering",
    "Session",
    "SessionHistory",
    "ToolCall",
    "Turn",
    "TurnwireError",
    "__version__",
    "append_request",
    "blocking",
    "errors",
    "formats",
    "ids",
    "open",
    "render",
    "v1",
    "validate",
]

_MODULES = ("blocking", "errors", "formats", "ids", "v1")
_HOMES = {
    "KEEP": "calls",
    "Answer": "handle",
    "Client": "client",
    "Embedded": "embedded",
    "EntryLike": "calls",
    "Prompt": "calls",
    "PromptEditor": "prompt",
    "Rendering": "rendering",
    "Session": "handle",
    "SessionHistory": "calls",
    "ToolCall": "handle",
    "Turn": "handle",
    "TurnwireError": "errors",
    "append_request": "calls",
    "open": "embedded",
    "render": "rendering",
    "validate": "validation",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"turnwire.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'turnwire' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"turnwire.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
