"""Text for a terminal: harmless, of known width, wrapped or shortened to the screen."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "GUTTER",
    "columns_of",
    "counted",
    "grid",
    "padded",
    "paragraph",
    "plain_text",
    "screen_width",
    "shorten",
    "shorten_middle",
    "wrap",
]

GUTTER = "  "
_SCREEN = (80, 24)
_ELLIPSIS = "…"


def screen_width() -> int:
    """Return the columns of the screen, 80 at least."""
    return max(_SCREEN[0], shutil.get_terminal_size(_SCREEN).columns)


def plain_text(text: str) -> str:
    """Show control, format and private characters as escapes: they could drive the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns_of(text: str) -> int:
    """Count the columns of the screen that printable text takes."""
    return len(text) if text.isascii() else sum(map(_columns_of_character, text))


def _columns_of_character(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def counted(number: int, noun: str) -> str:
    """Return ``1 row``, ``2 rows``, ``1,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shorten(text: str, width: int) -> str:
    """Cut the end of a text that is too wide, and mark it."""
    if columns_of(text) <= width:
        return text
    return text[: _fitting(text, 0, width - 1)] + _ELLIPSIS


def shorten_middle(text: str, width: int) -> str:
    """Cut the middle of a name that is too wide: names differ at their ends."""
    if columns_of(text) <= width:
        return text
    tail_width = (width - 1) // 2
    tail = text[::-1][: _fitting(text[::-1], 0, tail_width)][::-1]
    return text[: _fitting(text, 0, width - 1 - tail_width)] + _ELLIPSIS + tail


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Fill a text with spaces, to its right or, for numbers, to its left."""
    space = " " * (width - columns_of(text))
    return space + text if right else text + space


def wrap(text: str, width: int) -> Iterator[str]:
    """Break printable text at a space, else behind a comma, else anywhere; nothing is lost."""
    start = 0
    while (end := start + _fitting(text, start, width)) < len(text):
        end = max(end, start + 1)
        early = start + (end - start) // 3  # a break before this wastes most of the line
        space, comma = text.rfind(" ", early, end + 1), text.rfind(",", early, end)
        if space > start:
            yield text[start:space]
            start = space + 1
        else:
            end = comma + 1 if comma > start else end
            yield text[start:end]
            start = end
    yield text[start:]


def paragraph(text: str, width: int, *, first: str = "", rest: str | None = None) -> Iterator[str]:
    """Wrap a text under a first line's beginning; further lines begin with ``rest``."""
    indent = " " * columns_of(first) if rest is None else rest
    beginnings = iter([first])
    for line in wrap(plain_text(text), width - max(columns_of(first), columns_of(indent))):
        yield (next(beginnings, indent) + line).rstrip()


def _fitting(text: str, start: int, width: int) -> int:
    """Count the characters from ``start`` on that fit into ``width`` columns."""
    if text.isascii():
        return min(width, len(text) - start)
    end = start
    while end < len(text):
        width -= _columns_of_character(text[end])
        if width < 0:
            break
        end += 1
    return end - start


def grid(
    heads: Sequence[str], rows: Iterable[Sequence[str]], width: int, right: frozenset[int]
) -> Iterator[tuple[str, ...]]:
    """Align cells in columns; where they do not fit, the first stands on a line of its own.

    Args:
        heads: Headings.
        rows: Cells, in the order of the headings.
        width: Columns of the screen.
        right: Places of the columns that hold numbers.

    Yields:
        The lines of the headings, then those of each row: one, or two where it is stacked.
    """
    cells = [tuple(heads), *(tuple(plain_text(cell) for cell in row) for row in rows)]
    widths = [max(columns_of(row[i]) for row in cells) for i in range(len(heads))]
    stacked = sum(widths) + len(GUTTER) * (len(widths) - 1) > width
    for row in cells:
        texts = [
            padded(cell, wide, right=place in right)
            for place, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        if stacked:
            yield texts[0].rstrip(), (GUTTER + GUTTER.join(texts[1:])).rstrip()
        else:
            yield (GUTTER.join(texts).rstrip(),)
