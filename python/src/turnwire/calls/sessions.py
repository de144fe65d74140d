"""Sessions as wholes: create, show, list, change, delete, fork and verify them."""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Final

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from turnwire import ids, v1
from turnwire.calls.base import Base, timestamp
from turnwire.calls.given import built, valid


class Keep(enum.Enum):
    """Stands for "leave it as it is", where None means "take it away"."""

    KEEP = enum.auto()


KEEP: Final = Keep.KEEP


class SessionCalls(Base):
    """The methods about whole sessions.

    Beside the errors that a method names, every method raises `turnwire.errors.RuleViolation` for an argument that
    breaks a rule of the schema, `turnwire.errors.Unavailable` and `turnwire.errors.DeadlineExceeded` for a store or
    server that does not answer.
    """

    async def server_info(self) -> v1.GetServerInfoResponse:
        """The version, the limits and the features of the server, or of the engine in this process."""
        request = v1.GetServerInfoRequest()
        return await self._transport.unary("GetServerInfo", request, v1.GetServerInfoResponse, timeout=self._timeout)

    async def create_session(
        self,
        session_id: str = "",
        *,
        title: str | None = None,
        directory: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent: v1.ParentLink | None = None,
        properties: v1.SessionProperties | None = None,
        request_id: str | None = None,
    ) -> v1.Session:
        """Create a session; without an id it gets a new one (``ses_…``).

        ``properties`` is for all that has no keyword of its own; the keywords are set over it. Raises
        `SessionAlreadyExists` or, for an id that was used before, `SessionDeleted`.
        """
        request = built(
            v1.CreateSessionRequest,
            # A request id is scoped to its session, so that a retry needs the id before the server could choose it.
            session_id=session_id or ids.new(ids.SESSION),
            properties=_properties(properties, title, directory, labels, parent),
            request_id=self._request_id(request_id),
        )
        response = await self._transport.unary(
            "CreateSession", request, v1.CreateSessionResponse, timeout=self._timeout
        )
        return response.session

    async def get_session(self, session_id: str) -> v1.Session:
        """A session without its messages: properties, head, open revert. Raises `SessionNotFound`, `SessionDeleted`."""
        request = built(v1.GetSessionRequest, session_id=session_id)
        response = await self._transport.unary("GetSession", request, v1.GetSessionResponse, timeout=self._timeout)
        return response.session

    async def list_sessions(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        directory: str | None = None,
        recorded_from: datetime | Timestamp | None = None,
        recorded_before: datetime | Timestamp | None = None,
        parent_session_id: str | None = None,
        archived: bool | None = None,
        page_size: int = 100,
    ) -> AsyncGenerator[v1.Session, None]:
        """All sessions that fit every filter given, the last recorded first; pages are fetched as they are needed.

        A session that is written meanwhile can come twice or, if it was not reached yet, not at all.
        """
        token = ""
        while True:
            page = await self.list_sessions_page(
                labels=labels,
                directory=directory,
                recorded_from=recorded_from,
                recorded_before=recorded_before,
                parent_session_id=parent_session_id,
                archived=archived,
                page_size=page_size,
                page_token=token,
            )
            for session in page.sessions:
                yield session
            token = page.next_page_token
            if not token:
                return

    async def list_sessions_page(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        directory: str | None = None,
        recorded_from: datetime | Timestamp | None = None,
        recorded_before: datetime | Timestamp | None = None,
        parent_session_id: str | None = None,
        archived: bool | None = None,
        page_size: int = 0,
        page_token: str = "",
    ) -> v1.ListSessionsResponse:
        """One page of sessions (``page_size`` 0: 100), with the token of the next. Raises `InvalidPageToken`."""
        wanted = built(
            v1.SessionFilter,
            labels=labels,
            directory=directory,
            recorded_from=timestamp(recorded_from),
            recorded_before=timestamp(recorded_before),
            parent_session_id=parent_session_id,
            archived=archived,
        )
        request = built(v1.ListSessionsRequest, page_size=page_size, page_token=page_token, filter=wanted)
        return await self._transport.unary("ListSessions", request, v1.ListSessionsResponse, timeout=self._timeout)

    async def update_session(
        self,
        session_id: str,
        *,
        title: str | Keep | None = KEEP,
        directory: str | Keep | None = KEEP,
        labels: Mapping[str, str] | Keep = KEEP,
        archived: datetime | Timestamp | Keep | None = KEEP,
        properties: v1.SessionProperties | None = None,
        fields: Sequence[str] = (),
        expected_revision: int | None = None,
        request_id: str | None = None,
    ) -> v1.Session:
        """Change what is given and keep the rest; None takes a property away. ``labels`` replaces all labels.

        For what has no keyword of its own: ``properties`` with the names of the ``fields`` to take from it. Raises
        `InvalidFieldMask` when nothing is given, `RevisionConflict`, `SessionNotFound`, `SessionDeleted`.
        """
        given = built(
            v1.SessionProperties,
            title=None if isinstance(title, Keep) else title,
            directory=None if isinstance(directory, Keep) else directory,
            labels=None if isinstance(labels, Keep) else labels,
            archived=None if isinstance(archived, Keep) else timestamp(archived),
        )
        keywords = {"title": title, "directory": directory, "labels": labels, "archived": archived}
        names = [name for name, value in keywords.items() if not isinstance(value, Keep)]
        new = v1.SessionProperties()
        if properties is not None:
            new.CopyFrom(properties)
        for name in names:
            new.ClearField(name)  # type: ignore[arg-type]  # one of the four above
        new.MergeFrom(given)
        valid("update_mask", list(fields))
        names += [name for name in fields if name not in names]
        request = built(
            v1.UpdateSessionRequest,
            session_id=session_id,
            properties=new,
            update_mask=FieldMask(paths=names),
            expected_revision=expected_revision,
            request_id=self._request_id(request_id),
        )
        response = await self._transport.unary(
            "UpdateSession", request, v1.UpdateSessionResponse, timeout=self._timeout
        )
        return response.session

    async def delete_session(self, session_id: str, *, include_children: bool = False) -> list[str]:
        """Delete a session for good, on demand with those that it started. Returns the ids of all that were deleted.

        Raises `SessionNotFound`, `SessionDeleted`; the latter after a lost reply means that it went through.
        """
        request = built(v1.DeleteSessionRequest, session_id=session_id, include_children=include_children)
        response = await self._transport.unary(
            "DeleteSession", request, v1.DeleteSessionResponse, timeout=self._timeout
        )
        return list(response.session_ids)

    async def fork_session(
        self,
        session_id: str,
        revision: int | None = None,
        *,
        new_session_id: str = "",
        title: str | None = None,
        request_id: str | None = None,
    ) -> v1.Session:
        """Copy the entries 1 to ``revision`` (None: all) into a new session. Returns the fork.

        Raises `RevisionOutOfRange`, `SessionAlreadyExists`, `SessionNotFound`, `SessionDeleted`.
        """
        request = built(
            v1.ForkSessionRequest,
            session_id=session_id,
            revision=revision,
            new_session_id=new_session_id,
            title=title,
            request_id=self._request_id(request_id),
        )
        response = await self._transport.unary("ForkSession", request, v1.ForkSessionResponse, timeout=self._timeout)
        return response.session

    async def verify_session(self, session_id: str) -> v1.VerifySessionResponse:
        """Compute the digests of a session's log again. Damage is listed and not raised.

        Raises `SessionNotFound`, `SessionDeleted`.
        """
        request = built(v1.VerifySessionRequest, session_id=session_id)
        return await self._transport.unary("VerifySession", request, v1.VerifySessionResponse, timeout=self._timeout)


def _properties(
    properties: v1.SessionProperties | None,
    title: str | None,
    directory: str | None,
    labels: Mapping[str, str] | None,
    parent: v1.ParentLink | None,
) -> v1.SessionProperties:
    made = built(v1.SessionProperties, title=title, directory=directory, labels=labels, parent=parent)
    if properties is None:
        return made
    base = v1.SessionProperties()
    base.CopyFrom(properties)
    base.MergeFrom(made)
    return base
