"""The methods of the service as Python calls them, written once over a small ``Transport``.

`turnwire.Client` brings the calls over gRPC to a server, `turnwire.open` to an engine in this process.
"""

from __future__ import annotations

from turnwire.calls.entries import EntryLike, append_request, entry
from turnwire.calls.history import ReplayItem, SessionHistory, StoredMessage
from turnwire.calls.prompts import Prompt
from turnwire.calls.service import Service
from turnwire.calls.sessions import KEEP, Keep
from turnwire.calls.transport import Transport

__all__ = [
    "KEEP",
    "EntryLike",
    "Keep",
    "Prompt",
    "ReplayItem",
    "Service",
    "SessionHistory",
    "StoredMessage",
    "Transport",
    "append_request",
    "entry",
]
