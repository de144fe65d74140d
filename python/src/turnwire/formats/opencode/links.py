"""Which part of a session started which other session: opencode's task tool names it in its metadata."""

from __future__ import annotations

import re
from typing import Final

from turnwire.formats.jsonlit import Json

TASK: Final = "task"
#: What a text that can name a session started by a task holds; a quick look before it is parsed.
MENTION: Final = re.compile(r'"sessionId"\s*:\s*"([^"\\]+)"')


def task_session(part: Json) -> str | None:
    """The session that a part, as opencode writes it, started; None if it started none."""
    if not isinstance(part, dict) or part.get("type") != "tool" or part.get("tool") != TASK:
        return None
    state = part.get("state")
    metadata = state.get("metadata") if isinstance(state, dict) else None
    named = metadata.get("sessionId") if isinstance(metadata, dict) else None
    return named if isinstance(named, str) and named else None
