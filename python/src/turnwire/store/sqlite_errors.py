"""What SQLite's errors mean to a caller."""

from __future__ import annotations

import sqlite3

from turnwire import errors

_PRIMARY = 0xFF
_NO_UTF_8 = "Could not decode to UTF-8"  # what the binding says, with the text, of which nothing may go further
_CLASSES: dict[int, tuple[type[errors.TurnwireError], str]] = {
    sqlite3.SQLITE_BUSY: (errors.StoreBusy, "another process holds the store"),
    sqlite3.SQLITE_LOCKED: (errors.StoreBusy, "another process holds the store"),
    sqlite3.SQLITE_FULL: (errors.StoreFull, "there is no room for the store"),
    sqlite3.SQLITE_TOOBIG: (errors.StoreFull, "more than the store can hold in one place"),
    sqlite3.SQLITE_READONLY: (errors.StoreReadOnly, "the store can only be read"),
    sqlite3.SQLITE_PERM: (errors.StoreReadOnly, "the store may not be written"),
    sqlite3.SQLITE_CORRUPT: (errors.CorruptData, "the store's file is damaged"),
    sqlite3.SQLITE_NOTADB: (errors.CorruptData, "the store's file is damaged"),
    # STRICT tables refuse what only damage or a fault of the program can bring.
    sqlite3.SQLITE_CONSTRAINT: (errors.CorruptData, "the store's rows contradict each other"),
}
_EXTENDED: dict[int, tuple[type[errors.TurnwireError], str]] = {
    # SQLite names a full disk SQLITE_FULL; a quota and a limit on the size of files show as a failed write.
    sqlite3.SQLITE_IOERR_WRITE: (errors.StoreFull, "the store's file could not be written: a quota or size limit"),
    sqlite3.SQLITE_IOERR_SHORT_READ: (errors.CorruptData, "the store's file is cut off"),
    sqlite3.SQLITE_IOERR_READ: (errors.CorruptData, "the store's file could not be read"),
}


def code(error: sqlite3.Error) -> int:
    """SQLite's primary error code; 0 if the error comes from the binding itself."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY


def translate(error: sqlite3.Error) -> errors.TurnwireError:
    """The exception of Turnwire for an error of SQLite."""
    extended = getattr(error, "sqlite_errorcode", 0)
    if not extended and str(error).startswith(_NO_UTF_8):
        return errors.CorruptData("a text in the store is no UTF-8")
    cls, text = _EXTENDED.get(extended) or _CLASSES.get(code(error)) or (errors.InternalError, "the store failed")
    name = getattr(error, "sqlite_errorname", "")
    found = cls(text, sqlite=name) if name else cls(text)
    found.__cause__ = error
    return found
