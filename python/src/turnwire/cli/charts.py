"""Tokens and cost as lines with bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from turnwire.cli.output import Line
from turnwire.cli.text import plural
from turnwire.totals import BUCKETS, Total

_WIDTH: Final = 24
# A glyph beside a colour each, so that a bar can be read without colours too.
_BUCKETS: Final = {
    "input": ("█", "blue"),
    "output": ("▓", "green"),
    "reasoning": ("▒", "magenta"),
    "cache_read": ("░", "cyan"),
    "cache_write": ("▚", "yellow"),
}


def totals(title: str, rows: Sequence[tuple[str, str, Total]]) -> Iterator[Line]:
    """Totals, each with a name and what it is: a bar of its tokens against the most of any, and the numbers."""
    most = max((total.tokens for _, _, total in rows), default=0)
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*map(_numbers, rows), strict=True)]
    yield Line(0, Text(title, style="dim"))
    for row in rows:
        name, told, total = row
        yield Line(2, Text.assemble((name, "bold"), f"  {told}" if told else ""))
        line = bar(total, most)
        line.append(" " * (_WIDTH - len(line)))
        for cell, width in zip(_numbers(row), widths, strict=True):
            line.append(f"  {cell:>{width}}")
        for name_of, count in zip(BUCKETS, total.buckets(), strict=True):
            if count:
                glyph, style = _BUCKETS[name_of]
                line.append(f"  {glyph} ", style=style).append(f"{count:,}")
        line.rstrip()
        yield Line(4, line)
    yield Line(0, Text(""))


def bar(total: Total, most: int) -> Text:
    """The tokens as a bar, by bucket; ``most`` tokens fill it."""
    made = Text()
    start = counted = 0
    for (glyph, style), count in zip(_BUCKETS.values(), total.buckets(), strict=True):
        counted += count
        end = -(-counted * _WIDTH // most) if most else 0  # rounded up, so that the cells are together those of the sum
        made.append(glyph * (end - start), style=style)
        start = end
    return made


def legend() -> Line:
    """What the glyphs stand for."""
    line = Text()
    for name, (glyph, style) in _BUCKETS.items():
        line.append(f"{glyph} ", style=style).append(f"{name.replace('_', ' ')}  ", style="dim")
    line.rstrip()
    return Line(0, line)


def cost(total: Total) -> str:
    """The cost in US dollars, for example ``$0.0123``; with a question mark if that of some messages is not known."""
    known = f"${total.dollars:,.4f}" if total.messages > total.unpriced or not total.messages else ""
    return " + ".join(piece for piece in (known, "?" if total.unpriced else "") if piece)


def _numbers(row: tuple[str, str, Total]) -> tuple[str, str, str]:
    total = row[2]
    return plural(total.tokens, "token"), cost(total), plural(total.messages, "message")
