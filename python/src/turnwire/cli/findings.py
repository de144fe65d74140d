"""Findings for people, grouped by session, or for scripts, one a line; and what they come to."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rich.progress import Progress, TaskID
from rich.text import Text

from turnwire import v1
from turnwire.cli.output import Line, Output, error_line
from turnwire.cli.text import one_line, plural

_STYLES: Final = {
    v1.Severity.SEVERITY_ERROR: "bold red",
    v1.Severity.SEVERITY_WARNING: "bold yellow",
    v1.Severity.SEVERITY_NOTE: "dim",
}


@dataclass(slots=True)
class Tally:
    """What was looked at and found in all."""

    sessions: int = 0
    entries: int = 0
    messages: int = 0
    unreadable: int = 0
    found: dict[int, int] = field(default_factory=lambda: dict.fromkeys(_STYLES, 0))

    def broken(self, *, strict: bool) -> bool:
        """Whether something is wrong; ``strict``: a warning is enough."""
        worst = [v1.Severity.SEVERITY_ERROR, *([v1.Severity.SEVERITY_WARNING] if strict else [])]
        return any(self.found[each] for each in worst)


class Report:
    """Writes findings as they come, and keeps count."""

    def __init__(self, out: Output) -> None:
        self.tally = Tally()
        self._out = out
        self._group: tuple[str, str] | None = None
        self._progress: Progress | None = None
        self._task = TaskID(0)

    @contextmanager
    def progress(self, progress: Progress, total: float | None) -> Generator[None]:
        """Show a bar for one target."""
        with progress:
            self._progress, self._task = progress, progress.add_task("", total=total)
            try:
                yield
            finally:
                self._progress = None

    def done(self, completed: float) -> None:
        """Move the bar to what has been done of the target."""
        if self._progress is not None:
            self._progress.update(self._task, completed=completed)

    def unreadable(self, target: str, why: str) -> None:
        """Say that a target could not be read."""
        self.tally.unreadable += 1
        error_line(f"{target}: {why}")

    def add(self, findings: Sequence[v1.Finding]) -> None:
        """Write findings."""
        if not findings:
            return
        for finding in findings:
            self.tally.found[finding.severity] += 1
        # The bar may be on the terminal to which this goes.
        if self._progress is not None:
            self._progress.stop()
        if self._out.json:
            for finding in findings:
                self._out.message(finding)
        else:
            self._out.lines(self._lines(findings))
        if self._progress is not None:
            self._progress.start()

    def end(self) -> None:
        """Write the summary."""
        tally = self.tally
        counts = {
            "sessions": tally.sessions,
            "entries": tally.entries,
            "messages": tally.messages,
            "errors": tally.found[v1.Severity.SEVERITY_ERROR],
            "warnings": tally.found[v1.Severity.SEVERITY_WARNING],
            "notes": tally.found[v1.Severity.SEVERITY_NOTE],
            "unreadable": tally.unreadable,
        }
        if self._out.json:
            self._out.object({"summary": counts})
            return
        read = [(tally.sessions, "session"), (tally.entries, "entry"), (tally.messages, "message")]
        what = ", ".join(plural(number, noun) for number, noun in read if number) or "nothing"
        nouns = ("error", "warning", "note")
        told = [plural(counts[f"{noun}s"], noun) for noun in nouns if counts[f"{noun}s"]]
        if tally.unreadable:
            told.append(f"{plural(tally.unreadable, 'target')} could not be read")
        broken = tally.broken(strict=True) or tally.unreadable
        line = Text.assemble(f"{what}: ", (", ".join(told) or "sound", "bold" if broken else "bold green"))
        self._out.lines([Line(0, line)])

    def _lines(self, findings: Iterable[v1.Finding]) -> Iterator[Line]:
        for finding in findings:
            group = (finding.source, finding.session_id)
            if group != self._group:
                self._group = group
                name = " ".join(filter(None, (finding.session_id, f"({finding.source})" if finding.source else "")))
                yield Line(0, Text(one_line(name) or "messages", style="bold"))
            yield from _finding(finding)


def _finding(finding: v1.Finding) -> Iterator[Line]:
    severity = v1.Severity.Name(finding.severity).removeprefix("SEVERITY_").lower()
    places = (f"revision {finding.revision:,}" if finding.revision else "", finding.place)
    where = ", ".join(filter(None, places))
    line = Text.assemble((f"{severity:<8}", _STYLES[finding.severity]), (finding.rule, "bold"), f"  {one_line(where)}")
    yield Line(2, line)
    if finding.path or finding.value:
        shown = " = ".join(filter(None, (finding.path, finding.value)))
        yield Line(10, Text(one_line(shown), style="cyan"))
    right = f": {finding.expected}" if finding.expected else ""
    yield Line(10, Text(one_line(f"{finding.text}{right}")))
