"""Render: a prompt as the request body that a provider accepts, byte for byte the same for the same prompt.

``assemble(history, turn) -> mutate -> render``. See ``docs/render.md`` for the rules and their order.
"""

from turnwire.render.form import Change, Rule
from turnwire.render.options import (
    Capabilities,
    Dialect,
    ForeignReasoning,
    MediaPolicy,
    Options,
    Stopped,
)
from turnwire.render.profiles import PROFILES
from turnwire.render.renderer import RENDERER_VERSION, EmptyPrompt, Rendering, render

__all__ = [
    "PROFILES",
    "RENDERER_VERSION",
    "Capabilities",
    "Change",
    "Dialect",
    "EmptyPrompt",
    "ForeignReasoning",
    "MediaPolicy",
    "Options",
    "Rendering",
    "Rule",
    "Stopped",
    "render",
]
