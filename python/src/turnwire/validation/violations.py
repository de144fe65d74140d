"""Checking a message by the rules of the schema, for people and programs that write messages."""

from __future__ import annotations

from google.protobuf.message import Message

from turnwire import rules
from turnwire.errors import Violation
from turnwire.prompt.build import RoleLike
from turnwire.prompt.build import role as role_number


def validate(message: Message, *, stored: bool | None = None, role: RoleLike | None = None) -> list[Violation]:
    """The rules of the schema that a message breaks, each with path, rule and text; empty if it is right.

    ``stored``: parts must have ids (True: as in a log) or must have none (False: as in a prompt); None: either.
    ``role``: of the message that a single part belongs to, ``"user"`` or ``"assistant"``.

    What only the session can tell (whether a turn exists, an id is free) is checked by an append. Ids and times, which
    an append fills in, are missed here. Numbers of enums that the schema does not know break ``turnwire.unknown``: this
    is the check of a writer. A reader's, which tells of them as what a later schema may have, is ``validate_messages``.

    Raises TypeError for what is no message, KeyError for a message of another schema.
    """
    if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"validate() takes a message of the schema, and not {type(message).__name__}")
    return rules.check(message, stored=stored, role=role_number(role) if role is not None else 0)
