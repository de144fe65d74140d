"""The gRPC server of ``turnwire.v1.SessionService``."""

from __future__ import annotations

from turnwire.server.requestlog import LogFormat, to_stream
from turnwire.server.server import ADDRESS, Options, Server
from turnwire.server.workers import Workers

__all__ = ["ADDRESS", "LogFormat", "Options", "Server", "Workers", "to_stream"]
