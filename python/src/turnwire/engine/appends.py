"""Append: the only way in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn, TypeAlias

from google.protobuf.message import DecodeError

from turnwire import damage, errors, ids, v1
from turnwire.engine.core import Caller, Core, Once, check, check_head, living
from turnwire.log import digest, plan, prepare
from turnwire.log.draft import Draft
from turnwire.log.prepare import Prepared
from turnwire.store.base import Change, SessionRow, View

_PLAIN_REQUEST_ID = 64  # characters, which are within the limit of bytes whatever they are

_Step: TypeAlias = Callable[[View], tuple[Change | None, v1.AppendResponse]]


class Appends(Core):
    """The method ``Append``."""

    async def append(self, caller: Caller, request: v1.AppendRequest, wire: bytes | None = None) -> v1.AppendResponse:
        """Append entries to a session, atomically; see the method's comment in the schema.

        ``wire`` is the request as received. The request is taken over: it is changed on the way. Raises whatever the
        schema lists for a request that is refused; nothing of it is stored then.
        """
        return await self.store.write(caller.tenant, request.session_id, self._step(caller, request, wire))

    async def append_each(
        self, caller: Caller, requests: Sequence[tuple[v1.AppendRequest, bytes | None]]
    ) -> list[v1.AppendResponse | Exception]:
        """Append requests of one session, each by itself, one after the other, and all with one commit.

        Each has ``wire`` beside it, and comes to its response or to what `append` would raise; what fails for all of
        them is raised.
        """
        steps: list[_Step] = []
        for request, wire in requests:
            try:
                steps.append(self._step(caller, request, wire))
            except Exception as error:  # a fault of the program stops no other
                steps.append(partial(_failing, error))
        try:
            outcomes = await self.store.write_each(caller.tenant, requests[0][0].session_id, steps)
        except DecodeError:
            raise damage.corrupt() from None
        return [damage.corrupt() if isinstance(each, DecodeError) else each for each in outcomes]

    def _step(self, caller: Caller, request: v1.AppendRequest, wire: bytes | None) -> _Step:
        """What an append does to its session."""
        once = Once("Append", request, wire) if request.HasField("request_id") else None
        create = request.create if request.HasField("create") else None
        expected = request.expected_revision if request.HasField("expected_revision") else None
        session_id = request.session_id
        failure: errors.TurnwireError | None = None
        opening: Prepared | None = None
        entries: list[Prepared] = []
        now_us = self.now_us()
        try:
            self._check(request)
            if create is not None:
                opening = prepare.properties(create, "create", now_us)
            entries = prepare.prepare(request.entries, now_us, self.limits.part_bytes)
        except errors.TurnwireError as error:
            # A reply that was given before comes first, so that a retry gets it whatever the rules say now.
            failure = error

        def step(view: View) -> tuple[Change | None, v1.AppendResponse]:
            session = living(view, session_id)
            if once is not None:
                reply = once.replay(view, v1.AppendResponse.FromString)
                if reply is not None:
                    return None, reply
            if failure is not None:
                raise failure
            if session is None and opening is None:
                raise errors.SessionNotFound("there is no such session", session_id=session_id)
            if expected is not None:
                _check_expected(expected, session, opening is not None)
            moment = max(now_us, session.recorded_us) if session is not None else now_us
            draft = Draft(view, session or blank(caller.tenant, session_id, moment), moment)
            if session is None and opening is not None:
                assert isinstance(opening.message, v1.SessionProperties)
                revision = draft.record(opening.field, opening.payload)
                draft.set_properties(opening.message, revision)
            response = v1.AppendResponse()
            if session is None:
                response.created = True
            for revision, id, part_ids, existing in plan.plan(draft, entries):
                result = response.results.add()
                result.revision = revision
                if id:
                    result.id = id
                if part_ids:
                    result.part_ids.extend(part_ids)
                if existing:
                    result.existing = True
            after = draft.session
            head = response.head
            head.revision, head.digest = after.head, after.digest
            recorded = head.recorded
            recorded.seconds, recorded.nanos = after.recorded_us // 1_000_000, after.recorded_us % 1_000_000 * 1000
            return draft.change(once.keep(response) if once is not None else None), response

        return step

    def _check(self, request: v1.AppendRequest) -> None:
        # Entries and properties are checked once they are filled in. Most requests have nothing beside them that needs
        # more than this look; what does goes by the rules.
        count = len(request.entries)
        once = not request.HasField("request_id") or 0 < len(request.request_id) <= _PLAIN_REQUEST_ID
        if not (count and once and request.expected_revision >= 0 and ids.valid(request.session_id)):
            check(request, "entries", "create")
        if count > self.limits.append_entries:
            detail = v1.SizeLimit(size=count, limit=self.limits.append_entries, unit="entries")
            text = f"{count:,} entries, more than the limit of {self.limits.append_entries:,}"
            raise errors.RequestTooLarge(text, detail=detail, path="entries")


def _failing(error: Exception, _: View) -> NoReturn:
    raise error


def _check_expected(expected: int, session: SessionRow | None, creates: bool) -> None:
    if expected == 0 and not creates:
        text = "0 is expected only together with create"
        raise errors.RuleViolation([errors.Violation("expected_revision", "turnwire.expected_revision", text)])
    check_head(session.head if session is not None else 0, expected)


def blank(tenant: str, session_id: str, now_us: int) -> SessionRow:
    """A session before its first entry."""
    return SessionRow(tenant, session_id, 0, 0, digest.start(session_id), now_us, now_us, 0, 0)
