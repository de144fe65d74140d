"""The server itself: where it listens, health, reflection, what a call that fails answers, what is logged."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import turnwire
from tests.client.flow import text, turn, user
from turnwire import errors, status, v1
from turnwire.client import service_config
from turnwire.engine import Engine, Limits
from turnwire.engine.core import Caller
from turnwire.methods import METHODS, SERVICE
from turnwire.server import ADDRESS, Options, Server, to_stream
from turnwire.store.memory import MemoryStore


class TestAddress:
    def test_only_this_machine_by_default(self) -> None:
        assert Options().address == ADDRESS == "127.0.0.1:7411"

    async def test_a_port_that_is_taken(self, server: Server, engine: Engine) -> None:
        second = Server(engine, Options(address=server.address))
        with pytest.raises(OSError, match="cannot listen on 127"):
            await second.start()

    async def test_an_address_that_is_none(self, engine: Engine) -> None:
        with pytest.raises(OSError, match="cannot listen"):
            await Server(engine, Options(address="127.0.0.1:what")).start()

    async def test_a_unix_socket_is_for_its_owner(self, tmp_path: Path) -> None:
        path = tmp_path / "s"
        async with Server(Engine(MemoryStore()), Options(address=f"unix:{path}")) as server:
            assert server.address == f"unix:{path}"
            assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0
            second = Server(Engine(MemoryStore()), Options(address=f"unix:{path}"))
            with pytest.raises(OSError, match="another program listens"):
                await second.start()
            async with turnwire.Client.connect(server.address) as tw:
                assert (await tw.server_info()).version == turnwire.__version__
        assert not path.exists()

    async def test_a_socket_that_was_left_behind_is_replaced_and_a_file_is_not(self, tmp_path: Path) -> None:
        path = tmp_path / "s"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        async with (
            Server(Engine(MemoryStore()), Options(address=f"unix://{path}")) as server,
            turnwire.Client.connect(server.address) as tw,
        ):
            await tw.server_info()
        path.write_text("mine")
        with pytest.raises(OSError, match="is no socket"):
            await Server(Engine(MemoryStore()), Options(address=f"unix:{path}")).start()
        assert path.read_text() == "mine"


async def test_health(channel: grpc.aio.Channel) -> None:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    for service in ("", SERVICE):
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_reflection(channel: grpc.aio.Channel) -> None:
    """What ``grpcurl list`` and ``grpcurl describe`` ask for."""
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(cast(Any, channel))

    async def ask(**what: Any) -> Any:
        async def requests() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
            yield reflection_pb2.ServerReflectionRequest(**what)

        (answer,) = [answer async for answer in stub.ServerReflectionInfo(requests())]
        return answer

    listed = await ask(list_services="")
    names = {each.name for each in listed.list_services_response.service}
    assert {SERVICE, "grpc.health.v1.Health"} <= names
    found = await ask(file_containing_symbol=SERVICE)
    (raw,) = found.file_descriptor_response.file_descriptor_proto[:1]
    file = FileDescriptorProto.FromString(raw)
    assert file.name == "turnwire/v1/session_service.proto"
    assert {method.name for method in file.service[0].method} == METHODS.keys()
    seen = {file.name}
    wanted = list(file.dependency)
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        answer = await ask(file_by_filename=name)
        for raw in answer.file_descriptor_response.file_descriptor_proto:
            wanted += FileDescriptorProto.FromString(raw).dependency
        assert answer.file_descriptor_response.file_descriptor_proto, name


@pytest.mark.parametrize("name", sorted(METHODS))
async def test_what_is_no_message_is_refused_and_the_server_lives(
    name: str, channel: grpc.aio.Channel, client: turnwire.Client
) -> None:
    method = METHODS[name]
    kind = f"{'stream' if method.requests_stream else 'unary'}_{'stream' if method.responses_stream else 'unary'}"
    call = getattr(channel, kind)(method.path)
    bad = b"\x0a\xff\xff\xff\xff\xff"

    async def requests() -> AsyncIterator[bytes]:
        yield bad

    if name == "AppendStream":
        (raw,) = [raw async for raw in call(requests())]
        (outcome,) = v1.AppendStreamResponse.FromString(raw).outcomes
        refusal = outcome.refusal
        assert refusal.code == 3
        error = status.from_status(Status.FromString(refusal.status))
    else:

        async def run() -> None:
            if method.responses_stream:
                [raw async for raw in call(requests() if method.requests_stream else bad)]
            else:
                await call(bad)

        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await run()
        error = status.from_rpc(failed.value)
    assert isinstance(error, errors.RuleViolation)
    assert error.violations[0].rule == "turnwire.wire_format"
    assert (await client.server_info()).version == turnwire.__version__


async def test_a_method_that_is_not_there(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await cast(Any, channel).unary_unary(f"/{SERVICE}/Nothing")(b"")
    assert type(status.from_rpc(failed.value)) is errors.Unimplemented


class TestFaults:
    """What was not foreseen: the caller gets a number, the log gets type and place, and neither gets content."""

    async def test_unary(
        self, engine: Engine, client: turnwire.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def broken(caller: Caller, request: v1.GetSessionRequest) -> v1.GetSessionResponse:
            raise ZeroDivisionError("SECRET words of a message")

        monkeypatch.setattr(engine.store, "session", broken)
        with pytest.raises(errors.InternalError) as failed:
            await client.get_session("ses_1")
        number = failed.value.metadata["incident"]
        assert len(number) == 8
        assert "SECRET" not in str(failed.value)
        assert f"incident={number}" in caplog.text
        assert "ZeroDivisionError" in caplog.text
        assert "in broken" in caplog.text
        assert "SECRET" not in caplog.text.replace('"SECRET words of a message"', "")

    async def test_in_the_middle_of_a_stream(
        self, engine: Engine, client: turnwire.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await client.append("ses_1", [turn(), user("msg_1", "a")], create=True)

        async def broken(*_: Any) -> Any:
            raise ZeroDivisionError

        monkeypatch.setattr(engine.store, "read", broken)
        with pytest.raises(errors.InternalError):
            await client.history("ses_1")

    async def test_on_an_append_stream_the_others_go_on(
        self, engine: Engine, client: turnwire.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = engine.store.write

        async def sometimes(tenant: str, session_id: str, step: Any) -> Any:
            if session_id == "ses_bad":
                raise ZeroDivisionError
            return await write(tenant, session_id, step)

        monkeypatch.setattr(engine.store, "write", sometimes)
        ids = ["ses_1", "ses_bad", "ses_2"]
        outcomes = [
            each
            async for each in client.append_stream(turnwire.append_request(id, [turn()], create=True) for id in ids)
        ]
        assert [type(each) for each in outcomes] == [v1.AppendResponse, errors.InternalError, v1.AppendResponse]


class TestSizes:
    """C69: gRPC's own 4 MiB are no limit here; the server's limits are, and say so clearly."""

    async def test_a_message_just_over_grpcs_default(self, client: turnwire.Client) -> None:
        parts = [text("x" * 2_097_200), text("y" * 2_096_900)]
        message = v1.User(id="msg_1", turn_id="trn_1", parts=parts)
        parts[0].text.text += "z" * (4_194_305 - message.ByteSize())
        message = v1.User(id="msg_1", turn_id="trn_1", parts=parts)
        assert message.ByteSize() == 4_194_305
        await client.append("ses_1", [turn(), message], create=True)
        back = (await client.get_message("ses_1", "msg_1")).message
        assert [part.text.text for part in back.parts] == [part.text.text for part in parts]

    async def test_over_the_part_limit(self, client: turnwire.Client) -> None:
        with pytest.raises(errors.PartTooLarge) as large:
            await client.append("ses_1", [turn(), user("msg_1", "a", "x" * (3 << 20))], create=True)
        assert large.value.path == "entries[1].user.user.parts[1]"
        assert isinstance(large.value.detail, v1.SizeLimit)
        assert large.value.detail.limit == 3 << 20

    async def test_over_the_request_limit(self, client: turnwire.Client) -> None:
        with pytest.raises(errors.RequestTooLarge) as large:
            await client.append("ses_1", [turn(), user("msg_1", "a", "x" * (17 << 20))], create=True)
        assert large.value.path == "entries[1].user.user.parts[1]"
        assert isinstance(large.value.detail, v1.SizeLimit)
        assert large.value.detail.limit == 16 << 20
        assert large.value.detail.size > 17 << 20

    async def test_the_limits_are_the_engines(self) -> None:
        engine = Engine(MemoryStore(), limits=Limits(part_bytes=1000, request_bytes=5000, append_entries=3))
        async with (
            Server(engine, Options(address="127.0.0.1:0")) as server,
            turnwire.Client.connect(server.address) as client,
        ):
            limits = (await client.server_info()).limits
            assert (limits.part_bytes, limits.request_bytes, limits.append_entries) == (1000, 5000, 3)
            assert limits.frame_bytes == 1_000_000
            with pytest.raises(errors.RequestTooLarge):
                await client.append("ses_1", [user("msg_1", "x" * 6000)])
            with pytest.raises(errors.PartTooLarge):
                await client.append("ses_1", [turn(), user("msg_1", "x" * 2000)], create=True)

    async def test_any_client_is_told_the_reason(self, channel: grpc.aio.Channel) -> None:
        """The handlers refuse it, since gRPC would send a bare status; on a call and on one that streams."""
        for name, request in (
            ("Append", turnwire.append_request("ses_1", [user("msg_1", "x" * (17 << 20))])),
            ("MutatePrompt", v1.MutatePromptRequest(session_id="ses_1", profile="x" * (17 << 20))),
        ):
            method = METHODS[name]
            kind = channel.unary_stream if method.responses_stream else channel.unary_unary
            call: Any = kind(method.path, request_serializer=_bytes)(request)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await (call.read() if method.responses_stream else call)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            error = status.from_rpc(caught.value)
            assert type(error) is errors.RequestTooLarge
            assert error.detail == v1.SizeLimit(size=request.ByteSize(), limit=16 << 20, unit="bytes")
            assert (error.reason_name, error.path) == ("REQUEST_TOO_LARGE", "")

    async def test_at_the_limit_and_a_byte_over_it(self) -> None:
        engine = Engine(MemoryStore(), limits=Limits(part_bytes=4000, request_bytes=5000))
        async with (
            Server(engine, Options(address="127.0.0.1:0")) as server,
            turnwire.Client.connect(server.address) as client,
        ):
            await client.append("ses_1", [turn()], create=True)
            request = turnwire.append_request("ses_1", [user("msg_1", "x" * 3000, "y" * 1000)], request_id="r-1")
            request.entries[0].user.user.parts[1].text.text += "y" * (5000 - request.ByteSize())
            assert request.ByteSize() == 5000
            await client.append("ses_1", request.entries, request_id="r-1")
            request.entries[0].user.user.parts[1].text.text += "y"
            with pytest.raises(errors.RequestTooLarge) as large:
                await client.append("ses_1", request.entries, request_id="r-1")
            assert large.value.detail == v1.SizeLimit(size=5001, limit=5000, unit="bytes")

    async def test_far_over_the_limit_grpc_refuses(self, client: turnwire.Client) -> None:
        with pytest.raises(errors.RequestTooLarge) as large:
            await client.append("ses_1", [user("msg_1", "x" * (33 << 20))], create=True)
        assert large.value.path == "entries[0].user.user.parts[0]"

    async def test_a_request_over_the_limit_does_not_end_an_append_stream(self, client: turnwire.Client) -> None:
        await client.append("ses_1", [turn()], create=True)
        requests = [
            turnwire.append_request("ses_1", [user("msg_1", "a")]),
            turnwire.append_request("ses_1", [user("msg_2", "x" * (17 << 20))]),
            turnwire.append_request("ses_1", [user("msg_3", "b")]),
        ]
        first, large, last = [outcome async for outcome in client.append_stream(requests)]
        assert isinstance(first, v1.AppendResponse)
        assert isinstance(large, errors.RequestTooLarge)
        assert isinstance(large.detail, v1.SizeLimit)
        assert large.detail.limit == 16 << 20
        assert isinstance(last, v1.AppendResponse)
        assert last.head.revision == 4

    async def test_embedded_stores_have_a_limit_too(self) -> None:
        limits = Limits(part_bytes=1000, request_bytes=5000)
        async with turnwire.open(":memory:", limits=limits) as tw:
            with pytest.raises(errors.RequestTooLarge) as large:
                await tw.append("ses_1", [user("msg_1", "a", "x" * 6000)])
            assert large.value.path == "entries[0].user.user.parts[1]"


class TestRequestLog:
    async def test_one_line_a_call_without_content(
        self, client: turnwire.Client, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "turnwire.server")
        await client.append("ses_1", [turn(), user("msg_1", "SECRET")], create=True)
        with pytest.raises(errors.SessionNotFound):
            await client.get_session("ses_none")
        with pytest.raises(errors.RuleViolation):
            await client.get_session("no id\nmethod=Fake")
        await client.history("ses_1")
        await asyncio.sleep(0.05)
        lines = [record.message for record in caplog.records if record.name == "turnwire.server.requests"]
        assert len(lines) == 4
        first = dict(pair.split("=", 1) for pair in lines[0].split())
        assert (first["method"], first["session_id"], first["status"]) == ("Append", "ses_1", "OK")
        assert float(first["milliseconds"]) > 0
        assert int(first["bytes_in"]) > 50
        assert int(first["bytes_out"]) > 50
        assert "status=NOT_FOUND reason=SESSION_NOT_FOUND" in lines[1]
        assert "session_id=- status=INVALID_ARGUMENT reason=RULE_VIOLATION" in lines[2]
        assert "method=Replay session_id=ses_1 status=OK" in lines[3]
        assert "SECRET" not in caplog.text
        assert "Fake" not in caplog.text

    async def test_as_json(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        with path.open("w") as stream:
            handler = to_stream(stream, form="json")
            try:
                options = Options(address="127.0.0.1:0", log_format="json")
                async with (
                    Server(Engine(MemoryStore()), options) as server,
                    turnwire.Client.connect(server.address) as client,
                ):
                    await client.create_session("ses_1")
                    logging.getLogger("turnwire.server").warning("other")
            finally:
                logging.getLogger("turnwire.server").removeHandler(handler)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines[0]["method"] == "CreateSession"
        assert lines[0]["session_id"] == "ses_1"
        assert lines[0]["requests"] == 1
        assert lines[0]["level"] == "INFO"
        assert lines[1]["message"] == "other"


def test_the_service_config_names_what_may_be_tried_again() -> None:
    (config,) = json.loads(service_config())["methodConfig"]
    named = {each["method"] for each in config["name"]}
    assert named == METHODS.keys() - {"AppendStream", "DeleteSession"}
    assert {each["service"] for each in config["name"]} == {SERVICE}
    assert config["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE", "CANCELLED"]


def _bytes(request: Message) -> bytes:
    return request.SerializeToString()
