"""``python -m turnwire.demo``: a stored session of a real agent goes in, is served, mutated and replayed.

It needs a checkout, since the session lies under ``tests/data/``. Every claim that it prints is checked; the exit code
is 1 if one does not hold.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

import grpc.aio
from rich.text import Text

from turnwire import errors, prompt, v1
from turnwire.calls.prompts import Prompt
from turnwire.cli import render
from turnwire.cli.output import ExitCode, Line, Output, error_line
from turnwire.cli.parts import Detail
from turnwire.cli.text import plural
from turnwire.client import Client
from turnwire.methods import METHODS

EXPORT: Final = Path("tests/data/opencode/three-turns.json")
SUMMARIZE: Final = "Summarize the tool output above and continue."
NOTE: Final = "Answer in one sentence."

_SECONDS: Final = 30


@dataclass(slots=True)
class Demo:
    """The demo's output, and whether all claims held so far."""

    out: Output = field(default_factory=Output)
    step_number: int = 0
    failed: int = 0

    def step(self, title: str) -> None:
        """Begin a step."""
        self.step_number += 1
        self.out.lines([Line(0, Text("")), Line(0, Text(f"{self.step_number}. {title}", style="bold cyan"))])

    def say(self, text: str) -> None:
        """Say something."""
        self.out.lines([Line(3, Text(text))])

    def claim(self, text: str, holds: bool) -> None:
        """State something, and whether it is so."""
        mark = Text("✓ ", style="bold green") if holds else Text("✗ does NOT hold: ", style="bold red")
        self.out.lines([Line(3, mark.append(text, style="" if holds else "bold red"))])
        self.failed += not holds

    def run(self, *arguments: str) -> bool:
        """Run the command line, show what it says, and tell whether it went well."""
        self.say(f"$ {shlex.join(['turnwire', *arguments])}")
        self.out.flush()
        done = subprocess.run(_turnwire(*arguments), capture_output=True, text=True, timeout=_SECONDS, check=False)
        self.out.lines(Line(3, Text(line, style="dim")) for line in (done.stdout + done.stderr).splitlines())
        self.claim(f"exit code {done.returncode}", done.returncode == 0)
        return done.returncode == 0

    def end(self) -> ExitCode:
        """Say how it went."""
        self.out.lines([Line(0, Text(""))])
        if self.failed:
            self.out.lines([Line(0, Text(f"{plural(self.failed, 'claim')} did not hold.", style="bold red"))])
            return ExitCode.FINDINGS
        self.out.lines([Line(0, Text("All claims hold.", style="bold green"))])
        return ExitCode.OK


def main() -> int:
    """Run the demo; returns the exit code."""
    export = next((root / EXPORT for root in (_checkout(), Path.cwd()) if (root / EXPORT).is_file()), None)
    if export is None:
        error_line(f"the demo needs {EXPORT}, so run it in a checkout")
        return ExitCode.USAGE
    demo = Demo()
    with tempfile.TemporaryDirectory(prefix="turnwire-demo-") as directory:
        db = str(Path(directory) / "demo.db")
        demo.step("Import a session that opencode stored, into a file")
        if not demo.run("--db", db, "import", "opencode", os.path.relpath(export)):
            return demo.end()
        demo.step("Serve the file over gRPC")
        with _serving(demo, db) as address:
            try:
                asyncio.run(_over_grpc(demo, address))
            except (errors.TurnwireError, subprocess.TimeoutExpired) as error:
                demo.claim(str(error), False)
        demo.step("The file is whole without the server")
        demo.run("--db", db, "verify", "--all")
    return demo.end()


async def _over_grpc(demo: Demo, address: str) -> None:
    async with Client.connect(address) as client, grpc.aio.insecure_channel(address) as channel:
        session = await anext(client.list_sessions())
        demo.step("Show it")
        await asyncio.to_thread(demo.run, "--server", address, "show", session.id)

        demo.step("Replay it, as bytes from the wire")
        before = await _replay(channel, session.id, session.head.revision)
        demo.say(f"{len(before):,} bytes, SHA-256 {sha256(before).hexdigest()}")
        demo.say(f"head: revision {session.head.revision}, digest {session.head.digest.hex()}")

        turn = await _last_turn_with_tool(client, session.id)
        mutations = [
            v1.Mutation(append_to=v1.AppendTo(role=v1.Role.ROLE_USER, parts=[prompt.text_part(NOTE, synthetic=True)])),
            v1.Mutation(append=v1.Append(message=prompt.user_message(prompt.text_part(SUMMARIZE, synthetic=True)))),
        ]
        demo.step("Mutate the prompt of a turn, as a dry run")
        demo.say(f'append_to  the last user message: "{NOTE}"')
        demo.say(f'append     a synthetic user message: "{SUMMARIZE}"')
        dry = await client.mutate_prompt(session.id, turn, mutations, dry_run=True)
        still = (await client.get_session(session.id)).head
        demo.claim("nothing moved: the head has its revision and its digest", still == session.head)
        demo.claim("the replay has the same bytes", await _replay(channel, session.id, still.revision) == before)

        demo.step("The same, recorded: the prompt, item by item with where each comes from")
        recorded = await client.mutate_prompt(session.id, turn, mutations)
        _show(demo, recorded)
        demo.claim("the prompt is that of the dry run", recorded.items == dry.items and recorded.digest == dry.digest)
        users = [item for item in recorded.items if item.message.role == v1.Role.ROLE_USER]
        demo.claim("the last stored user message has the note, in a part without an id", _adds(users[-2], NOTE))
        demo.claim("the last item is the synthetic message, by mutation 1", _made(recorded.items[-1], 1, SUMMARIZE))

        demo.step("What the mutations did to the history: nothing")
        head = (await client.get_session(session.id)).head
        after = await _replay(channel, session.id, session.head.revision)
        now = await _replay(channel, session.id, head.revision)
        demo.say(f"{len(after):,} bytes, SHA-256 {sha256(after).hexdigest()}")
        demo.say(f"head: revision {head.revision}, digest {head.digest.hex()}")
        demo.claim(f"the replay at revision {session.head.revision} has the same bytes as before", after == before)
        demo.claim("the replay at the head differs in its last frame only, the head", _body(now) == _body(before))
        demo.claim("the log is one entry longer, the prompt record", head.revision == session.head.revision + 1)
        demo.claim("so its digest moved", head.digest != session.head.digest)

        demo.step("Compute the recorded prompt again")
        again = await client.get_prompt(session.id, recorded.id)
        demo.claim(f"the digest of {recorded.id} holds: {again.digest.hex()}", again.digest_holds)
        demo.claim("the items are the same", again.items == recorded.items)

        demo.step("Verify the log")
        verified = await client.verify_session(session.id)
        demo.claim(f"sound: {plural(verified.entries, 'entry')}, every digest computed again", verified.sound)


def _show(demo: Demo, found: Prompt) -> None:
    for number, item in enumerate(found.items, 1):
        lines = render.item_lines(number, item, Detail(ids=True))
        demo.out.lines(line._replace(indent=line.indent + 3) for line in lines)
    end = v1.PromptEnd(record=found.record, items=len(found.items), head=found.head)
    lines = render.prompt_lines(end, dry_run=False, recomputed=False)
    demo.out.lines(line._replace(indent=line.indent + 3) for line in lines)


def _adds(item: v1.PromptItem, text: str) -> bool:
    """Whether a stored message ends with a part that a mutation added."""
    part = item.message.parts[-1]
    return bool(item.message_id) and part == prompt.text_part(text, synthetic=True)


def _made(item: v1.PromptItem, index: int, text: str) -> bool:
    """Whether a mutation made a user message of one text."""
    message = prompt.user_message(prompt.text_part(text, synthetic=True))
    return item == v1.PromptItem(message=message, mutation=v1.MutationOrigin(index=index))


async def _last_turn_with_tool(client: Client, session_id: str) -> str:
    """The last turn in which a tool ran: the mutation asks to summarize its output."""
    messages = (await client.history(session_id)).messages
    return next(
        message.turn_id for message in reversed(messages) if any(part.HasField("tool") for part in message.parts)
    )


async def _replay(channel: grpc.aio.Channel, session_id: str, revision: int) -> bytes:
    """The responses of a replay exactly as they came, one after the other."""
    request = v1.ReplayRequest(session_id=session_id, revision=revision)
    call: grpc.aio.UnaryStreamMultiCallable[v1.ReplayRequest, bytes] = channel.unary_stream(
        METHODS["Replay"].path,
        request_serializer=v1.ReplayRequest.SerializeToString,
        response_deserializer=bytes,
    )
    return b"".join([response async for response in call(request)])


def _body(replay: bytes) -> bytes:
    """A replay without its head. Messages one after the other are the message of all their fields."""
    frames = v1.ReplayResponse.FromString(replay).frames
    kept = [frame for frame in frames if not frame.HasField("head")]
    return v1.ReplayResponse(frames=kept).SerializeToString(deterministic=True)


@contextmanager
def _serving(demo: Demo, db: str) -> Generator[str]:
    """A server process; ends it with SIGTERM. Gives its address."""
    arguments = ("--db", db, "serve", "--port", "0", "--log-format", "none")
    demo.say(f"$ {shlex.join(['turnwire', *arguments])}")
    server = subprocess.Popen(_turnwire(*arguments), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline().strip()
        demo.claim(line or "it listens", line.startswith("listening on "))
        if line:
            yield line.removeprefix("listening on ")
        demo.step("Stop the server with SIGTERM")
        server.terminate()
        code = server.wait(_SECONDS)
        demo.claim(f"it drained and ended with exit code {code}", code == 0)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def _turnwire(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "turnwire", *arguments]


def _checkout() -> Path:
    return Path(__file__).resolve().parents[3]


if __name__ == "__main__":
    sys.exit(main())
