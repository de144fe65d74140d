"""``turnwire stats``: tokens and cost of sessions, by session, model and turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import typer
from rich.text import Text

from turnwire import v1
from turnwire.calls.service import Service
from turnwire.cli import charts
from turnwire.cli.app import Call, command
from turnwire.cli.output import Line
from turnwire.cli.text import cut, plural
from turnwire.totals import BUCKETS, SessionTotals, Total, by_model, together

_MOST_A_PAGE = 1000


def add_to(app: typer.Typer) -> None:
    """Add the command to a program."""
    command(app, "stats")(stats)


async def stats(
    call: Call,
    session: Annotated[
        list[str] | None, typer.Argument(metavar="[SESSION...]", help="Ids of sessions.", show_default="all")
    ] = None,
    children: Annotated[bool, typer.Option("--children", help="Those that they started too, and theirs.")] = False,
    turns: Annotated[bool, typer.Option("--turns", help="By turn too, if there is more than one session.")] = False,
) -> None:
    """Show what sessions cost: US dollars, and tokens in buckets that do not overlap.

    Counted are the messages that the history has now. A cost with a question mark is that of some messages only, since
    others do not tell it. A fork has the messages of its parent, which were paid for once: where both are counted, a
    note says so, and in JSON ``forkedFrom`` of the fork names the parent. With --json: an object a line for each
    session, with totals by turn and by model, then one for all together.
    """
    found: list[SessionTotals] = []
    async with call.client() as client:
        async for shown in _sessions(client, session or [], children):
            counted = SessionTotals(shown)
            async for item in client.replay(shown.id, revision=shown.head.revision):
                counted.add(item)
            if call.out.json:
                call.out.object(_session_object(counted))
            found.append(counted)
    _note_forks(call, found)
    total = together(each.total for each in found)
    models = by_model(found)
    if call.out.json:
        call.out.object({"sessions": len(found), "total": _object(total), "models": _models(models)})
        return
    if len(found) > 1:
        rows = [(each.session.id, cut(each.session.properties.title, 60), each.total) for each in found]
        call.out.lines(charts.totals("by session", rows))
    if models:
        named = [(f"{cut(provider, 80)}/{cut(name, 120)}", "", counted) for (provider, name), counted in models.items()]
        call.out.lines(charts.totals("by model", named))
    by_turn = [(id, _agent(each, id), counted) for each in found for id, counted in each.turns.items()]
    if by_turn and (turns or len(found) == 1):
        call.out.lines(charts.totals("by turn", by_turn))
    told = f"{plural(total.tokens, 'token')} in {plural(total.messages, 'message')} of {plural(len(found), 'session')}"
    call.out.lines([charts.legend(), Line(0, Text(f"{told}, {charts.cost(total)}"))])


async def _sessions(client: Service, names: list[str], children: bool) -> AsyncIterator[v1.Session]:
    """The sessions to count, each once: those named or all, and if wanted after each those that it started."""
    seen: set[str] = set()
    if not names:
        async for shown in client.list_sessions(page_size=_MOST_A_PAGE):
            if shown.id not in seen:  # one that is written meanwhile may be listed twice
                seen.add(shown.id)
                yield shown
        return
    waiting = [await client.get_session(name) for name in reversed(dict.fromkeys(names))]
    while waiting:
        shown = waiting.pop()
        if shown.id in seen:
            continue
        seen.add(shown.id)
        yield shown
        if children:
            started = [each async for each in client.list_sessions(parent_session_id=shown.id, page_size=_MOST_A_PAGE)]
            waiting += sorted(started, key=lambda each: each.properties.created.ToNanoseconds(), reverse=True)


def _note_forks(call: Call, found: list[SessionTotals]) -> None:
    """Say which sessions have messages that another one of those counted has too."""
    names = {each.session.id for each in found}
    forks = [each.session.id for each in found if _forked_from(each.session) in names]
    if forks:
        named = ", ".join(forks[:5]) + (" …" if len(forks) > 5 else "")
        call.out.note(f"counted twice: what {named} took over from the session that it was forked from")


def _forked_from(session: v1.Session) -> str:
    return session.properties.forked_from.session_id


def _agent(session: SessionTotals, turn_id: str) -> str:
    settings = session.settings.get(turn_id)
    return cut(settings.agent, 40) if settings is not None else ""


def _session_object(counted: SessionTotals) -> dict[str, Any]:
    parent = counted.session.properties.parent.session_id
    return {
        "sessionId": counted.session.id,
        **({"parentSessionId": parent} if parent else {}),
        **({"forkedFrom": forked} if (forked := _forked_from(counted.session)) else {}),
        "total": _object(counted.total),
        "models": _models(counted.models),
        "turns": [
            {"turnId": id, "agent": _agent(counted, id), **_object(total)} for id, total in counted.turns.items()
        ],
    }


def _models(models: dict[tuple[str, str], Total]) -> list[dict[str, Any]]:
    return [{"providerId": provider, "modelId": name, **_object(total)} for (provider, name), total in models.items()]


def _object(total: Total) -> dict[str, Any]:
    tokens = {_camel(name): count for name, count in zip(BUCKETS, total.buckets(), strict=True)}
    counts = {"messages": total.messages, "unpriced": total.unpriced, "cost": total.dollars}
    return {**counts, "tokens": {**tokens, "total": total.tokens}}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
