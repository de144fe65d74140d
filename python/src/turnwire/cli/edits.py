"""Mutations from the command line: options in the order in which they were given, and files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from typer.core import TyperCommand

from turnwire import ids, prompt, v1
from turnwire.cli.usage import Usage
from turnwire.validation import protojson

_KEY: Final = "turnwire.edits"
_STDIN: Final = "-"


class Edit(NamedTuple):
    """One option that edits the prompt: its name, for example ``--append``, and its value."""

    option: str
    value: str


class EditCommand(TyperCommand):
    """A command that remembers the order of its edits.

    The parser collects the values of each repeated option by themselves, which loses the order between options.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value: set[str] = set()
        for parameter in self.params:
            if getattr(parameter, "is_flag", True) is False:
                takes_value.update(parameter.opts)
        ctx.meta[_KEY] = list(_scan(args, takes_value))
        return super().parse_args(ctx, args)


def given(ctx: Any) -> list[Edit]:
    """The edits of a command's arguments, in order."""
    edits: list[Edit] = ctx.meta.get(_KEY, [])
    return edits


def mutations(edits: Sequence[Edit]) -> list[v1.Mutation]:
    """The mutations that edits stand for. Raises `Usage` for one that is not well formed."""
    result: list[v1.Mutation] = []
    for option, value in edits:
        if option == "--mutations":
            result.extend(_from_file(value))
        else:
            result.append(_MAKERS[option](option, value))
    return result


def _scan(args: Sequence[str], takes_value: set[str]) -> Iterator[Edit]:
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return
        name, joined, value = arg.partition("=")
        if name not in takes_value:
            continue
        if not joined:
            value = next(rest, "")
        if name in _MAKERS or name == "--mutations":
            yield Edit(name, value)


def _append(option: str, value: str) -> v1.Mutation:
    return v1.Mutation(append=v1.Append(message=_message(option, value)))


def _prepend(option: str, value: str) -> v1.Mutation:
    return v1.Mutation(prepend=v1.Prepend(message=_message(option, value)))


def _append_to(option: str, value: str) -> v1.Mutation:
    message = _message(option, value)
    return v1.Mutation(append_to=v1.AppendTo(role=message.role, parts=message.parts))


def _insert_after(option: str, value: str) -> v1.Mutation:
    anchor, message = _anchored(option, value)
    return v1.Mutation(insert_after=v1.InsertAfter(message_id=anchor, message=message))


def _insert_before(option: str, value: str) -> v1.Mutation:
    anchor, message = _anchored(option, value)
    return v1.Mutation(insert_before=v1.InsertBefore(message_id=anchor, message=message))


def _remove(option: str, value: str) -> v1.Mutation:
    return v1.Mutation(remove=v1.Remove(message_id=_id(option, value)))


def _remove_part(option: str, value: str) -> v1.Mutation:
    return v1.Mutation(remove_part=v1.RemovePart(part_id=_id(option, value)))


def _replace_part(option: str, value: str) -> v1.Mutation:
    part_id, text = _split_id(option, value, "ID:TEXT")
    return v1.Mutation(replace_part=v1.ReplacePart(part_id=part_id, part=_text(text)))


_MAKERS: Final[dict[str, Callable[[str, str], v1.Mutation]]] = {
    "--append": _append,
    "--prepend": _prepend,
    "--append-to": _append_to,
    "--insert-after": _insert_after,
    "--insert-before": _insert_before,
    "--remove": _remove,
    "--remove-part": _remove_part,
    "--replace-part": _replace_part,
}


def _text(text: str) -> v1.PromptPart:
    # Whoever mutates a prompt from the command line is not the role's author.
    return prompt.text_part(text, synthetic=True)


def _message(option: str, value: str, form: str = "ROLE:TEXT") -> v1.PromptMessage:
    name, colon, text = value.partition(":")
    if not colon or name not in ("user", "assistant"):
        raise Usage(f"{option} takes {form}, where ROLE is user or assistant")
    return prompt.message("user" if name == "user" else "assistant", _text(text))


def _anchored(option: str, value: str) -> tuple[str, v1.PromptMessage]:
    form = "ID:ROLE:TEXT"
    # An id may hold colons itself, so that the role, which is one of two words, tells where it ends.
    places = [place for role in (":user:", ":assistant:") if (place := value.find(role)) > 0]
    if not places:
        raise Usage(f"{option} takes {form}, where ROLE is user or assistant")
    place = min(places)
    return _id(option, value[:place]), _message(option, value[place + 1 :], form)


def _split_id(option: str, value: str, form: str) -> tuple[str, str]:
    id, colon, text = value.partition(":")
    if not colon:
        raise Usage(f"{option} takes {form}")
    return _id(option, id), text


def _id(option: str, value: str) -> str:
    if not ids.valid(value):
        raise Usage(f"{option}: an id has 1 to 128 characters from A-Z a-z 0-9 . _ : -")
    return value


def _from_file(name: str) -> list[v1.Mutation]:
    """The mutations of a file: a JSON array of ``turnwire.v1.Mutation``, or one of them. ``-`` is stdin."""
    try:
        if name == _STDIN:
            text = sys.stdin.read()
        else:
            with open(name, encoding="utf-8-sig") as file:
                text = file.read()
        found = protojson.document(text)
    except OSError as error:
        raise Usage(f"--mutations: cannot read {name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Usage(f"--mutations: {name} is not JSON: {error}") from error
    result: list[v1.Mutation] = []
    every: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]
    for index, each in enumerate(every):
        try:
            result.append(protojson.known(each, v1.Mutation))
        except protojson.NoMessage as error:
            where = f" at {error.path}" if error.path else ""
            raise Usage(f"--mutations: {name}, number {index}: not a turnwire.v1.Mutation{where}: {error}") from error
    return result
