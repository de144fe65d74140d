"""Sessions, prompt records and servers as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from turnwire import v1
from turnwire.cli.output import Line
from turnwire.cli.text import cut, moment, one_line, plural, size

_GAP: Final = (0, 2, 0, 0)


def sessions(found: Iterable[v1.Session]) -> Table:
    """Sessions, one a row."""
    made = table("session", "last recorded", "revision", "title", "directory", "state")
    made.columns[2].justify = "right"
    for session in found:
        properties = session.properties
        made.add_row(
            Text(session.id, style="bold"),
            Text(moment(session.head.recorded, seconds=False)),
            Text(f"{session.head.revision:,}"),
            Text(cut(properties.title, 80)),
            Text(one_line(properties.directory), style="dim"),
            Text(", ".join(_states(session)), style="yellow"),
        )
    return made


def session_lines(session: v1.Session) -> Iterator[Line]:
    """A session's properties and the end of its log."""
    properties = session.properties
    heading = Text.assemble(("session ", "dim"), (session.id, "bold"))
    yield Line(0, heading.append(f"  {cut(properties.title, 500)}" if properties.title else ""))
    origin = properties.origin
    parent = properties.parent
    fork = session.forked_from
    labels = "  ".join(f"{one_line(key)}={cut(properties.labels[key], 200)}" for key in sorted(properties.labels))
    for name, value in (
        ("directory", one_line(properties.directory)),
        ("created", moment(properties.created)),
        ("recorded", f"{moment(session.recorded)} to {moment(session.head.recorded)}"),
        ("written by", f"{cut(origin.program, 200)} {cut(origin.version, 100)}".strip()),
        ("labels", labels),
        ("started by", f"{parent.session_id} {parent.part_id}".strip()),
        ("forked from", f"{fork.session_id} at revision {fork.revision}" if fork.session_id else ""),
        ("archived", moment(properties.archived) if properties.HasField("archived") else ""),
        ("revert", _revert(session) if session.HasField("revert") else ""),
        ("head", f"revision {session.head.revision}  digest {session.head.digest.hex()}"),
    ):
        if value:
            yield Line(2, Text.assemble((f"{name:<12}", "dim"), value))


def prompts(records: Iterable[v1.PromptRecord]) -> Table:
    """Prompt records, one a row."""
    made = table("prompt", "created", "turn", "base", "mutations", "profile", "digest")
    for record in records:
        chained = record.WhichOneof("base") == "base_prompt_id"
        made.add_row(
            Text(record.id, style="bold"),
            Text(moment(record.created)),
            Text(record.turn_id),
            Text(record.base_prompt_id if chained else f"revision {record.base_revision}"),
            Text(", ".join((edit.WhichOneof("kind") or "?").replace("_", " ") for edit in record.mutations)),
            Text(cut(record.profile, 64)),
            Text(record.digest.hex()[:16], style="dim"),
        )
    return made


def verified(session_id: str, response: v1.VerifySessionResponse) -> Iterator[Line]:
    """What verifying a session found."""
    verdict = ("sound", "green") if response.sound else ("NOT SOUND", "bold red")
    told = f"  {plural(response.entries, 'entry')}, digest {response.head.digest.hex()[:16]}"
    yield Line(0, Text.assemble(verdict, "  ", (session_id, "bold"), (told, "dim")))
    for finding in response.findings:
        where = f"revision {finding.revision}" if finding.revision else "the session"
        yield Line(2, Text(f"{where}: {one_line(finding.text)}", style="red"))


def server(info: v1.GetServerInfoResponse) -> Iterator[Line]:
    """What a server says of itself."""
    limits = info.limits
    for name, value in (
        ("version", one_line(info.version)),
        ("speaks", ", ".join(map(one_line, info.protocols))),
        ("profiles", ", ".join(map(one_line, info.profiles))),
        ("features", ", ".join(map(one_line, info.features)) or "none"),
        ("part", f"at most {size(limits.part_bytes)}"),
        ("request", f"at most {size(limits.request_bytes)}, {plural(limits.append_entries, 'entry')} an append"),
        ("frame", f"closed at {size(limits.frame_bytes)}"),
    ):
        yield Line(0, Text.assemble((f"{name:<10}", "dim"), value))


def names(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    """Names, each with what it is."""
    made = table(title, "")
    for name, told in rows:
        made.add_row(Text(name, style="bold"), Text(one_line(told)))
    return made


def table(*columns: str) -> Table:
    """An empty table in the style of all of them."""
    made = Table(box=None, padding=_GAP, pad_edge=False, header_style="dim")
    for place, column in enumerate(columns):
        # Ids and times are for copying: what does not fit is wrapped elsewhere.
        made.add_column(column, overflow="fold", no_wrap=place < 2 and column != "")
    return made


def _states(session: v1.Session) -> Iterator[str]:
    if session.properties.HasField("archived"):
        yield "archived"
    if session.HasField("revert"):
        yield "reverted"
    if session.forked_from.session_id:
        yield "fork"
    if session.properties.parent.session_id:
        yield "child"


def _revert(session: v1.Session) -> str:
    revert = session.revert.revert
    part = f" part {revert.part_id}" if revert.HasField("part_id") else ""
    return f"open since revision {session.revert.revision}, from {revert.message_id}{part} on"
