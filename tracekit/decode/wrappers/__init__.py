"""The wrappings that logs come in, each in a module of its own, taken off in turn."""

from __future__ import annotations

from tracekit.decode.wrappers import cri, journald, json_lines, timestamps
from tracekit.decode.wrappers.peeled import HEADER, Peel, Peeled, without_noise
from tracekit.decode.wrappers.prefixes import Prefixes

__all__ = ["HEADER", "WRAPPERS", "Peeled", "Prefixes", "unwrap", "without_noise"]

WRAPPERS: tuple[Peel, ...] = (json_lines.peel, cri.peel, journald.peel, timestamps.peel)
_DEPTH = 4
_INSIDE = ("\t", " ", "")  # how a line begins that is the middle of a record


def unwrap(line: str, prefixes: Prefixes) -> Peeled:
    """Take all wrappings off a line.

    The innermost time wins, being nearest to the record; names come from any of them.

    Args:
        line: One physical line without its newline.
        prefixes: The prefixes of this log, which learns new ones.
    """
    whole = Peeled(text=without_noise(line))
    if HEADER.match(whole.text):
        return whole
    for _ in range(_DEPTH):
        if whole.strong and whole.text[:1] in _INSIDE:
            break
        found = _peel_first(whole.text)
        if found is None:
            found = prefixes.peel(whole.text)
        if found is None:
            break
        if found.strong and not whole.stream:
            found.text = without_noise(found.text)
            whole = found
        else:
            _join(whole, found)
        if HEADER.match(whole.text):
            break
    return whole


def _peel_first(text: str) -> Peeled | None:
    for peel in WRAPPERS:
        if (found := peel(text)) is not None:
            return found
    return None


def _join(whole: Peeled, found: Peeled) -> None:
    whole.text = without_noise(found.text)
    whole.at_us = whole.at_us if found.at_us is None else found.at_us
    whole.stamp = found.stamp or whole.stamp
    whole.stream = f"{whole.stream}|{found.stream}"
    whole.partial |= found.partial
    whole.component = found.component or whole.component
    whole.node = found.node or whole.node
    whole.strong |= found.strong
    whole.damaged |= found.damaged
