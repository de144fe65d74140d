"""Where the sessions are: a file, or a server."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnwire import errors
from turnwire.calls.service import Service
from turnwire.cli.usage import Usage
from turnwire.client import Client, check_target
from turnwire.embedded import MEMORY
from turnwire.embedded import open as open_store

DB_VARIABLE: Final = "TURNWIRE_DB"
SERVER_VARIABLE: Final = "TURNWIRE_SERVER"
_MAKERS: Final = "`turnwire import` and `turnwire serve` make one"


class NoStore(errors.NotFound):
    """There is no store at the path of one that is to be there already."""


@dataclass(frozen=True, slots=True)
class Source:
    """A store's file (``db``), or the address of a server (``server``): one of the two is set."""

    db: Path | None = None
    server: str | None = None

    @classmethod
    def chosen(cls, db: str | None, server: str | None, environment: Mapping[str, str]) -> Source:
        """What the options say, else the environment, else the default file. Raises `Usage` if both are given."""
        names = "--db and --server"
        if db is None and server is None:
            db, server = environment.get(DB_VARIABLE) or None, environment.get(SERVER_VARIABLE) or None
            names = f"{DB_VARIABLE} and {SERVER_VARIABLE}"
        if db is not None and server is not None:
            raise Usage(f"{names} exclude each other: the sessions are in a file or behind a server")
        if server is not None:
            try:
                check_target(server)
            except ValueError as error:
                raise Usage(str(error)) from None
            return cls(server=server)
        if db == "":
            raise Usage("--db takes the path of a file")
        return cls(db=Path(db) if db is not None else _default(environment))

    @property
    def name(self) -> str:
        """The path or the address."""
        return self.server if self.server is not None else str(self.db)

    def file(self, *, create: bool) -> Path:
        """The store's file. ``create``: make its directory; else raise `NoStore` if there is no file, or nothing in it.

        An empty file would become a store when it is opened.
        """
        assert self.db is not None
        if str(self.db) == MEMORY:
            return self.db
        if create:
            self.db.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not self.db.exists():
            raise NoStore(f"there is no store at {self.db}; {_MAKERS}")
        elif self.db.is_file() and not self.db.stat().st_size:
            raise NoStore(f"the file {self.db} is empty, and no store; {_MAKERS}")
        return self.db

    @asynccontextmanager
    async def open(self, *, create: bool = False) -> AsyncGenerator[Service, None]:
        """The client of the server, or the store in the file. ``create``: make the file if there is none."""
        if self.server is not None:
            async with Client.connect(self.server) as client:
                yield client
        else:
            async with open_store(self.file(create=create)) as store:
                yield store


def _default(environment: Mapping[str, str]) -> Path:
    data = environment.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(data) / "turnwire" / "turnwire.db"
