"""Foreign extras: what keeps an import lossless.

An importer maps what it met to fields, writes back what its exporter would make of these fields, and compares that
with the original. Where both differ (the schema has no such field; the value was no legal one and had to be repaired;
a number was spelled otherwise) the original literal goes to ``extra_json`` of the nearest object, under the name of
the program::

    {"opencode": {"/slug": "swift-engine", "/time/created": 1.5, "drop": ["/mode"], "text": {"/cost": "NaN"}}}

* A key that is empty or begins with ``/`` is a JSON pointer (RFC 6901) into the original object. Its value is what
  stands there in place of what the exporter derives. The empty pointer is the whole object.
* ``drop`` lists the pointers that the exporter derives a value for and the original has none.
* ``text`` holds, as strings, the values that cannot stand in a JSON document: NaN and infinities, and what nests
  deeper than 128 levels with what is around it. The string is the JSON text itself.

* ``bytes`` holds, by pointer, the literals in which bytes stood that are no UTF-8 (a string with its quotes, or the
  smallest object whose key has them), in base64. In the value U+FFFD stands for them, and so it does in an export,
  which is UTF-8.

Exporting derives the object, takes away what ``drop`` names, then sets what the pointers name. The comparison makes
this right by construction: whatever the mapping does with a value, the original comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from turnwire import jsontext
from turnwire.formats.jsonlit import Json, Node, compact, dumps, literal, quote

Path: TypeAlias = tuple[str, ...]

DROP = "drop"
TEXT = "text"
BYTES = "bytes"

# A value in the extras stands inside two objects, and must still be no deeper than a document may be.
_WRAPPED = 2
_DIGITS = 10


class Difference(NamedTuple):
    """Where an original and a derived tree differ: paths to set from the original, and paths to drop."""

    sets: tuple[Path, ...] = ()
    drops: tuple[Path, ...] = ()

    def part(self, keep: Callable[[str], bool]) -> Difference:
        """The paths whose first step is to be kept."""
        return Difference(
            tuple(path for path in self.sets if keep(path[0])),
            tuple(path for path in self.drops if keep(path[0])),
        )


NONE = Difference()


def compare(original: Json, derived: Json) -> Difference:
    """Where ``derived`` has to be changed to become ``original``; the order of keys does not count."""
    if original == derived:
        return NONE
    sets: list[Path] = []
    drops: list[Path] = []
    _compare(original, derived, (), sets, drops)
    return Difference(tuple(sets), tuple(drops))


def _compare(original: Json, derived: Json, path: Path, sets: list[Path], drops: list[Path]) -> None:
    if original == derived:
        return
    if isinstance(original, dict) and isinstance(derived, dict):
        for key, value in original.items():
            if key in derived:
                _compare(value, derived[key], (*path, key), sets, drops)
            else:
                sets.append((*path, key))
        drops.extend((*path, key) for key in derived if key not in original)
    elif isinstance(original, list) and isinstance(derived, list) and len(original) == len(derived):
        for index, (value, other) in enumerate(zip(original, derived, strict=True)):
            _compare(value, other, (*path, str(index)), sets, drops)
    else:
        sets.append(path)


def pointer(path: Path) -> str:
    """A path as a JSON pointer."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def path_of(pointer: str) -> Path:
    """A JSON pointer as a path."""
    if not pointer:
        return ()
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/"))


def encode(difference: Difference, original: Node) -> dict[str, str]:
    """The extras of one object, as JSON texts by key; empty if there is no difference."""
    if difference is NONE:
        return {}
    members: dict[str, str] = {}
    texts: list[str] = []
    for path in difference.sets:
        _add(path, dumps(_at(original.value, path)), members, texts)
    return _with_rest(members, texts, difference.drops)


def encode_members(members: dict[str, Node], absent: tuple[str, ...]) -> dict[str, str]:
    """The extras for whole members to set and to drop, by key; see `encode`."""
    found: dict[str, str] = {}
    texts: list[str] = []
    for key, node in members.items():
        _add((key,), compact(node.raw), found, texts)
    return _with_rest(found, texts, [(key,) for key in absent])


def _at(tree: Json, path: Path) -> Json:
    for step in path:
        tree = tree[step] if isinstance(tree, dict) else tree[int(step)] if isinstance(tree, list) else None
    return tree


def _add(path: Path, text: str, members: dict[str, str], texts: list[str]) -> None:
    if storable(text, _WRAPPED):
        members[pointer(path)] = text
    else:
        texts.append(f"{quote(pointer(path))}:{quote(text)}")


def _with_rest(members: dict[str, str], texts: list[str], drops: Iterable[Path]) -> dict[str, str]:
    dropped = ",".join(quote(pointer(path)) for path in drops)
    if dropped:
        members[DROP] = f"[{dropped}]"
    if texts:
        members[TEXT] = "{" + ",".join(texts) + "}"
    return members


def storable(text: str, inside: int = 0) -> bool:
    """Whether a JSON text can stand in a JSON field, ``inside`` that many arrays or objects."""
    if inside and text.count("{") + text.count("[") > jsontext.MAX_DEPTH - inside:
        return jsontext.depth(text) <= jsontext.MAX_DEPTH - inside and jsontext.check(text) is None
    return jsontext.check(text) is None


def join(spaces: dict[str, dict[str, str]]) -> str:
    """``extra_json`` from the extras of each name space; empty if all are."""
    parts = [
        quote(name) + ":{" + ",".join(f"{quote(key)}:{text}" for key, text in members.items()) + "}"
        for name, members in spaces.items()
        if members
    ]
    return "{" + ",".join(parts) + "}" if parts else ""


def add(extra_json: str, name: str, members: dict[str, str]) -> str:
    """``extra_json`` with one more name space."""
    if not members:
        return extra_json
    more = join({name: members})
    return extra_json[:-1] + "," + more[1:] if extra_json else more


def spaces(extra_json: str) -> dict[str, str]:
    """The JSON text of each name space; none if there are none."""
    return {name: node.raw for name, node in Node.parse(extra_json).members().items()} if extra_json else {}


def of_spaces(texts: dict[str, str]) -> str:
    """``extra_json`` from the JSON texts of name spaces; empty if there are none."""
    return "{" + ",".join(f"{quote(name)}:{text}" for name, text in texts.items()) + "}" if texts else ""


def keep(extra_json: str, there: str, members: Iterable[tuple[str, str]]) -> str:
    """``extra_json`` with members, given by name space and key, as they are in ``there``."""
    found = spaces(extra_json)
    for name, key in members:
        texts = {each: node.raw for each, node in Node.parse(found.get(name) or "{}").members().items()}
        kept = Node.parse(spaces(there).get(name, "{}")).members().get(key)
        if kept is None:
            texts.pop(key, None)
        else:
            texts[key] = kept.raw
        found[name] = of_spaces(texts)
    return of_spaces({name: text for name, text in found.items() if text})


def without(extra_json: str, name: str, key: str) -> str:
    """``extra_json`` without one member of a name space."""
    found = spaces(extra_json)
    members = {each: node.raw for each, node in Node.parse(found.get(name) or "{}").members().items() if each != key}
    found[name] = of_spaces(members)
    return of_spaces({each: text for each, text in found.items() if text})


def with_original_id(extra_json: str, name: str, original: str) -> str:
    """``extra_json`` of an object that gets another id than the one it has in the source; see `pointer`."""
    pointed = pointer(("id",))
    found = space(extra_json, name)
    dropped = found.get(DROP)
    if pointed in found or (isinstance(dropped, list) and pointed in dropped):
        return extra_json  # it has another id already, or none in the source
    members = {key: node.raw for key, node in Node.parse(spaces(extra_json).get(name, "{}")).members().items()}
    return of_spaces({**spaces(extra_json), name: of_spaces({pointed: quote(original), **members})})


def with_bytes(extra_json: str, name: str, literals: Mapping[str, str]) -> str:
    """``extra_json`` with literals that are no UTF-8, given in base64 by pointer."""
    if not literals:
        return extra_json
    members = {key: node.raw for key, node in Node.parse(spaces(extra_json).get(name, "{}")).members().items()}
    members[BYTES] = dumps(dict(literals))
    return of_spaces({**spaces(extra_json), name: of_spaces(members)})


def numbers(value: Json) -> list[int]:
    """A list of small integers in the extras; empty if it is anything else."""
    if not isinstance(value, list):
        return []
    return [int(item) for item in value if isinstance(item, bytes) and item.isdigit() and len(item) < _DIGITS]


def space(extra_json: str, name: str) -> dict[str, Json]:
    """The extras of one name space; empty if there are none, or if they are not of the form described above."""
    if not extra_json:
        return {}
    tree = Node.parse(extra_json).value
    found = tree.get(name) if isinstance(tree, dict) else None
    return found if isinstance(found, dict) else {}


def restore(derived: Json, extras: dict[str, Json]) -> Json:
    """The original: ``derived`` with the extras applied. Changes ``derived``."""
    drops = extras.get(DROP)
    for one in drops if isinstance(drops, list) else ():
        if isinstance(one, str):
            _drop(derived, path_of(one))
    for key, value in extras.items():
        if not key or key.startswith("/"):
            derived = _set(derived, path_of(key), value)
    texts = extras.get(TEXT)
    for key, value in texts.items() if isinstance(texts, dict) else ():
        if isinstance(value, str):
            derived = _set(derived, path_of(key), literal(value))
    return derived


def _parent(tree: Json, path: Path) -> Json:
    for step in path[:-1]:
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        else:
            return None
    return tree


def _drop(tree: Json, path: Path) -> None:
    parent = _parent(tree, path)
    if path and isinstance(parent, dict):
        parent.pop(path[-1], None)


def _set(tree: Json, path: Path, value: Json) -> Json:
    if not path:
        return value
    parent = _parent(tree, path)
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list) and path[-1].isdecimal() and int(path[-1]) < len(parent):
        parent[int(path[-1])] = value
    return tree
