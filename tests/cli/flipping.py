"""A small store, one bit of which is flipped: what the command says of it, and what a reader still gets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import turnwire
from tests.builders import assistant, clear, delta, made, put, revert, text, tool, turn, user
from tests.cli.support import Ran, run
from turnwire import errors, ids

ID, FORK = "ses_flipped", "ses_fork"
_DIR = "/dir"


async def make(path: Path) -> None:
    """Make a store that has a row in every table."""
    async with turnwire.open(path) as tw:
        await tw.create_session("ses_gone")
        await tw.delete_session("ses_gone")
        await tw.create_session(ID, title="t", directory=_DIR, labels={"k": "v"})
        await tw.append(ID, [turn(), user("u", text("p", "hello"))], request_id="first")
        await tw.append(ID, [assistant("a", tool("c")), put("a", tool("c"))])
        for at in range(9):
            await tw.append(ID, [user(made(ids.MESSAGE, at), text(made(ids.PART, at)))])
        await tw.append(ID, [user("m", text("q", "text")), delta("q", 4, " more")])
        await tw.append(ID, [revert("m"), clear(), revert("m")], request_id="once")
        await tw.fork_session(ID, 8, new_session_id=FORK)


def flip(data: bytes, bit: int) -> bytes:
    """The bytes with one bit flipped."""
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def bits(data: bytes) -> list[int]:
    """The bits that mean something: those of bytes that are not zero, or beside one that is not."""
    held = [bool(byte) for byte in data]
    near = (at for at in range(len(data)) if any(held[max(at - 1, 0) : at + 2]))
    return [at * 8 + bit for at in near for bit in range(8)]


async def seen(path: Path) -> object:
    """What readers get of the sessions, their logs and how they are found."""
    async with turnwire.open(path, read_only=True) as tw:
        found: list[object] = []
        for filters in ({}, {"labels": {"k": "v"}}, {"directory": _DIR}):
            found.append([each.SerializeToString() async for each in tw.list_sessions(**filters)])
        for id in (ID, FORK):
            found.append([each async for each in tw.replay(id)])
            entries = [each async for each in tw.read_entries(id)]
            for each in entries:  # no digest holds for it, and of a known payload it changes nothing
                each.ClearField("ignorable")
            found.append([each.SerializeToString() for each in entries])
        return found


def wrong(path: Path, right: object) -> str:
    """What is wrong with what the command says of a store of which a bit was flipped; "" for nothing."""
    ran: Ran = run("--json", "validate", path)
    if ran.code not in (0, 1, 2) or "fault of the program" in ran.err or "Traceback" in ran.err:
        return f"exit code {ran.code}: {ran.err}"
    if ran.code:
        return ""
    try:
        return "" if asyncio.run(seen(path)) == right else "called sound, though readers get something else"
    except errors.TurnwireError as error:
        return f"called sound, though readers get {error!r}"
