"""A subject: what its subject.json says, and the process that answers."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from google.protobuf.message import DecodeError

from turnwire.conformance import v1 as conformance

PROTOCOL: Final = 1
FEATURES: Final = tuple(
    field.name for field in conformance.Request.DESCRIPTOR.oneofs_by_name["request"].fields if field.name != "hello"
)
_MOST_BYTES: Final = 64 * 1024 * 1024
_SHOWN: Final = 2000
#: Seconds that a process may take to end after its output has.
_ENDING: Final = 10.0


class SubjectError(Exception):
    """The subject, or what it says of itself, is not as tests/conformance/README.md wants it."""


@dataclass(frozen=True)
class Claim:
    """What a subject.json says. ``known_failures`` maps a vector's name to the reason."""

    folder: Path
    language: str
    features: tuple[str, ...]
    command: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    known_failures: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Claim:
        """Read a subject.json, or the one in a folder. Raises SubjectError."""
        path = path / "subject.json" if path.is_dir() else path
        try:
            tree: dict[str, Any] = json.loads(path.read_text("utf-8"))
            unknown = tree.keys() - {"language", "features", "command", "build", "known_failures"}
            if unknown:
                raise SubjectError(f"{path}: unknown members {sorted(unknown)}")
            claim = cls(
                folder=path.parent.resolve(),
                language=tree["language"],
                features=tuple(tree["features"]),
                command=_words(tree["command"]),
                build=tuple(_words(each) for each in tree.get("build", [])),
                known_failures={each["vector"]: each["reason"] for each in tree.get("known_failures", [])},
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SubjectError(f"{path}: {type(error).__name__}: {error}") from None
        if not set(claim.features) <= set(FEATURES):
            raise SubjectError(f"{path}: unknown features {sorted(set(claim.features) - set(FEATURES))}")
        return claim

    def make(self) -> None:
        """Run what builds the subject; its output goes to stderr. Raises SubjectError."""
        for command in self.build:
            print(f"{self.language}: {' '.join(command)}", file=sys.stderr, flush=True)
            try:
                code = subprocess.run(command, cwd=self.folder, env=_environment(), stdout=sys.stderr).returncode
            except OSError as error:
                raise SubjectError(f"{self.language}: {command[0]} cannot be started: {error.strerror}") from None
            if code != 0:
                raise SubjectError(f"{self.language}: {' '.join(command)} ended with {code}")


def _words(value: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError(f"a command is a list of words, not {value!r}")
    return tuple(value)


def _environment() -> dict[str, str]:
    # Not resolved: that of a virtual environment is a link to an interpreter elsewhere.
    here = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}"}


class Subject:
    """A process that answers; it is started when it is first asked, and again after it failed."""

    def __init__(self, claim: Claim, *, seconds: float = 60.0) -> None:
        self.claim = claim
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def hello(self) -> conformance.HelloResponse:
        """Ask the subject who it is. Raises SubjectError."""
        return self._hello if self._process is not None else self._start()

    def ask(self, request: conformance.Request) -> conformance.Response:
        """Ask one thing. Raises SubjectError if no answer comes; the process is then gone."""
        if self._process is None:
            self._start()
        return self._exchange(request)

    def close(self) -> None:
        """End the process by the end of its input. Raises SubjectError if it does not end well."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            code = process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            raise self._failed("does not end when its input does") from None
        if code != 0:
            raise self._failed(f"ended with {code}, not 0, when its input did")
        self._forget()

    def _start(self) -> conformance.HelloResponse:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # it is open as long as the process
        try:
            self._process = subprocess.Popen(
                self.claim.command,
                cwd=self.claim.folder,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            self._forget()
            raise SubjectError(f"{self.claim.command[0]} cannot be started: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # A pipe can be held open by what the process started, so that no read or write may wait for the other end.
        os.set_blocking(self._process.stdin.fileno(), False)
        os.set_blocking(self._process.stdout.fileno(), False)
        answer = self._exchange(conformance.Request(hello=conformance.HelloRequest(protocol=PROTOCOL)))
        if answer.WhichOneof("response") != "hello":
            raise self._failed(f"answered hello with {answer.WhichOneof('response') or 'nothing'}")
        if answer.hello.protocol != PROTOCOL:
            raise self._failed(f"speaks protocol {answer.hello.protocol}, not {PROTOCOL}")
        self._hello = answer.hello
        return answer.hello

    def _exchange(self, request: conformance.Request) -> conformance.Response:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        data = request.SerializeToString()
        deadline = time.monotonic() + self._seconds
        try:
            _send(process.stdin, len(data).to_bytes(4, "big") + data, deadline)
            size = int.from_bytes(_exactly(process.stdout, 4, deadline), "big")
            if size > _MOST_BYTES:
                raise self._failed(f"announced an answer of {size} bytes")
            return conformance.Response.FromString(_exactly(process.stdout, size, deadline))
        except TimeoutError:
            raise self._failed(f"gave no answer in {self._seconds:g} seconds") from None
        except (BrokenPipeError, EOFError):
            raise self._failed(self._why_gone()) from None
        except DecodeError:
            raise self._failed("answered with what is no Response") from None

    def _why_gone(self) -> str:
        """Why there are no more answers. A process that has closed its output may go on for ever."""
        assert self._process is not None
        try:
            return f"ended with {self._process.wait(min(self._seconds, _ENDING))} in place of an answer"
        except subprocess.TimeoutExpired:
            return "closed its output, or its input, in place of an answer"

    def _failed(self, text: str) -> SubjectError:
        """Put an end to the process and all that it started; the exception has the end of what it wrote to stderr."""
        assert self._process is not None
        assert self._stderr is not None
        # The group is there as long as one of it runs, whatever has become of the process itself.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read().decode("utf-8", "replace").strip()
        self._forget()
        return SubjectError(f"{text}\n{said[-_SHOWN:]}" if said else text)

    def _forget(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
        if self._stderr is not None:
            self._stderr.close()
        self._process = self._stderr = None


def _send(stream: IO[bytes], data: bytes, deadline: float) -> None:
    """Write all. Raises TimeoutError, BrokenPipeError."""
    rest = memoryview(data)
    while rest:
        _wait(stream, selectors.EVENT_WRITE, deadline)
        with contextlib.suppress(BlockingIOError):
            rest = rest[os.write(stream.fileno(), rest) :]


def _exactly(stream: IO[bytes], size: int, deadline: float) -> bytes:
    """Read so many bytes. Raises TimeoutError, EOFError."""
    data = bytearray()
    while len(data) < size:
        _wait(stream, selectors.EVENT_READ, deadline)
        with contextlib.suppress(BlockingIOError):
            piece = os.read(stream.fileno(), size - len(data))
            if not piece:
                raise EOFError
            data += piece
    return bytes(data)


def _wait(stream: IO[bytes], event: int, deadline: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(stream, event)
        if not selector.select(max(deadline - time.monotonic(), 0)):
            raise TimeoutError


def claims(root: Path) -> Iterator[Claim]:
    """The subjects of the repository, that of Python first. Raises SubjectError."""
    for pattern in ("tests/conformance/subjects/*/subject.json", "clients/*/conformance/subject.json"):
        for path in sorted(root.glob(pattern)):
            yield Claim.read(path)


def chosen(root: Path, paths: Sequence[Path]) -> list[Claim]:
    """The subjects at the paths; without any, all of the repository. Raises SubjectError."""
    return [Claim.read(path) for path in paths] if paths else list(claims(root))
