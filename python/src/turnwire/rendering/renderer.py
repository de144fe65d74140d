"""Render: from a prompt to the body of the provider's request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from turnwire import errors, v1
from turnwire.modelref import ModelLike, model_ref
from turnwire.prompt import Item
from turnwire.rendering.dialects import WRITERS
from turnwire.rendering.form import Change, Log, Message
from turnwire.rendering.options import DEFAULTS, Dialect, Options, Settings
from turnwire.rendering.passes import normalise
from turnwire.rendering.profiles import settings
from turnwire.rendering.reading import read
from turnwire.rendering.wire import options_of

#: The version of the rules of this package. A record keeps it beside the SHA-256 of the body: a change that could alter
#: a single body raises it.
RENDERER_VERSION = 1


@dataclass(frozen=True, slots=True)
class Rendering:
    """A request's body, as compact JSON text, and what in it differs from what is stored.

    ``changes`` are in the order of the rules. ``revision`` is that of the log's entry that records the rendering, or an
    equal one before; None: it is not recorded.
    """

    body: str
    changes: tuple[Change, ...]
    dialect: Dialect
    model: v1.ModelRef
    profile: str
    version: int = RENDERER_VERSION
    revision: int | None = None

    @property
    def sha256(self) -> bytes:
        """The SHA-256 of the body in UTF-8, 32 bytes."""
        return hashlib.sha256(self.body.encode()).digest()

    @property
    def json(self) -> dict[str, Any]:
        """The body, parsed. A vendor's client takes its members as keyword arguments."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


def render(
    items: Iterable[Item | v1.PromptItem],
    dialect: Dialect | str,
    model: ModelLike,
    *,
    context: v1.PromptContext | None = None,
    options: Options | v1.RenderOptions = DEFAULTS,
    profile: str = "",
) -> Rendering:
    """Render a prompt for a model: equal input gives equal bytes.

    ``items`` are those of a prompt (``Prompt.items``, ``PromptEditor.items``), ``dialect`` is for example
    ``"openai-chat"``, ``model`` a model or ``"provider/model"``. ``context`` holds the system texts, tools and
    parameters. ``profile`` makes the choices that ``options`` leave open; empty: "default". Nothing given is changed.

    Raises `EmptyPrompt` when nothing is left that can be sent, `UnknownProfile`, ValueError for an unknown dialect.
    """
    given = options_of(options) if isinstance(options, v1.RenderOptions) else options
    target = model_ref(model)
    chosen = settings(Dialect(dialect), target, given, profile)
    log = Log()
    messages = normal_form(items, chosen, log)
    writer = WRITERS[chosen.dialect]
    written = writer.entries(messages, chosen)
    if not written:
        raise errors.EmptyPrompt("nothing of the prompt can be sent to a model")
    body = writer.body(written, context or v1.PromptContext(), chosen, log)
    return Rendering(body, tuple(log.changes), chosen.dialect, target, chosen.profile)


def normal_form(items: Iterable[Item | v1.PromptItem], chosen: Settings, log: Log) -> list[Message]:
    """The messages that are written, before they are spelled."""
    light = (item if isinstance(item, Item) else Item.of(item) for item in items)
    return normalise(read(light, chosen, log), chosen, log)
