"""Scripts of calls against a real server over a file, and what a server and its file can suffer."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf import json_format

from turnwire import errors, status, v1
from turnwire.calls.transport import read
from turnwire.conformance import v1 as conformance
from turnwire.engine import Caller, Engine, Limits
from turnwire.log import digest, wire
from turnwire.methods import METHODS, Method
from turnwire.server import Options, Server
from turnwire.store.sqlite import SqliteStore

#: What ServiceRequest says of the service.
LIMITS = Limits(part_bytes=65_536, request_bytes=262_144)

_LATER_FIELD = 299
_HOLD = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('BEGIN IMMEDIATE'); print(); input()"
_LAST = "WHERE pos = (SELECT max(pos) FROM entry WHERE pos >> 32 = 1)"
_LOSE = f"DELETE FROM entry {_LAST}"
_GARBLE = f"UPDATE entry SET payload = CAST(replace(hex(zeroblob(length(payload))), '00', x'ff') AS BLOB) {_LAST}"
# A retry would hide the refusal that the script is about.
_CHANNEL = (("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


async def run(request: conformance.ServiceRequest) -> conformance.ServiceResponse:
    """Take the steps, and return what became of the calls."""
    response = conformance.ServiceResponse()
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Path(folder))
        try:
            await bench.open()
            for step in request.steps:
                if step.WhichOneof("step") == "condition":
                    await bench.bring_about(step.condition)
                else:
                    response.results.append(await bench.call(step.call, response.results))
        finally:
            await bench.end()
    return response


def _filled(method: Method, call: conformance.Call, before: Sequence[conformance.CallResult]) -> bytes:
    """The request with what it takes from replies to earlier calls."""
    request: Any = method.request.FromString(call.request)
    for taken in call.taken:
        value = json.loads(before[taken.call].reply_json)
        for member in taken.member.split("."):
            value = value[int(member)] if isinstance(value, list) else value[member]
        setattr(request, taken.field, value)
    return request.SerializeToString()


def _damage(db: sqlite3.Connection) -> None:
    for pos, payload in db.execute("SELECT pos, payload FROM entry WHERE pos >> 32 = 1").fetchall():
        db.execute("UPDATE entry SET payload = ? WHERE pos = ?", (payload.replace(b"hello", b"jello"), pos))


class _Faulty(Engine):
    """An engine with a fault in the method that most calls use first."""

    async def get_session(self, caller: Caller, request: v1.GetSessionRequest) -> v1.GetSessionResponse:
        raise ZeroDivisionError


class _Bench:
    """A server over a file, and a channel to it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "sessions.db"
        self._address = f"unix:{folder / 's'}"
        self._engine: Engine | None = None
        self._server: Server | None = None
        self._channel: grpc.aio.Channel | None = None
        self._refused: errors.TurnwireError | None = None
        self._undo: list[Callable[[], object]] = []

    async def open(self, make: type[Engine] = Engine, *, read_only: bool = False) -> None:
        """Serve the file. What opening it raises becomes the answer to every call."""
        try:
            store = SqliteStore.open(self._path, busy_timeout=0.1, read_only=read_only)
        except errors.TurnwireError as error:
            self._refused = error
            return
        self._engine = make(store, limits=LIMITS)
        self._server = Server(self._engine, Options(address=self._address, grace=0))
        await self._server.start()
        self._channel = grpc.aio.insecure_channel(self._server.address, options=_CHANNEL)

    async def close(self) -> None:
        """Stop serving; the file stays."""
        if self._channel is not None and self._server is not None:
            await self._channel.close()
            await self._server.drain(0)
        self._channel = self._server = self._engine = None

    async def end(self) -> None:
        """Undo the conditions and stop."""
        for undo in self._undo:
            undo()
        await self.close()

    async def call(self, call: conformance.Call, before: Sequence[conformance.CallResult]) -> conformance.CallResult:
        """Make one call, by its bytes, as a client of any language would."""
        result = conformance.CallResult()
        method = METHODS[call.method]
        first = _filled(method, call, before) if call.taken else call.request
        try:
            if self._refused is not None:
                raise self._refused
            if method.requests_stream:
                result.reply_json = json.dumps(await self._replies(method, [first, *call.more_requests]))
                return result
            reply = await self._reply(method, first)
        except grpc.aio.AioRpcError as error:
            refused = status.from_rpc(error)
        except errors.TurnwireError as error:
            refused = error
        else:
            result.reply_json = json_format.MessageToJson(reply, indent=None)
            return result
        if not refused.reason:
            raise refused
        result.refused.CopyFrom(conformance.Refusal(reason=refused.reason, path=refused.path))
        return result

    async def _replies(self, method: Method, requests: list[bytes]) -> list[Any]:
        """All replies to a stream of requests, as ProtoJSON; of AppendStream the outcomes in them."""
        assert self._channel is not None
        call: Any = self._channel.stream_stream(method.path)(requests)
        found: list[Any] = []
        async for data in call:
            reply = read(method.response, data)
            found += reply.outcomes if isinstance(reply, v1.AppendStreamResponse) else (reply,)
        return [*map(json_format.MessageToDict, found)]

    async def _reply(self, method: Method, request: bytes) -> Any:
        assert self._channel is not None
        kind = "unary_stream" if method.responses_stream else "unary_unary"
        call = getattr(self._channel, kind)(method.path)(request)
        if not method.responses_stream:
            return read(method.response, await call)
        merged: Any = method.response()
        async for data in call:
            reply: Any = read(method.response, data)
            body = getattr(merged, "body", "") + getattr(reply, "body", "")
            merged.MergeFrom(reply)
            if body:
                merged.body = body
            if method.name == "Tail" and reply.HasField("caught_up"):
                call.cancel()
                break
        return merged

    async def bring_about(self, condition: conformance.Condition.ValueType) -> None:
        """Bring the server or its file into a condition."""
        match conformance.Condition.Name(condition).removeprefix("CONDITION_"):
            case "STORE_FULL":
                # A limit on the size of files stands for the full disk.
                limits = resource.getrlimit(resource.RLIMIT_FSIZE)
                written = self._path.with_name(f"{self._path.name}-wal").stat().st_size
                resource.setrlimit(resource.RLIMIT_FSIZE, (written, limits[1]))
                self._undo.append(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))
            case "STORE_BUSY":
                self._hold()
            case "STORE_READ_ONLY":
                await self.close()
                await self.open(read_only=True)
            case "STORE_FOREIGN":
                await self.close()
                self._path.write_text("a letter to a friend\n" * 1000)
                await self.open()
            case "STORE_TOO_NEW":
                await self._change(lambda db: db.execute("PRAGMA user_version = 1000000"))
            case "ENTRY_LOST":
                await self._change(lambda db: db.execute(_LOSE))
            case "ENTRY_CHANGED":
                await self._change(_damage)
            case "ENTRY_UNREADABLE":
                await self._change(lambda db: db.execute(_GARBLE))
            case "LATER_PAYLOAD":
                await self._later()
            case "SHUTTING_DOWN":
                assert self._engine is not None
                await self._engine.close()
            case "FAULT":
                await self.close()
                await self.open(_Faulty)
            case other:
                raise ValueError(f"no such condition: {other}")

    def _hold(self) -> None:
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLD, self._path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        holder.stdout.readline()
        self._undo.append(lambda: holder.communicate(b"\n"))

    async def _change(self, change: Callable[[sqlite3.Connection], object]) -> None:
        await self.close()
        db = sqlite3.connect(self._path, isolation_level=None)
        change(db)
        db.close()
        await self.open()

    async def _later(self) -> None:
        """Append an entry as a later build would: with a payload that this one does not know."""
        assert self._engine is not None
        (session,) = (await self._engine.list_sessions(Caller(), v1.ListSessionsRequest())).sessions
        head, payload = session.head, b"abc"
        recorded_us = head.recorded.ToMicroseconds()
        after = digest.link(head.digest, head.revision + 1, recorded_us, _LATER_FIELD, payload)
        entry = v1.Entry(revision=head.revision + 1, recorded=head.recorded, digest=after)
        await self._engine.restore(
            Caller(), session.id, [entry.SerializeToString() + wire.field(_LATER_FIELD, payload)]
        )
