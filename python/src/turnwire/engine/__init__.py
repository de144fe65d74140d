"""The engine: the methods of ``turnwire.v1.SessionService`` over a store, without any transport.

A gRPC server and an embedding program run this same code. Unary methods take the caller and the request and return the
response; writing ones take the request as received too, for its request id. Streaming ones yield responses serialized,
spliced from stored bytes.
"""

from __future__ import annotations

from turnwire.engine.appends import Appends
from turnwire.engine.core import EMBEDDED, Caller, Limits
from turnwire.engine.history import History
from turnwire.engine.info import Info
from turnwire.engine.rendering import Renderings
from turnwire.engine.restore import Restored, Restores
from turnwire.engine.sessions import Sessions
from turnwire.engine.validating import Validations

__all__ = ["EMBEDDED", "Caller", "Engine", "Limits", "Restored"]


class Engine(Appends, Sessions, History, Renderings, Validations, Info, Restores):
    """All methods of the service over one store, and `restore`, which only a program that has the store may call."""
