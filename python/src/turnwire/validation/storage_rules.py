"""The rules of the storage layer: what can be said of bytes before they are messages, and of what is later's."""

from __future__ import annotations

from typing import Final

from turnwire.validation.rule import ERROR, NOTE, STORAGE, WARNING, Rule

_TABLE: Final = (
    (
        "bytes",
        ERROR,
        "the bytes are no message of their type",
        "They were torn, flipped or overwritten, hold a text that is no UTF-8, or a field in another wire type than "
        "its number has, which no schema ever changes.",
    ),
    (
        "form",
        ERROR,
        "an entry in a form that no server writes",
        "An entry has one payload, and a time of recording to the microsecond, in the years 1677 to 2262: the "
        "digest holds for exactly that form. A put has one message, whose parts are its last fields.",
    ),
    (
        "torn",
        ERROR,
        "the file breaks off, or is damaged from here on",
        "A record says how long it is, and the file has less, or no record. At most 256 MiB are read as one.",
    ),
    (
        "unreadable",
        ERROR,
        "the store cannot read these entries",
        "Pages of the store's file are damaged. What comes behind them was read.",
    ),
    (
        "database",
        ERROR,
        "the database is damaged",
        "SQLite's own check of its pages says so. Copy the file before anything else is done with it.",
    ),
    (
        "table",
        ERROR,
        "the store lacks a table or an index",
        "What was in it is lost, and the store cannot answer what it answers from it. The log is in the table `entry`.",
    ),
    (
        "id",
        ERROR,
        "a session whose id is none",
        "No request can name it, so that its entries were not checked. The digests of its log begin with its right id.",
    ),
    (
        "orphan",
        ERROR,
        "rows that belong to no session",
        "The row of their session is gone. A deletion leaves none of them.",
    ),
    (
        "index",
        ERROR,
        "the store's index contradicts the log",
        "Replay, lookups and lists read the index, and show something else than what was appended. The log is whole: "
        "export its entries and restore them into another store, which makes the index again.",
    ),
    (
        "deleted",
        ERROR,
        "a session that is there though it was deleted",
        "The store keeps the id of a session that was deleted, so that nothing brings it back, and has its log.",
    ),
    (
        "reply",
        ERROR,
        "a kept reply that is none of its method",
        "Whoever repeats the request gets it. It is a serialized response of its method, with a head that the log has "
        "reached, and the digest that the log has there.",
    ),
    (
        "no_digest",
        NOTE,
        "entries whose digest is not kept yet",
        "A store keeps it when it indexes entries: after 64 at most, and when it is closed. A process that was killed "
        "leaves up to 63 without, of which a changed byte does not show; the next write goes on from them as they are.",
    ),
    (
        "tenants",
        NOTE,
        "there are sessions of other tenants",
        "They were not checked: a file is read as its owner reads it, without a tenant. Ask the server as each tenant.",
    ),
    (
        "json",
        ERROR,
        "no JSON of the type",
        "It must be one canonical ProtoJSON document of its type: an object where a message or a map is, with each "
        "member once. It has at most 128 MiB and 1,000,000 values.",
    ),
    (
        "type",
        ERROR,
        "of no type that this schema knows",
        "The type's name is unknown, or the content fits no type; a later schema may have it.",
    ),
    (
        "unknown_field",
        NOTE,
        "a field that this schema does not know",
        "A later schema has it; it is kept. Numbers that no schema uses hint at damage.",
    ),
    (
        "unknown_enum",
        NOTE,
        "a number or name that this enum does not have",
        "A later schema has it; it is kept, and reads as unspecified. Who writes a message (`turnwire.validate`, an "
        "append) breaks `turnwire.unknown` with it; who reads what was written does not.",
    ),
    (
        "unknown_kind",
        NOTE,
        "of a kind that this schema does not know",
        "A later schema has it; it is kept, and skipped by rendering.",
    ),
    (
        "unknown_payload",
        WARNING,
        "an entry of a kind that this schema does not know",
        "A later schema has it; it is kept. Unless it says that it may be ignored, this version cannot replay the "
        "session.",
    ),
    (
        "continues",
        NOTE,
        "the log goes on from an earlier file",
        "What refers to the entries before was not checked.",
    ),
    (
        "import.refused",
        ERROR,
        "it would not be imported",
        "The importer cannot read it, or cannot take it. Its neighbours would be imported.",
    ),
    (
        "import.repaired",
        WARNING,
        "it would be repaired when it is imported",
        "The schema has no legal form for a value; it would be kept as it is in `extra_json`.",
    ),
    (
        "import.left",
        NOTE,
        "it would be left where it is",
        "It is no part of a session, or of a form that is not final.",
    ),
)

#: All rules of the layer.
STORAGE_RULES: Final = tuple(
    Rule(f"storage.{name}", STORAGE, severity, title, explanation) for name, severity, title, explanation in _TABLE
)
