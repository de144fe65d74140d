"""Sessions as wholes: create, get, list, update, delete, fork."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from turnwire import errors, ids, v1
from turnwire.engine import pages
from turnwire.engine.appends import blank
from turnwire.engine.core import Caller, Core, Once, check, check_head, head_of, living, revision_of
from turnwire.log import prepare
from turnwire.log.draft import Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import Change, EntryRow, Request, SessionQuery, SessionRow, View

_PAGE = 100
_FROZEN = {"forked_from"}


class Sessions(Core):
    """The methods that make, show, change and end sessions."""

    async def create_session(
        self, caller: Caller, request: v1.CreateSessionRequest, wire: bytes | None = None
    ) -> v1.CreateSessionResponse:
        """Create a session. Raises ``SessionAlreadyExists``, ``SessionDeleted``, ``RuleViolation``."""
        once = Once("CreateSession", request, wire)
        if once.id and not request.session_id:
            text = "a request id needs a session id, since it is scoped to the session"
            raise errors.RuleViolation([errors.Violation("request_id", "turnwire.request_id", text)])
        session_id = request.session_id or ids.new(ids.SESSION)
        now_us = self.now_us()
        properties = request.properties
        opening: Prepared | None = None
        failure: errors.TurnwireError | None = None
        try:
            check(request, "properties")
            opening = prepare.properties(properties, "properties", now_us)
        except errors.TurnwireError as error:
            failure = error  # a reply that was given before comes first

        def step(view: View) -> tuple[Change | None, v1.CreateSessionResponse]:
            session = living(view, session_id)
            reply = once.replay(view, v1.CreateSessionResponse.FromString)
            if reply is not None:
                return None, reply
            if opening is None:
                assert failure is not None
                raise failure
            if session is not None:
                raise errors.SessionAlreadyExists("the session exists", path="session_id", session_id=session_id)
            draft = Draft(view, blank(caller.tenant, session_id, now_us), now_us)
            draft.set_properties(properties, draft.record(opening.field, opening.payload))
            response = v1.CreateSessionResponse(session=_shown(draft.session, properties, properties))
            return draft.change(once.keep(response)), response

        return await self.store.write(caller.tenant, session_id, step)

    async def get_session(self, caller: Caller, request: v1.GetSessionRequest) -> v1.GetSessionResponse:
        """A session without its messages. Raises ``SessionNotFound``, ``SessionDeleted``."""
        check(request)
        session = await self.store.session(caller.tenant, request.session_id)
        return v1.GetSessionResponse(session=await self._show(session))

    async def list_sessions(self, caller: Caller, request: v1.ListSessionsRequest) -> v1.ListSessionsResponse:
        """A page of sessions. Raises ``UnknownFilter``, ``InvalidPageToken``, ``RuleViolation``."""
        _refuse_unknown_filters(request)
        check(request)
        limit = request.page_size or _PAGE
        after = pages.place(request.page_token, request.filter, caller.tenant) if request.page_token else None
        rows = await self.store.sessions(caller.tenant, _query(request.filter), limit + 1, after)
        shown = await self._listed(rows[:limit])
        token = ""
        if len(rows) > limit:
            token = pages.token(request.filter, caller.tenant, rows[limit - 1].recorded_us, rows[limit - 1].id)
        return v1.ListSessionsResponse(sessions=shown, next_page_token=token)

    async def update_session(
        self, caller: Caller, request: v1.UpdateSessionRequest, wire: bytes | None = None
    ) -> v1.UpdateSessionResponse:
        """Change properties by a mask. Raises ``InvalidFieldMask``, ``RevisionConflict`` and what append raises."""
        once = Once("UpdateSession", request, wire)
        now_us = self.now_us()

        def step(view: View) -> tuple[Change | None, v1.UpdateSessionResponse]:
            session = living(view, request.session_id)
            reply = once.replay(view, v1.UpdateSessionResponse.FromString)
            if reply is not None:
                return None, reply
            check(request, "properties")
            paths = _mask(request)
            if session is None:
                raise errors.SessionNotFound("there is no such session", session_id=request.session_id)
            if request.HasField("expected_revision"):
                check_head(session.head, request.expected_revision)
            properties = v1.SessionProperties.FromString(view.entry(session.properties).payload)
            first = v1.SessionProperties.FromString(view.entry(1).payload)
            properties.ClearField("forked_from")
            _merge(properties, request.properties, paths)
            moment = max(now_us, session.recorded_us)
            entry = prepare.properties(properties, "properties", moment)
            draft = Draft(view, session, moment)
            draft.set_properties(properties, draft.record(entry.field, entry.payload))
            response = v1.UpdateSessionResponse(session=_shown(draft.session, properties, first))
            return draft.change(once.keep(response)), response

        return await self.store.write(caller.tenant, request.session_id, step)

    async def delete_session(self, caller: Caller, request: v1.DeleteSessionRequest) -> v1.DeleteSessionResponse:
        """Delete a session for good. Raises ``SessionNotFound``, ``SessionDeleted``."""
        check(request)
        deleted = await self.store.delete(caller.tenant, request.session_id, children=request.include_children)
        return v1.DeleteSessionResponse(session_ids=deleted)

    async def fork_session(
        self, caller: Caller, request: v1.ForkSessionRequest, wire: bytes | None = None
    ) -> v1.ForkSessionResponse:
        """Copy a session up to a revision. Raises ``RevisionOutOfRange``, ``SessionAlreadyExists`` and so on."""
        once = Once("ForkSession", request, wire)
        if not once.id or not ids.valid(request.session_id):
            check(request)
        source = await self.store.session(caller.tenant, request.session_id)
        if once.id:
            kept = await self.store.reply(caller.tenant, source.id, once.method, once.id)
            reply = once.matched(kept, v1.ForkSessionResponse.FromString)
            if reply is not None:
                return reply
        check(request)
        revision = revision_of(source, request.revision if request.HasField("revision") else None)
        (row,) = await self.store.entries(source, revision, revision, 1)
        origin = v1.ForkOrigin(session_id=source.id, revision=revision, digest=row.digest)
        title = request.title if request.HasField("title") else None
        # A retry after a lost reply must find the first fork, so that its id is fixed by the request id.
        session_id = request.new_session_id or (_fork_id(source.id, once.id) if once.id else ids.new(ids.SESSION))

        def finish(child: SessionRow, in_force: bytes, revert: bytes) -> Request | None:
            first = v1.SessionProperties(forked_from=origin)
            shown = _shown(child, v1.SessionProperties.FromString(in_force), first)
            _show_revert(shown, child, revert)
            return once.keep(v1.ForkSessionResponse(session=shown))

        try:
            child = await self.store.fork(
                source, revision, session_id, lambda entry: _adapted(entry, origin, title), finish
            )
        except errors.SessionAlreadyExists:
            # The same request came twice at once, and the other was first.
            kept = await self.store.reply(caller.tenant, source.id, once.method, once.id) if once.id else None
            reply = once.matched(kept, v1.ForkSessionResponse.FromString)
            if reply is None:
                raise
            return reply
        return v1.ForkSessionResponse(session=await self._show(child))

    async def _show(self, session: SessionRow) -> v1.Session:
        shown = await self._show_all([session])
        if not shown:
            raise errors.SessionDeleted("the session was deleted", session_id=session.id)
        return shown[0]

    async def _listed(self, sessions: Sequence[SessionRow]) -> list[v1.Session]:
        """The sessions as a list shows them: one whose properties are damaged with empty ones."""
        try:
            return await self._show_all(sessions)
        except errors.CorruptData:
            if len(sessions) > 1:
                return [shown for session in sessions for shown in await self._listed([session])]
            return [_shown(sessions[0], v1.SessionProperties(), v1.SessionProperties())]

    async def _show_all(self, sessions: Sequence[SessionRow]) -> list[v1.Session]:
        payloads = await self.store.properties(sessions)
        shown: list[v1.Session] = []
        for session, found in zip(sessions, payloads, strict=True):
            if found is None:
                continue
            properties, first = (_properties(session, payload) for payload in found)
            message = _shown(session, properties, first)
            if session.revert:
                entry = await self.store.entry(session, session.revert)
                _show_revert(message, session, entry.payload)
            shown.append(message)
        return shown


def _properties(session: SessionRow, payload: bytes) -> v1.SessionProperties:
    try:
        return v1.SessionProperties.FromString(payload)
    except DecodeError:
        raise errors.CorruptData("the properties of the session are damaged", session_id=session.id) from None


def _shown(session: SessionRow, properties: v1.SessionProperties, first: v1.SessionProperties) -> v1.Session:
    """A session as the service shows it, without its revert. ``first`` are the properties of revision 1."""
    message = v1.Session(id=session.id, properties=properties, head=head_of(session))
    message.recorded.FromMicroseconds(session.first_us)
    if first.HasField("forked_from"):
        message.forked_from.CopyFrom(first.forked_from)
    return message


def _adapted(entry: EntryRow, origin: v1.ForkOrigin, title: str | None) -> bytes:
    """An entry with properties as a fork has it: the first names the parent, all bear the fork's own title."""
    if entry.revision > 1 and title is None:
        return entry.payload
    properties = v1.SessionProperties.FromString(entry.payload)
    if entry.revision == 1:
        properties.forked_from.CopyFrom(origin)
    if title is not None:
        properties.title = title
    return properties.SerializeToString(deterministic=True)


def _show_revert(message: v1.Session, session: SessionRow, payload: bytes) -> None:
    if session.revert:
        message.revert.revision = session.revert
        message.revert.revert.ParseFromString(payload)


def _fork_id(source: str, request_id: str) -> str:
    return ids.SESSION + sha256(f"{source}\0{request_id}".encode()).hexdigest()[:24]


def _mask(request: v1.UpdateSessionRequest) -> list[str]:
    known = v1.SessionProperties.DESCRIPTOR.fields_by_name
    paths = list(dict.fromkeys(request.update_mask.paths))
    if not paths:
        raise errors.InvalidFieldMask("the mask names no field", path="update_mask")
    for path in paths:
        if path not in known or path in _FROZEN:
            name = path if ids.valid(path) else "?"
            raise errors.InvalidFieldMask("no field that can be updated", path=f"update_mask.{name}")
    return paths


def _merge(properties: v1.SessionProperties, new: v1.SessionProperties, paths: list[str]) -> None:
    """Set the named fields to their new values, whole; unset ones are cleared."""
    for path in paths:
        properties.ClearField(path)  # type: ignore[arg-type]  # checked by _mask
    for field, value in new.ListFields():
        if field.name not in paths:
            continue
        if field.message_type is not None:  # a map is one too
            getattr(properties, field.name).MergeFrom(value)
        else:
            setattr(properties, field.name, value)


def _refuse_unknown_filters(request: v1.ListSessionsRequest) -> None:
    for message, path in ((request, ""), (request.filter, "filter.")):
        unknown = UnknownFieldSet(message)
        if len(unknown):
            number = unknown[0].field_number
            raise errors.UnknownFilter("no filter that this server knows", path=f"{path}{number}")


def _query(wanted: v1.SessionFilter) -> SessionQuery:
    return SessionQuery(
        labels=tuple(sorted(wanted.labels.items())),
        directory=wanted.directory if wanted.HasField("directory") else None,
        recorded_from_us=_us(wanted.recorded_from) if wanted.HasField("recorded_from") else None,
        recorded_before_us=_us(wanted.recorded_before) if wanted.HasField("recorded_before") else None,
        parent=wanted.parent_session_id if wanted.HasField("parent_session_id") else None,
        archived=wanted.archived if wanted.HasField("archived") else None,
    )


def _us(time: Timestamp) -> int:
    # Rounded up: recorded times are whole microseconds, and a bound between two of them falls to the later.
    return time.seconds * 1_000_000 + -(-time.nanos // 1000)
