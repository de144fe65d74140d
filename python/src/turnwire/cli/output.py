"""What a command gives: the answer on stdout for people or as JSON, everything else on stderr, and an exit code."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import cache
from typing import IO, Final, NamedTuple

from google.protobuf import json_format
from google.protobuf.message import Message
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from turnwire import errors, v1
from turnwire.cli.text import one_line, plural, safe_json
from turnwire.rules import schema
from turnwire.validation import unknown

PROGRAM: Final = "turnwire"

# Wide enough that nothing is cut off where no terminal sets a width.
_NO_WIDTH: Final = 100_000


class ExitCode(IntEnum):
    """The exit codes, for scripts."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141


#: What each exit code says, for ``--help`` and the documents.
EXIT_CODES: Final = {
    ExitCode.OK: "done",
    ExitCode.FINDINGS: "something is wrong with the data: verify or validate found something, an import was refused in "
    "part, or stored bytes cannot be read",
    ExitCode.USAGE: "wrong usage or bad input, a store of another kind or version included; "
    "validate: something could not be read; a fault of the program",
    ExitCode.NOT_FOUND: "there is no such session, message, turn or prompt",
    ExitCode.CONFLICT: "the request does not fit what is stored: it exists already, another writer came first, "
    "an anchor is not in the prompt",
    ExitCode.UNAVAILABLE: "the server cannot be reached, is ending or too slow, or the store is busy or full",
    ExitCode.INTERRUPTED: "interrupted, or a question was answered with no",
    ExitCode.BROKEN_PIPE: "the reader of stdout went away",
}

_BY_STATUS: Final = {
    "DATA_LOSS": ExitCode.FINDINGS,
    "INVALID_ARGUMENT": ExitCode.USAGE,
    "OUT_OF_RANGE": ExitCode.USAGE,
    "NOT_FOUND": ExitCode.NOT_FOUND,
    "ALREADY_EXISTS": ExitCode.CONFLICT,
    "FAILED_PRECONDITION": ExitCode.CONFLICT,
    "ABORTED": ExitCode.CONFLICT,
    "RESOURCE_EXHAUSTED": ExitCode.UNAVAILABLE,
    "UNAVAILABLE": ExitCode.UNAVAILABLE,
    "DEADLINE_EXCEEDED": ExitCode.UNAVAILABLE,
}
_OWN_ADVICE: Final[dict[int, str]] = {
    v1.Reason.REASON_SESSION_NOT_FOUND: "Check the id; `turnwire sessions` lists them.",
    v1.Reason.REASON_TURN_NOT_FOUND: "Check the id and the revision; `turnwire replay` shows the turns.",
    v1.Reason.REASON_PROMPT_NOT_FOUND: "Check the id; `turnwire prompt SESSION --list` lists them.",
}
_ABOUT_THE_STORE: Final = (errors.StoreForeign, errors.StoreTooNew, errors.StoreReadOnly)


def exit_code(error: errors.TurnwireError) -> ExitCode:
    """The exit code of a failure."""
    if isinstance(error, _ABOUT_THE_STORE):
        return ExitCode.USAGE
    return _BY_STATUS.get(error.status, ExitCode.USAGE)


def explain(error: errors.TurnwireError) -> str:
    """A failure in one line: reason, path, what is wrong, what it is about, and what to do."""
    about = [f"{key} {value}" for key, value in error.metadata.items() if key.endswith("_id")]
    text = f"{error} ({', '.join(about)})" if about else str(error)
    advice = what_to_do().get(error.reason, "")
    return one_line(f"{error.reason_name or error.status}: {text}{f'. {advice}' if advice else ''}")


@cache
def what_to_do() -> dict[int, str]:
    """The advice of each reason, as the comments of ``errors.proto`` give it under "What to do".

    Some of it is for writers of programs; the command line has better advice for those.
    """
    return {number: _advice(comment) for number, comment in schema.value_comments("Reason").items()} | _OWN_ADVICE


def _advice(comment: str) -> str:
    lines = [line.strip() for line in comment.splitlines()]
    start = next((place for place, line in enumerate(lines) if line.startswith("What to do:")), None)
    if start is None:
        return ""
    found = [lines[start].removeprefix("What to do:").strip()]
    for line in lines[start + 1 :]:
        if line.startswith("Example:"):
            break
        found.append(line)
    return " ".join(found)


class Line(NamedTuple):
    """A line of people's output: how far it is indented, and what it says."""

    indent: int
    text: Text


class Output:
    """Where a command writes. ``json``: a JSON object a line, for scripts; else for people."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        for stream in (sys.stdout, sys.stderr):
            # What a stream's encoding lacks is escaped; in JSON, where only file names can lack it, that is legal too.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8" if json else stream.encoding, errors="backslashreplace")
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)
        self._left_out = 0

    def message(self, message: Message) -> None:
        """Write a message as canonical ProtoJSON, in one line."""
        self._line(json_format.MessageToJson(message, indent=None, ensure_ascii=False))
        self._note_unknown(message)

    def named(self, message: Message, **names: str) -> None:
        """Write a message likewise, with names before its own fields, for a message that does not say what it is of."""
        self.object({**names, **json_format.MessageToDict(message)})
        self._note_unknown(message)

    def object(self, value: object) -> None:
        """Write a JSON object that is no message, in one line."""
        self._line(json.dumps(value, ensure_ascii=False))

    def text(self, text: str) -> None:
        """Write a text that is the answer itself, as it is."""
        sys.stdout.write(f"{safe_json(text)}\n")

    def document(self, document: str) -> None:
        """Write a JSON document that is the answer itself: byte for byte, and in a safe form on a terminal."""
        if self._out.is_terminal:
            self.text(document)
        else:
            self.binary(document.encode())

    def binary(self, data: bytes) -> None:
        """Write bytes."""
        sys.stdout.buffer.write(data)

    def lines(self, lines: Iterable[Line]) -> None:
        """Write lines for people: wrapped to a terminal's width, and left whole where there is none."""
        for line in lines:
            indent = " " * line.indent
            if self._out.is_terminal:
                pieces = line.text.wrap(self._out, max(self._out.width - line.indent, 20))
                for piece in pieces or [Text("")]:
                    self._out.print(Text(indent).append_text(piece), soft_wrap=True)
            else:
                sys.stdout.write(f"{indent if line.text.plain else ''}{line.text.plain}\n")

    def print(self, renderable: RenderableType) -> None:
        """Write something for people."""
        if self._out.is_terminal:
            self._out.print(renderable)
            return
        with self._out.capture() as written:
            self._out.print(renderable)
        for line in written.get().splitlines():
            sys.stdout.write(f"{line.rstrip()}\n")

    def note(self, text: str) -> None:
        """Say something beside the answer."""
        self._err.print(Text.assemble((f"{PROGRAM}: ", "dim"), one_line(text)), soft_wrap=True)

    def progress(self, what: str, *, while_writing: bool, rate: Callable[[float], str] | None = None) -> Progress:
        """A progress bar on stderr, which is there only if that is a terminal.

        ``while_writing``: answers are written meanwhile, so that there is none if they go to a terminal as well.
        ``rate``: how to tell what was done in a second, in place of how much of all was done.
        """
        done = MofNCompleteColumn() if rate is None else _Rate(rate)
        columns = (TextColumn(what), BarColumn(), done, TimeRemainingColumn())
        hidden = not self._err.is_terminal or (while_writing and self._out.is_terminal)
        # A redirected stdout would come out on stderr.
        return Progress(
            *columns,
            console=self._err,
            transient=True,
            disable=hidden,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def flush(self) -> None:
        """Let a reader have what has been written so far."""
        sys.stdout.flush()

    def close(self) -> None:
        """Say what was left out, and see to it that all has been written."""
        if self._left_out:
            reason = "JSON cannot carry fields that this version does not know"
            self.note(f"{reason}; {plural(self._left_out, 'object')} had some, which were left out")
        sys.stdout.flush()

    def _line(self, document: str) -> None:
        sys.stdout.write(f"{safe_json(document)}\n")

    def _note_unknown(self, message: Message) -> None:
        if unknown.any_in(message):
            self._left_out += 1


def error_line(text: str) -> None:
    """Write the one line that says why a command failed."""
    _console(sys.stderr).print(Text.assemble((f"{PROGRAM}: error: ", "bold red"), one_line(text)), soft_wrap=True)


class _Rate(ProgressColumn):
    """What is done in a second."""

    def __init__(self, tell: Callable[[float], str]) -> None:
        super().__init__()
        self._tell = tell

    def render(self, task: Task) -> Text:
        share = f"{task.percentage:>3.0f}% " if task.total else ""
        return Text(share + (self._tell(task.speed) if task.speed else ""), style="progress.data.speed")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console(file: IO[str]) -> Console:
    # NO_COLOR asks for no colours; without a colour system there is no other style either, which is plainer still.
    plain = bool(os.environ.get("NO_COLOR"))
    console = _Console(
        file=file,
        color_system=None if plain else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    if not console.is_terminal:
        console.width = _NO_WIDTH
    return console
