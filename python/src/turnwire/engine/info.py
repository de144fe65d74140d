"""What the engine says of itself."""

from __future__ import annotations

from typing import Final

import turnwire
from turnwire import prompt, v1
from turnwire.engine.core import Caller, Core, check
from turnwire.log import frames

#: Protocol packages that this engine speaks.
PROTOCOLS: Final = ("turnwire.v1",)

#: Parts of the service that a smaller implementation may lack; a client asks for them by these names.
FEATURES: Final = ("append-stream", "fork", "prompts", "request-ids", "tail", "validate", "verify")


class Info(Core):
    """The method ``GetServerInfo``."""

    async def get_server_info(self, caller: Caller, request: v1.GetServerInfoRequest) -> v1.GetServerInfoResponse:
        """The version, limits and features."""
        check(request)
        limits = v1.Limits(
            part_bytes=self.limits.part_bytes,
            request_bytes=self.limits.request_bytes,
            append_entries=self.limits.append_entries,
            frame_bytes=frames.FRAME_BYTES,
        )
        return v1.GetServerInfoResponse(
            version=turnwire.__version__,
            protocols=PROTOCOLS,
            limits=limits,
            features=FEATURES,
            profiles=list(prompt.PROFILES),
        )
