"""Render: a prompt as the request body that a provider accepts, byte for byte the same for the same prompt.

``assemble(history, turn) -> mutate -> render``. See ``docs/render.md`` for the rules and their order.
"""

from turnwire.rendering.form import Change, Rule
from turnwire.rendering.options import (
    DEFAULTS,
    Capabilities,
    Dialect,
    ForeignReasoning,
    MediaPolicy,
    Options,
    Stopped,
)
from turnwire.rendering.profiles import PROFILES
from turnwire.rendering.renderer import RENDERER_VERSION, Rendering, render

__all__ = [
    "DEFAULTS",
    "PROFILES",
    "RENDERER_VERSION",
    "Capabilities",
    "Change",
    "Dialect",
    "ForeignReasoning",
    "MediaPolicy",
    "Options",
    "Rendering",
    "Rule",
    "Stopped",
    "render",
]
