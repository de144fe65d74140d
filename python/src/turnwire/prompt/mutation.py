"""Mutate: the edits of a prompt, in order, all or none, on a copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from turnwire import errors, v1
from turnwire.prompt import checks
from turnwire.prompt.history import Fate, Fates, NothingKnown
from turnwire.prompt.items import Item, as_base
from turnwire.prompt.parts import Part
from turnwire.prompt.profiles import require_version

NOTHING_KNOWN: Fates = NothingKnown()


def mutate(
    items: Iterable[Item],
    mutations: Iterable[v1.Mutation],
    fates: Fates = NOTHING_KNOWN,
    *,
    first_index: int = 0,
    checked: bool = False,
) -> list[Item]:
    """Apply mutations in order to a copy of a prompt; when one is refused, nothing comes out.

    ``fates`` (an ``Assembly``) says what became of an anchor that the prompt does not show. The result holds
    the parts of ``items`` and ``mutations`` by reference: they must not be changed afterwards.
    ``first_index`` is the index of the first mutation, for origins and paths. ``checked`` leaves out the
    rules of the schema and of the content; it is for mutations that a log holds, which later rules must not
    make impossible to compute again.

    Raises, with ``path`` (``mutations[1].insert_after.message_id``) and the id in question:
    UnknownToThisServer, RuleViolation, TransientPartHasId, DuplicateCallId (the mutation by itself);
    NoMessageOfRole; AnchorUnknown, AnchorCompacted, AnchorRemoved, AnchorNotInPrompt (live, but without
    parts, after the turn, or taken out by an earlier mutation); SignedPart.
    """
    draft = _Draft(items, fates, checked)
    for index, mutation in enumerate(mutations, first_index):
        draft.apply(mutation, index)
    return draft.items


def apply_records(
    items: Iterable[Item], records: Iterable[v1.PromptRecord], fates: Fates = NOTHING_KNOWN
) -> list[Item]:
    """Compute the prompt of the last of a chain of records: each is based on the one before, the first on
    ``items``.

    The result has the ids of the records as origins: it is the input of the next record. Raises
    UnknownToThisServer for an assembly version that this build does not have, else as ``mutate`` for anchors.
    """
    result = list(items)
    for record in records:
        require_version(record.assembly_version)
        result = as_base(mutate(result, record.mutations, fates, checked=True), record.id)
    return result


def anchors(mutations: Iterable[v1.Mutation]) -> tuple[set[str], set[str]]:
    """The message ids and the part ids that mutations name: what a store must look up to tell their fates."""
    messages: set[str] = set()
    parts: set[str] = set()
    for mutation in mutations:
        match mutation.WhichOneof("kind"):
            case "insert_after":
                messages.add(mutation.insert_after.message_id)
            case "insert_before":
                messages.add(mutation.insert_before.message_id)
            case "remove":
                messages.add(mutation.remove.message_id)
            case "remove_part":
                parts.add(mutation.remove_part.part_id)
            case "replace_part":
                parts.add(mutation.replace_part.part_id)
            case _:
                pass
    return messages, parts


class _Draft:
    """A prompt under edit. ``items`` and ``_ids`` (the stored message's id, else None) run in step."""

    def __init__(self, items: Iterable[Item], fates: Fates, checked: bool) -> None:
        self.items = list(items)
        self._ids = [item.message_id or None for item in self.items]
        self._fates = fates
        self._checked = checked
        self._owners: dict[str, str] | None = None

    def apply(self, mutation: v1.Mutation, index: int) -> None:
        kind = mutation.WhichOneof("kind")
        path = f"mutations[{index}]"
        if not self._checked:
            checks.alone(mutation, path)
        match kind:
            case "append":
                self._put(len(self.items), mutation.append.message, index)
            case "prepend":
                self._put(0, mutation.prepend.message, index)
            case "insert_after":
                place = self._place(mutation.insert_after.message_id, f"{path}.insert_after.message_id")
                self._put(place + 1, mutation.insert_after.message, index)
            case "insert_before":
                place = self._place(mutation.insert_before.message_id, f"{path}.insert_before.message_id")
                self._put(place, mutation.insert_before.message, index)
            case "append_to":
                self._append_to(mutation.append_to, f"{path}.append_to")
            case "remove":
                self._take(self._place(mutation.remove.message_id, f"{path}.remove.message_id"))
            case "remove_part":
                self._remove_part(mutation.remove_part, f"{path}.remove_part")
            case "replace_part":
                self._replace_part(mutation.replace_part, f"{path}.replace_part")
            case _:
                raise errors.UnknownToThisServer("a mutation of no known kind", path=f"{path}.kind")

    def _put(self, place: int, message: v1.PromptMessage, index: int) -> None:
        self.items.insert(place, Item.written(message, index))
        self._ids.insert(place, None)

    def _take(self, place: int) -> None:
        del self.items[place]
        del self._ids[place]

    def _append_to(self, edit: v1.AppendTo, path: str) -> None:
        for place in range(len(self.items) - 1, -1, -1):
            item = self.items[place]
            if item.role == edit.role:
                break
        else:
            # A record of a later schema may name a role that has no name here.
            role = v1.Role.Name(edit.role) if edit.role in v1.Role.values() else str(edit.role)
            raise errors.NoMessageOfRole("the prompt has no message of this role", path=path, role=role)
        if not self._checked:
            checks.fits(edit.parts, item.parts, f"{path}.parts[{{}}]")
        self.items[place] = replace(item, parts=item.parts + tuple(map(Part, edit.parts)))

    def _remove_part(self, edit: v1.RemovePart, path: str) -> None:
        place, at = self._place_of_part(edit.part_id, f"{path}.part_id")
        parts = self.items[place].parts
        left = parts[:at] + parts[at + 1 :]
        if left:
            self.items[place] = replace(self.items[place], parts=left)
        else:
            self._take(place)

    def _replace_part(self, edit: v1.ReplacePart, path: str) -> None:
        place, at = self._place_of_part(edit.part_id, f"{path}.part_id")
        item = self.items[place]
        before, after = item.parts[:at], item.parts[at + 1 :]
        if not self._checked:
            checks.held_by(edit.part, item.role, f"{path}.part")
            checks.fits([edit.part], before + after, f"{path}.part")
        self.items[place] = replace(item, parts=(*before, Part(edit.part), *after))

    def _place(self, message_id: str, path: str) -> int:
        """Where a stored message is in the prompt; else the error that says why it is not there."""
        try:
            return self._ids.index(message_id)
        except ValueError:
            raise _absent(self._fates.message_fate(message_id), "message", message_id, path) from None

    def _place_of_part(self, part_id: str, path: str) -> tuple[int, int]:
        """Where a stored part is, as (item, index in it); refused when a mutation may not touch it."""
        if self._owners is None:
            # Parts never move between messages, so this stays true while items come and go.
            self._owners = {
                part.id: item.message_id for item in self.items if item.message_id for part in item.parts if part.id
            }
        owner = self._owners.get(part_id)
        if owner is not None and owner in self._ids:
            place = self._ids.index(owner)
            for at, part in enumerate(self.items[place].parts):
                if part.id == part_id:
                    if part.fixed:
                        raise errors.SignedPart(
                            "the part is signed: remove its whole message, or append to it", path=path, part_id=part_id
                        )
                    return place, at
        raise _absent(self._fates.part_fate(part_id), "part", part_id, path)


def _absent(fate: Fate, what: str, anchor: str, path: str) -> errors.TurnwireError:
    error: errors.TurnwireError
    match fate:
        case Fate.UNKNOWN:
            error = errors.AnchorUnknown(f"the session has no such {what}", path=path)
        case Fate.REMOVED:
            error = errors.AnchorRemoved(f"the {what} was removed or reverted", path=path)
        case Fate.COMPACTED:
            error = errors.AnchorCompacted(f"the {what} exists, but was compacted away", path=path)
        case Fate.LIVE:
            error = errors.AnchorNotInPrompt(f"the {what} exists, but is not in this prompt", path=path)
    error.metadata[f"{what}_id"] = anchor
    return error
