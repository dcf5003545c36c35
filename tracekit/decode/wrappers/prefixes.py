"""What stands before a klog header without a format of its own.

stern, kubetail, ``kubectl logs --prefix``, docker compose, minikube's bullets, MicroShift's
component, ``grep`` file names, an editor's line numbers, log viewers' ``log: ``: all of them
put some words before each line. A header behind them shows what they are; lines without a
header that begin alike lose the same words.

Source: facts/formats.md 1.5.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from tracekit.decode.log_origin import origin_of_words
from tracekit.decode.wrappers.peeled import RFC3339, Peeled, to_us

__all__ = ["Prefixes"]

_PREFIXED: Final = re.compile(
    r"([^\n]{1,240}?)(?=[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^\s\]]+:\d+\])"
)
_PREFIXED_JSON: Final = re.compile(r'([^{"\n]{1,120}? )(?=\{"(?:ts|level|time)":)')
_TIME: Final = re.compile(RFC3339)
_NUMBER: Final = re.compile(r"^\s*\d+\s*[:\-]?\s")
_LAST_KEPT: Final = 16


class Prefixes:
    """The prefixes of one log, as its headers have shown them; the last used one first."""

    def __init__(self) -> None:
        self._shapes: list[re.Pattern[str]] = []

    def peel(self, line: str) -> Peeled | None:
        """Take a prefix off a line with a header, or one seen before off any other line."""
        match = _PREFIXED.match(line) or _PREFIXED_JSON.match(line)
        if match is not None and not _is_inside(match[1]):
            shape = _shape(match[1])
            if shape in self._shapes:
                self._shapes.remove(shape)
            self._shapes.insert(0, shape)
            del self._shapes[_LAST_KEPT:]
            return _peeled(match[1], line[match.end() :])
        for shape in self._shapes:
            if (known := shape.match(line)) is not None:
                return _peeled(known[0], line[known.end() :])
        return None


def _is_inside(prefix: str) -> bool:
    """Tell words of a message that quotes a log line from a prefix.

    Lines of a value of several lines begin with a tab.
    """
    has_tab = "\t" in prefix.lstrip("\t ") or (prefix[:1] == "\t" and prefix.strip() != "")
    return has_tab or prefix.count('"') % 2 == 1


@lru_cache(maxsize=256)
def _shape(prefix: str) -> re.Pattern[str]:
    """Return the pattern of prefixes like this one: other numbers, other indentation."""
    if (number := _NUMBER.match(prefix)) is not None:
        tail = prefix[number.end() :].lstrip()
        return re.compile(r" *\d+(?:[:\-] ?| {1,2})" + re.escape(tail))
    body = re.sub(r"\d+", lambda _: r"\d+", re.escape(prefix.lstrip(" \t")))
    body = body.replace(":", "[:\\-]")  # grep writes a dash on lines of context
    indent = "[ \\t]*" if prefix[:1] in " \t" else ""
    return re.compile(indent + body)


def _peeled(prefix: str, text: str) -> Peeled:
    component, node = origin_of_words(prefix)
    time = _TIME.search(prefix)
    stream = _NUMBER.sub("", _TIME.sub("", prefix)).strip()
    return Peeled(
        text=text,
        at_us=to_us(time[0]) if time else None,
        stream=stream,
        component=component,
        node=node,
    )
