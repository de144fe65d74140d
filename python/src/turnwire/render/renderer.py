"""Render: from a prompt to the body of the provider's request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from turnwire import errors, v1
from turnwire.prompt import Item
from turnwire.render.dialects import WRITERS
from turnwire.render.form import Change, Log, Message
from turnwire.render.options import DEFAULTS, Dialect, Options, Settings
from turnwire.render.passes import normalise
from turnwire.render.profiles import settings
from turnwire.render.reading import read

#: The version of the rules of this package. A record keeps it beside the SHA-256 of the body: a change that could alter
#: a single body raises it.
RENDERER_VERSION = 1


class EmptyPrompt(errors.FailedPrecondition):
    """Nothing of the prompt can be sent."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A request's body, as compact JSON text, and what in it differs from what is stored."""

    body: str
    changes: tuple[Change, ...]
    dialect: Dialect
    profile: str
    version: int = RENDERER_VERSION

    @property
    def sha256(self) -> bytes:
        """The SHA-256 of the body in UTF-8, 32 bytes."""
        return hashlib.sha256(self.body.encode()).digest()


def render(
    items: Iterable[Item | v1.PromptItem],
    dialect: Dialect | str,
    model: v1.ModelRef,
    *,
    context: v1.PromptContext | None = None,
    options: Options = DEFAULTS,
    profile: str = "default",
) -> Rendering:
    """Render a prompt for a model: equal input gives equal bytes.

    ``context`` holds the system texts, tools and parameters. The items are not changed.

    Raises EmptyPrompt when nothing is left that can be sent, UnknownProfile, ValueError for an unknown dialect.
    """
    chosen = settings(Dialect(dialect), model, options, profile)
    log = Log()
    messages = normal_form(items, chosen, log)
    writer = WRITERS[chosen.dialect]
    written = writer.entries(messages, chosen)
    if not written:
        raise EmptyPrompt("nothing of the prompt can be sent to a model")
    body = writer.body(written, context or v1.PromptContext(), chosen, log)
    return Rendering(body, tuple(log.changes), chosen.dialect, chosen.profile)


def normal_form(items: Iterable[Item | v1.PromptItem], chosen: Settings, log: Log) -> list[Message]:
    """The messages that are written, before they are spelled."""
    light = (item if isinstance(item, Item) else Item.of(item) for item in items)
    return normalise(read(light, chosen, log), chosen, log)
