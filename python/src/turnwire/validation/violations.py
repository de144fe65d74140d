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
    an append fills in, are missed here. Raises KeyError for a message of another schema.
    """
    return rules.check(message, stored=stored, role=role_number(role) if role is not None else 0)
