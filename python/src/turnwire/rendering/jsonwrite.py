"""JSON as text: strings are quoted, documents are spliced as they are, nothing is parsed and written anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any, cast

from turnwire.formats import jsonlit

_SPACE = re.compile(r"[ \t\n\r]")
# Every escape, so that the second of two backslashes is not taken for the beginning of one. Groups: a high surrogate,
# the low one directly after it, a low one alone.
_ESCAPE = re.compile(
    r"\\(?:u(?:([dD][89abAB][0-9a-fA-F]{2})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|([dD][c-fC-F][0-9a-fA-F]{2}))|.)"
)


def quote(text: str) -> str:
    """A string as JSON, as JavaScript writes it: only what must be escaped is. Lone surrogates are not expected."""
    return str(encode_basestring(text))


def compact(document: str) -> str:
    """A JSON document without white space between its tokens; the tokens stay as they are spelled."""
    if _SPACE.search(document) is None:
        return document
    return jsonlit.compact(document)


def without_surrogates(document: str) -> str:
    """A JSON document whose escapes of lone surrogates became ``\\ufffd``; other escapes stay as they are."""
    if "\\ud" not in document and "\\uD" not in document:
        return document
    return _ESCAPE.sub(_repaired, document)


def _repaired(match: re.Match[str]) -> str:
    high, low, lone = match.groups()
    return "\\ufffd" if lone or (high and not low) else match.group()


def members(document: str) -> list[tuple[str, str]]:
    """The members of a JSON object as key and compact text, in order; of a key that stands there twice, the last.

    The document must be valid. What is no object has no members.
    """
    return [(key, compact(node.raw)) for key, node in jsonlit.Node.parse(document).members().items()]


def value(document: str) -> dict[str, Any]:
    """A JSON object as Python's; empty for what is none."""
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def is_object(document: str) -> bool:
    """Whether a compact document is an object."""
    return document.startswith("{")


def put(pairs: Iterable[tuple[str, str]]) -> str:
    """An object of keys and JSON texts."""
    return "{" + ",".join(f"{quote(key)}:{value}" for key, value in pairs) + "}"


def strings(texts: Iterable[str]) -> str:
    """A list of JSON texts."""
    return "[" + ",".join(texts) + "]"
