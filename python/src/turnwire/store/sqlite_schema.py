"""The tables of a SQLite store, their versions, and how a file is made.

One clustered b-tree holds the entries of all sessions: their key is ``session key << 32 | revision``, so that the log
of a session lies together in order and needs no second index. Small numbers are kept as distances (a revision from
another, a time from the session's first), because SQLite stores 0 and 1 in no byte at all and small numbers in few.
Bytes are BLOBs: text functions of SQLite end at NUL.
"""

from __future__ import annotations

import sqlite3

#: Stamped into the file: "TWIR".
APPLICATION_ID = 0x54574952

#: A digest is stored with every entry whose revision is a multiple of this and that is in no block, and with the last
#: entry of a block where it was known; those between are computed from it.
DIGEST_EVERY = 64

#: Bits of the key of an entry that are its revision.
REVISION_BITS = 32
REVISION_MASK = (1 << REVISION_BITS) - 1

PAGE_BYTES = 16 * 1024

_VERSION_1 = (
    # Small, and rewritten when entries are indexed; listing reads it from end to end. AUTOINCREMENT: a key is never
    # used again, so that one that another process still holds can not come to mean another session.
    """
    CREATE TABLE session (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        head INTEGER NOT NULL,         -- last revision that this row and the index have
        digest BLOB NOT NULL,          -- of the log up to head
        first_us INTEGER NOT NULL,     -- when revision 1 was recorded, µs since the epoch
        recorded_us INTEGER NOT NULL,  -- when head was recorded
        properties INTEGER NOT NULL,   -- revision of the properties in force
        revert INTEGER NOT NULL,       -- revision of the open revert; 0: none
        ahead INTEGER NOT NULL,        -- 1: there are entries after head (sqlite_tail)
        UNIQUE (tenant, id)
    ) STRICT
    """,
    "CREATE TABLE deleted (tenant TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID",
    # What sessions are filtered by, from the properties in force.
    """
    CREATE TABLE detail (
        session INTEGER PRIMARY KEY,
        directory TEXT,
        parent TEXT,                   -- id of the session that started this one
        archived INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX detail_parent ON detail (parent) WHERE parent IS NOT NULL",
    "CREATE INDEX detail_directory ON detail (directory) WHERE directory IS NOT NULL",
    """
    CREATE TABLE label (
        session INTEGER NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (session, key)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX label_value ON label (key, value)",
    """
    CREATE TABLE entry (
        pos INTEGER PRIMARY KEY,       -- session key << 32 | revision; of a block: of its first entry
        recorded INTEGER NOT NULL,     -- µs since the session's first_us
        mark INTEGER NOT NULL,         -- field number << 1 | ignorable; 0: a block of entries (sqlite_block)
        back INTEGER NOT NULL,         -- delta: revisions back to the delta before it on the same version; 0: none
                                       -- block: revisions on to its last entry
        digest BLOB,                   -- of the log up to here, at multiples of 64; of a block: up to its last entry
        payload BLOB NOT NULL          -- or the block
    ) STRICT
    """,
    # Payloads that the build which made this schema does not know and may not ignore (mark as above; its last payload
    # is number 21). Empty but where a later build has written.
    "CREATE INDEX entry_foreign ON entry (pos) WHERE mark >= 44 AND (mark & 1) = 0",
    # Live versions of headers, parts and summaries. A row whose mark is -1 has those of a stretch (sqlite_block): the
    # position of the first, the block's revision, where the stretch lies in the block, and the turn of its messages.
    """
    CREATE TABLE node (
        session INTEGER NOT NULL,
        place BLOB NOT NULL,
        slot BLOB NOT NULL,
        mark INTEGER NOT NULL,         -- kind << 1 | sealed
        revision INTEGER NOT NULL,     -- of the entry that put this version
        back INTEGER NOT NULL,         -- revisions back to the birth of the place
        start INTEGER NOT NULL,        -- offset in the entry's payload
        length INTEGER NOT NULL,
        turn INTEGER,                  -- header: revisions back to the turn; NULL: none
        delta INTEGER NOT NULL,        -- part: revisions on to the last delta; 0: none
        grown INTEGER NOT NULL,        -- part: bytes of text that deltas have added
        run BLOB,                      -- header: the parts packed behind it (sqlite_pack); NULL: none
                                       -- stretch: its versions
        PRIMARY KEY (session, place, slot)
    ) STRICT, WITHOUT ROWID
    """,
    # Versions that have ended. A read at R looks at those that ended after R only.
    """
    CREATE TABLE past (
        session INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        place BLOB NOT NULL,
        slot BLOB NOT NULL,
        mark INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        back INTEGER NOT NULL,
        start INTEGER NOT NULL,
        length INTEGER NOT NULL,
        turn INTEGER,
        delta INTEGER NOT NULL,
        grown INTEGER NOT NULL,
        PRIMARY KEY (session, ended, place, slot)
    ) STRICT, WITHOUT ROWID
    """,
    # The space comes behind the id: ids that are made together sort together, so that a message and its parts mostly
    # fall on one page.
    """
    CREATE TABLE name (
        session INTEGER NOT NULL,
        form INTEGER NOT NULL,         -- of the id (sqlite_pack)
        id ANY NOT NULL,
        space INTEGER NOT NULL,
        born INTEGER NOT NULL,
        place BLOB NOT NULL,
        slot BLOB NOT NULL,
        PRIMARY KEY (session, form, id, space, born)
    ) STRICT, WITHOUT ROWID
    """,
    # Names of messages and parts, many in a row (sqlite_series).
    """
    CREATE TABLE series (
        session INTEGER NOT NULL,
        lane INTEGER NOT NULL,
        first BLOB NOT NULL,           -- least id
        last BLOB NOT NULL,            -- greatest id
        born INTEGER NOT NULL,         -- revision of the first birth
        reach INTEGER NOT NULL,        -- revisions on to the last birth
        names BLOB NOT NULL,
        PRIMARY KEY (session, lane, first)
    ) STRICT, WITHOUT ROWID
    """,
    # The names of turns and prompts in the order of the log.
    """
    CREATE TABLE listed (
        session INTEGER NOT NULL,
        space INTEGER NOT NULL,
        born INTEGER NOT NULL,
        id TEXT NOT NULL,
        PRIMARY KEY (session, space, born)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE span (
        session INTEGER NOT NULL,
        start INTEGER NOT NULL,
        ended INTEGER NOT NULL,        -- 0: the revert is open
        place BLOB NOT NULL,
        slot BLOB NOT NULL,
        PRIMARY KEY (session, start)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE reply (
        session INTEGER NOT NULL,
        request_id TEXT NOT NULL,
        method TEXT NOT NULL,
        sha256 BLOB NOT NULL,
        response BLOB NOT NULL,
        PRIMARY KEY (session, request_id, method)
    ) STRICT, WITHOUT ROWID
    """,
    # The last replies in the order in which they were given, before they are sorted in (sqlite_replies).
    """
    CREATE TABLE fresh_reply (
        number INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        request_id TEXT NOT NULL,
        method TEXT NOT NULL,
        sha256 BLOB NOT NULL,
        response BLOB NOT NULL
    ) STRICT
    """,
)

#: Statements that bring a file from version N (0: empty) to N + 1. A released step is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1,)

VERSION = len(MIGRATIONS)


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring a file from a version to the current one, inside the transaction that is open."""
    for step in MIGRATIONS[version:]:
        for statement in step:
            db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")
