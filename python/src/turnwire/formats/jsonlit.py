"""JSON with its literals kept: where each value stands in the text, and how each number is spelled.

Python's own ``json`` turns 1.0 and 1 into equal numbers and forgets where a value came from. Here a document becomes a
tree whose numbers are their own text, and a `Node` knows the slice of the text that a value was read from, so that a
sub-document can be kept token for token. The scanning itself is done by the scanner of ``json`` that is written in C.

In a tree, ``bytes`` are JSON text that stands for itself: a number as it is spelled, a constant, or a whole document.
So no two values of different types or spellings are equal, and trees can be compared at the speed of C.

What is taken that RFC 8259 refuses: NaN, Infinity and -Infinity, as literals of that spelling. Duplicate keys: the last
one counts, as everywhere. Escapes of lone surrogates become lone surrogates in the Python string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, TypeAlias

Json: TypeAlias = "bool | str | bytes | list[Json] | dict[str, Json] | None"


class Damage(ValueError):
    """The text is not JSON from ``position`` on, or ends there."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} at character {position}")
        self.reason = reason
        self.position = position


_decoder: Any = json.JSONDecoder(parse_float=str.encode, parse_int=str.encode, parse_constant=str.encode)
_scan = _decoder.scan_once
_scan_string = _decoder.parse_string
_space = re.compile(r"[ \t\n\r]*").match
_key = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*').match
_mark = re.compile(r"[ \t\n\r]*([,}\]])[ \t\n\r]*").match
_TOKENS = re.compile(r'[^" \t\n\r]+|"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_NESTING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_SCALAR = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\[\]{},:"\s]+', re.DOTALL)


def scan(text: str, start: int) -> tuple[Json, int]:
    """Read the value that starts at ``start``: its tree and the index after it.

    A value that nests deeper than the interpreter can follow (about a thousand levels) comes as its text.
    """
    try:
        tree, end = _scan(text, start)
    except StopIteration as stop:
        position = int(stop.value)
        raise Damage("the text ends" if position >= len(text) else "no JSON value", position) from None
    except json.JSONDecodeError as error:
        said = error.msg[0].lower() + error.msg[1:].rstrip(": ").removesuffix(" at")
        raise Damage("the text ends" if error.pos >= len(text) else said, error.pos) from None
    except RecursionError:
        after = skip(text, start)
        if after is None:
            raise Damage("the text ends inside a value", len(text)) from None
        return literal(text[start:after]), after
    return tree, end


def after_space(text: str, start: int) -> int:
    """The index of the first character at or after ``start`` that is not JSON white space."""
    match = _space(text, start)
    return match.end() if match else start


def skip(text: str, start: int) -> int | None:
    """The index after the value at ``start``, found by its brackets alone; None if it never ends.

    It finds the way past a value that is damaged inside, so that what follows can still be read.
    """
    if text[start : start + 1] not in ("{", "["):
        match = _SCALAR.match(text, start)
        return match.end() if match else None
    depth = 0
    for match in _NESTING.finditer(text, start):
        token = match.group()
        if token in ("{", "["):
            depth += 1
        elif token in ("}", "]"):
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def walk_object(text: str, start: int, visit: Callable[[str, int], int]) -> int:
    """Call ``visit(key, start of the value)``, which returns the index after the value, for each member.

    Returns the index after the object. Raises `Damage` where the text is not an object.
    """
    index = _opened(text, start, "{", "an object")
    if text.startswith("}", index):
        return index + 1
    while True:
        found = _key(text, index)
        if found is not None:
            index = visit(found[1], found.end())
        else:
            key, index = _escaped_key(text, index)
            index = visit(key, index)
        mark = _mark(text, index)
        if mark is None or mark[1] == "]":
            raise _unexpected(text, after_space(text, index), "a comma or the end of the object")
        index = mark.end()
        if mark[1] == "}":
            return mark.end(1)


def walk_array(text: str, start: int, visit: Callable[[int, int], int]) -> int:
    """Call ``visit(position, start of the element)``, which returns the index after it, for each element.

    Returns the index after the array. Raises `Damage` where the text is not an array.
    """
    index = _opened(text, start, "[", "an array")
    if text.startswith("]", index):
        return index + 1
    position = 0
    while True:
        index = visit(position, index)
        position += 1
        mark = _mark(text, index)
        if mark is None or mark[1] == "}":
            raise _unexpected(text, after_space(text, index), "a comma or the end of the array")
        index = mark.end()
        if mark[1] == "]":
            return mark.end(1)


def _opened(text: str, index: int, mark: str, what: str) -> int:
    if not text.startswith(mark, index):
        raise _unexpected(text, index, what)
    return after_space(text, index + 1)


def _escaped_key(text: str, index: int) -> tuple[str, int]:
    """A key that the quick pattern does not match: the key, and where its value starts."""
    if not text.startswith('"', index):
        raise _unexpected(text, index, "a key")
    try:
        key, end = _scan_string(text, index + 1, True)
    except json.JSONDecodeError as error:
        raise Damage("a key that is cut or wrong", error.pos) from None
    return str(key), _opened(text, after_space(text, int(end)), ":", "a colon")


def _unexpected(text: str, index: int, what: str) -> Damage:
    return Damage("the text ends" if index >= len(text) else f"not {what}", index)


class Node:
    """A value together with the slice ``text[start:end]`` that it was read from."""

    __slots__ = ("end", "start", "text", "value")

    def __init__(self, text: str, start: int, end: int, value: Json) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.value = value

    @classmethod
    def at(cls, text: str, start: int) -> Node:
        """Read the value at ``start``. Raises `Damage`."""
        value, end = scan(text, start)
        return cls(text, start, end, value)

    @classmethod
    def parse(cls, text: str) -> Node:
        """Read a text that is one value. Raises `Damage`."""
        node = cls.at(text, after_space(text, 0))
        if after_space(text, node.end) != len(text):
            raise Damage("more text follows the value", node.end)
        return node

    @property
    def raw(self) -> str:
        """The value as it stands in the text."""
        return self.text[self.start : self.end]

    def members(self, repeated: Callable[[str], None] | None = None) -> dict[str, Node]:
        """The members of an object by key, read anew; none for another value.

        ``repeated`` is called with each key that stands there once more.
        """
        members: dict[str, Node] = {}

        def visit(key: str, start: int) -> int:
            if key in members and repeated is not None:
                repeated(key)
            members[key] = node = Node.at(self.text, start)
            return node.end

        if self.text.startswith("{", self.start):
            walk_object(self.text, self.start, visit)
        return members

    def items(self) -> Iterator[Node]:
        """The elements of an array; none for another value."""
        found: list[Node] = []

        def visit(_: int, start: int) -> int:
            found.append(Node.at(self.text, start))
            return found[-1].end

        if self.text.startswith("[", self.start):
            walk_array(self.text, self.start, visit)
        return iter(found)

    def find(self, path: tuple[str, ...]) -> Node:
        """The value at a path of keys and positions. Raises KeyError or IndexError where there is none."""
        node = self
        for step in path:
            node = list(node.items())[int(step)] if node.text.startswith("[", node.start) else node.members()[step]
        return node


def compact(text: str) -> str:
    """A JSON text without the white space between its tokens; the tokens stay as they are spelled."""
    return "".join(_TOKENS.findall(text))


def literal(text: str) -> bytes:
    """JSON text that stands for itself in a tree."""
    return text.encode("utf-8", "surrogatepass")


def integer(number: int) -> bytes:
    """An integer as it stands in a tree."""
    return b"%d" % number


def real(number: float) -> bytes:
    """A finite number as JavaScript spells it, for example 0, 0.00001, 1e-7, 1e+21."""
    if number == 0:
        return b"0"
    text = repr(number)
    if 1e-6 <= abs(number) < 1e21:
        if "e" in text:
            text = format(Decimal(text), "f")
        return text.removesuffix(".0").encode()
    mantissa, _, exponent = text.partition("e")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{exponent.lstrip('+-0')}".encode()


# Lone surrogates, and bytes that are no UTF-8 as `turnwire.formats.undecoded` spells them, which stay as they are.
_LONE = re.compile(r"[\udbfe\udbff][\udc00-\udcff]|[\ud800-\udfff]")


def quote(text: str) -> str:
    """A string as JSON the way JavaScript writes it: only what must be escaped is, lone surrogates included."""
    quoted = str(encode_basestring(text))
    if quoted.isascii():
        return quoted
    return _LONE.sub(_escaped, quoted)


def _escaped(match: re.Match[str]) -> str:
    found = match.group()
    return f"\\u{ord(found):04x}" if len(found) == 1 else found


def dumps(tree: Json, indent: int | None = None) -> str:
    """Write a tree as JSON: compact, or with ``indent`` blanks a level. Bytes stand as they are."""
    pieces: list[str] = []
    _write(tree, pieces.append, "" if indent is None else "\n", "" if indent is None else " " * indent)
    return "".join(pieces)


def _write(tree: Json, put: Callable[[str], None], line: str, step: str) -> None:
    if isinstance(tree, str):
        put(quote(tree))
    elif isinstance(tree, bytes):
        put(tree.decode("utf-8", "surrogatepass"))
    elif isinstance(tree, dict):
        _write_all(tree.items(), put, line, step) if tree else put("{}")
    elif isinstance(tree, list):
        if not tree:
            put("[]")
            return
        inner = line + step
        mark = "["
        for item in tree:
            put(mark)
            put(inner)
            _write(item, put, inner, step)
            mark = ","
        put(line)
        put("]")
    else:
        put("null" if tree is None else "true" if tree else "false")


def _write_all(members: Any, put: Callable[[str], None], line: str, step: str) -> None:
    inner = line + step
    colon = ": " if line else ":"
    mark = "{"
    for key, value in members:
        put(mark)
        put(inner)
        put(quote(key))
        put(colon)
        _write(value, put, inner, step)
        mark = ","
    put(line)
    put("}")
