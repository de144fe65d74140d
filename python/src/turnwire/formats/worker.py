"""Reads and maps sources in a process of its own, and sends the sessions through a pipe.

``python -m turnwire.formats.worker`` takes one JSON object on stdin: program, sources, and what is wanted. On stdout
come frames, each a JSON header in a line of its own and then the bytes that it announces:

* ``{"session": …, "sizes": […]}``: a session with the sizes of its properties and of each entry, which follow;
* ``{"report": …}``: remarks and counts since the last frame, before the session that they belong to;
* ``{"end": true}``.

If nobody reads the pipe any more it ends without a word, with exit code 1.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from turnwire import v1
from turnwire.formats import ledger
from turnwire.formats.base import SessionImport, Source, Unlinked, Wanted
from turnwire.formats.report import Report

END: Final = "end"
REPORT: Final = "report"
SESSION: Final = "session"
SIZES: Final = "sizes"

#: After how many entries cycles are looked for.
_COLLECT: Final = 20_000


def order(program: str, sources: Iterable[Source], wanted: Wanted) -> bytes:
    """What a worker is to do, for its stdin."""
    tree = {
        "program": program,
        "sources": [[str(one.path), one.form, [str(each) for each in one.beside]] for one in sources],
        "sessions": sorted(wanted.session_ids) if wanted.session_ids is not None else None,
        "since": wanted.since_ms,
    }
    return json.dumps(tree).encode()


def session_of(header: dict[str, Any], pieces: Iterator[bytes]) -> SessionImport:
    """The session of a frame."""
    session_id, source, program, whole, digest, headless, unread, original_id, unlinked, revert_unread = header[SESSION]
    properties = v1.SessionProperties.FromString(next(pieces))
    entries = [v1.EntryInput.FromString(piece) for piece in pieces]
    return SessionImport(
        session_id,
        properties,
        entries,
        source,
        program,
        whole,
        digest,
        headless,
        tuple((name, member) for name, member in unread),
        original_id,
        tuple(Unlinked(*each) for each in unlinked),
        revert_unread,
    )


def main() -> None:
    """Do what stdin says."""
    from turnwire.formats import IMPORTERS
    from turnwire.formats.pipeline import mapped

    tree = json.load(sys.stdin.buffer)
    sources = [Source(Path(path), form, tuple(map(Path, beside))) for path, form, beside in tree["sources"]]
    wanted = Wanted(frozenset(tree["sessions"]) if tree["sessions"] is not None else None, tree["since"])
    report = Report()
    out = sys.stdout.buffer
    # Looking for cycles among so many small objects took a fifth of the time, and there are hardly any.
    gc.disable()
    pending = 0
    for session in mapped(IMPORTERS[tree["program"]], sources, report, wanted):
        _send_report(out, report)
        _send(out, session)
        pending += len(session.entries)
        if pending > _COLLECT:
            gc.collect()
            pending = 0
    _send_report(out, report)
    _line(out, {END: True})
    out.flush()


def _send(out: IO[bytes], session: SessionImport) -> None:
    pieces = ledger.serialized(session)
    named = [
        session.session_id,
        session.source,
        session.program,
        session.whole,
        ledger.digest_over(pieces),
        session.headless,
        session.unread,
        session.original_id,
        session.unlinked,
        session.revert_unread,
    ]
    _line(out, {SESSION: named, SIZES: [len(piece) for piece in pieces]})
    out.write(b"".join(pieces))


def _send_report(out: IO[bytes], report: Report) -> None:
    if report.notes:
        _line(out, {REPORT: report.take()})


def _line(out: IO[bytes], tree: object) -> None:
    out.write(json.dumps(tree).encode() + b"\n")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the import was ended, and nobody reads
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
