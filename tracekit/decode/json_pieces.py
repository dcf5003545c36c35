"""JSON values one after another, cut out of text line by line.

kubectl prints one object pretty, many as a List, a watch as objects without anything between
them, and watch events one a line; ``jq`` prints the same with other indents. A pretty value
ends with its bracket in the first column; the items of a pretty list end with theirs, so that
a list of any length is read an item at a time.

Source: cli-runtime ``printers/json.go`` (MarshalIndent with four spaces).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import orjson

__all__ = ["JsonPiece", "JsonPieces", "loads"]

_START: Final = re.compile(rb'\{[ \t]*(?:["}]|\r?$)|\[[ \t]*(?:[{\]]|\r?$)')
_ITEMS: Final = re.compile(rb'([ \t]+)"items" ?: ?\[$')
_KIND: Final = re.compile(rb'^[ \t]{1,8}"(kind|apiVersion)" ?: ?"([^"\\]*)",?$', re.MULTILINE)
_INDENT: Final = re.compile(rb"[ \t]*")
_CLOSER: Final = {b"{": b"}", b"[": b"]"}


@dataclass(frozen=True, slots=True)
class JsonPiece:
    """Bytes that should be one JSON value.

    Attributes:
        line_no: 1-based line on which it starts.
        data: The bytes.
        kind, api_version: What the list says that it is an item of; empty for no item.
        fault: Why it is no whole value; empty when it may be one.
    """

    line_no: int
    data: bytes
    kind: str = ""
    api_version: str = ""
    fault: str = ""


@dataclass(slots=True)
class _Open:
    """A pretty value that is not closed yet."""

    line_no: int
    bracket: bytes
    lines: list[bytes] = field(default_factory=list)
    indent: bytes | None = None
    list_indent: bytes | None = None
    item_indent: bytes = b""
    item_no: int = 0
    item: list[bytes] = field(default_factory=list)
    owner: tuple[str, str] = ("", "")


class JsonPieces:
    """Takes lines, gives pieces; ``wants`` tells whether a line belongs to JSON."""

    def __init__(self) -> None:
        self._open: _Open | None = None

    def wants(self, line: bytes) -> bool:
        """Tell whether a line goes on with a value, or begins one."""
        return self._open is not None or _START.match(line) is not None

    def feed(self, line: bytes, line_no: int) -> list[JsonPiece]:
        """Take one line, without its end; return the values that it completes."""
        line = line.rstrip()
        if self._open is None:
            return self._begin(line, line_no)
        if self._open.bracket == b"{" and _START.match(line):
            return [*self.finish("another value begins"), *self._begin(line, line_no)]
        if line in (b"}", b"]") and line == _CLOSER[self._open.bracket]:
            return self._end(line)
        return self._go_on(line, line_no)

    def finish(self, why: str = "the source ends") -> list[JsonPiece]:
        """Return what is left of a value that never ended."""
        open_, self._open = self._open, None
        if open_ is None:
            return []
        lines = [*open_.lines, *open_.item]
        return [JsonPiece(open_.line_no, b"\n".join(lines), fault=f"it is cut: {why}")]

    def _begin(self, line: bytes, line_no: int) -> list[JsonPiece]:
        if line not in (b"{", b"[") and line[-1:] in (b"}", b"]"):
            return [JsonPiece(line_no, line)]
        self._open = _Open(line_no, line[:1], [line])
        if line == b"[":
            self._open.list_indent = b""
        return []

    def _go_on(self, line: bytes, line_no: int) -> list[JsonPiece]:
        open_ = self._open
        assert open_ is not None
        if open_.list_indent is not None:
            return self._in_list(open_, line, line_no)
        open_.lines.append(line)
        if open_.indent is None:
            found = _INDENT.match(line)
            open_.indent = found[0] if found else b""
        items = _ITEMS.match(line)
        if items and items[1] == open_.indent:
            open_.list_indent = items[1]
            told = dict(_KIND.findall(b"\n".join(open_.lines)))
            kind, api_version = (told.get(n, b"") for n in (b"kind", b"apiVersion"))
            open_.owner = kind.decode("utf-8", "replace"), api_version.decode("utf-8", "replace")
        return []

    def _in_list(self, open_: _Open, line: bytes, line_no: int) -> list[JsonPiece]:
        if not open_.item:
            text = line.lstrip()
            if len(text) > 1 and text[:1] == b"{" and text.endswith((b"}", b"},")):
                return [JsonPiece(line_no, text.rstrip(b","), *open_.owner)]
            if text == b"{":
                open_.item_indent, open_.item_no = line[:-1], line_no
                open_.item.append(line)
            else:
                open_.lines.append(line)
                if text[:1] == b"]":
                    open_.list_indent = None
            return []
        open_.item.append(line)
        if line not in (open_.item_indent + b"}", open_.item_indent + b"},"):
            return []
        data = b"\n".join(open_.item).rstrip(b",")
        open_.item = []
        return [JsonPiece(open_.item_no, data, *open_.owner)]

    def _end(self, line: bytes) -> list[JsonPiece]:
        open_, self._open = self._open, None
        assert open_ is not None
        if open_.item:
            lines = [*open_.lines, *open_.item]
            return [JsonPiece(open_.line_no, b"\n".join(lines), fault="an item of it is cut")]
        data = b"\n".join([*open_.lines, line])
        # An array has been given item by item; a list still tells its kind and revision.
        return [] if data == b"[\n]" and open_.bracket == b"[" else [JsonPiece(open_.line_no, data)]


def loads(data: bytes) -> object:
    """Parse a piece; bytes that are not UTF-8 become U+FFFD.

    Raises:
        ValueError: If it is no JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return orjson.loads(data.decode("utf-8", "replace"))
