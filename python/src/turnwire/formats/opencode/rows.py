"""Rows of opencode's database as the objects that its export holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, TypeAlias

from turnwire.formats.jsonlit import Damage, Json, Node, compact, dumps, integer, literal, real
from turnwire.formats.opencode.records import json_of
from turnwire.formats.undecoded import decode

Cell: TypeAlias = "int | float | bytes | None"
Row: TypeAlias = dict[str, Cell]

#: Columns of a session that are members of its ``info`` as they are, by column.
_TEXTS: Final = {
    "id": "id",
    "slug": "slug",
    "project_id": "projectID",
    "workspace_id": "workspaceID",
    "directory": "directory",
    "path": "path",
    "parent_id": "parentID",
    "title": "title",
    "agent": "agent",
    "version": "version",
}
_DOCUMENTS: Final = {"model": "model", "metadata": "metadata", "permission": "permission", "revert": "revert"}
_TIMES: Final = {
    "time_created": "created",
    "time_updated": "updated",
    "time_compacting": "compacting",
    "time_archived": "archived",
}
_SUMMARY: Final = {"summary_additions": "additions", "summary_deletions": "deletions", "summary_files": "files"}
_TOKENS: Final = {"tokens_input": "input", "tokens_output": "output", "tokens_reasoning": "reasoning"}
_CACHE: Final = {"tokens_cache_read": "read", "tokens_cache_write": "write"}
#: The members of `info` in the order in which the export has them: extras keep the order of what they were made from.
_MEMBERS: Final = (
    *("id", "slug", "projectID", "workspaceID", "directory", "path", "parentID", "title", "agent", "model", "version"),
    *("summary", "cost", "tokens", "share", "metadata", "revert", "permission", "time"),
)
#: Of a revert; the coming version writes more, which the export leaves out.
_REVERT: Final = ("messageID", "partID", "snapshot", "diff")
_OTHERS: Final = {"share_url", "summary_diffs", "cost"}
_KNOWN: Final = {*_TEXTS, *_DOCUMENTS, *_TIMES, *_SUMMARY, *_TOKENS, *_CACHE, *_OTHERS}


def row_of(cursor: sqlite3.Cursor, values: tuple[Cell, ...]) -> Row:
    """A row by the names of its columns."""
    return {description[0]: value for description, value in zip(cursor.description, values, strict=True)}


def session_info(row: Row, damaged: Callable[[str, str], None]) -> tuple[Node, dict[str, str]]:
    """The ``info`` of a session, as opencode makes it of the row, and what of the row it has no member for.

    ``damaged(column, reason)`` is told of columns that hold no JSON where there should be some; they are kept as text
    with the rest.
    """
    tree: dict[str, Json] = {}
    rest: dict[str, Json] = {}
    for column, key in _TEXTS.items():
        _set(tree, key, plain(row.get(column)))
    for column, key in _DOCUMENTS.items():
        _set(tree, key, _document(row, column, rest, damaged))
    _keep_to_members(tree, "revert", _REVERT, rest)
    if any(row.get(column) is not None for column in _SUMMARY):
        summary: dict[str, Json] = {key: _number(row, column, 0) for column, key in _SUMMARY.items()}
        _set(summary, "diffs", _document(row, "summary_diffs", rest, damaged))
        tree["summary"] = summary
    elif row.get("summary_diffs") is not None:
        _set(rest, "summary_diffs", _document(row, "summary_diffs", rest, damaged))
    if row.get("share_url"):
        tree["share"] = {"url": plain(row.get("share_url"))}
    if row.get("cost") is not None:
        tree["cost"] = _number(row, "cost", 0)
    if any(column in row for column in _TOKENS):
        tokens: dict[str, Json] = {key: _number(row, column, 0) for column, key in _TOKENS.items()}
        tokens["cache"] = {key: _number(row, column, 0) for column, key in _CACHE.items()}
        tree["tokens"] = tokens
    time: dict[str, Json] = {}
    for column, key in _TIMES.items():
        _set(time, key, plain(row.get(column)))
    tree["time"] = time
    rest |= {column: plain(value) for column, value in row.items() if column not in _KNOWN and value is not None}
    ordered: dict[str, Json] = {key: tree[key] for key in _MEMBERS if key in tree}
    return Node.parse(dumps(ordered)), {"columns": dumps(rest)} if rest else {}


def plain(value: Cell) -> Json:
    """A cell as it stands in a tree."""
    if isinstance(value, bytes):
        return decode(value)
    if isinstance(value, float):
        return real(value) if value - value == 0 else literal(_SPELLED.get(value, "NaN"))
    return None if value is None else integer(value)


# JSON has no such numbers; they stand in a tree as JavaScript spells them, and are repaired like any wrong value.
_SPELLED: Final = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


def _number(row: Row, column: str, otherwise: int) -> Json:
    value = row.get(column)
    return integer(otherwise) if value is None else plain(value)


def _document(row: Row, column: str, rest: dict[str, Json], damaged: Callable[[str, str], None]) -> Json:
    """A column that holds JSON; None if it has none."""
    value = row.get(column)
    if value is None:
        return None
    text = json_of(value) if isinstance(value, bytes) else dumps(plain(value))
    try:
        Node.parse(text)
    except Damage as damage:
        damaged(column, f"no JSON: {damage}")
        rest[column] = text
        return None
    return literal(compact(text))


def _keep_to_members(tree: dict[str, Json], key: str, members: tuple[str, ...], rest: dict[str, Json]) -> None:
    """Leave of an object what the export has of it; the whole goes to the rest if that is not all."""
    text = tree.get(key)
    found = Node.parse(text.decode("utf-8", "surrogatepass")).value if isinstance(text, bytes) else None
    if isinstance(found, dict) and not found.keys() <= set(members):
        rest[key] = text
        tree[key] = {name: value for name, value in found.items() if name in members}


def _set(tree: dict[str, Json], key: str, value: Json) -> None:
    if value is not None:
        tree[key] = value
