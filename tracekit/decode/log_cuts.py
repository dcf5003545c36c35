"""Records that stop in the middle: at the end of a log, or at the width of a terminal.

Source: ``journalctl`` and ``less -S`` cut lines at the screen's width; pastes end anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tracekit.decode.klog_fields import ends_open, has_open_quote

__all__ = ["begins_a_known_message", "cut_at_width", "is_cut"]

# Beginnings of the scheduler's own messages, which no message ends inside.
_KNOWN: Final = (
    "Unable to schedule ",
    "Successfully bound pod to node",
    "About to try and schedule pod ",
    "Attempting to schedule pod: ",
    "Updating pod condition for ",
    "Error scheduling ",
)
_SHORTEST: Final = 6
_NARROWEST: Final = 72  # no screen that logs are read on is narrower


def begins_a_known_message(message: str, others: Iterable[str]) -> bool:
    """Tell whether a text message is only the beginning of one that is known as a whole.

    Args:
        message: Message of the last record.
        others: Messages of the records before it.
    """
    if len(message) < _SHORTEST or " " in message[-1:]:
        return False
    if any(known.startswith(message) and known.rstrip() != message for known in _KNOWN):
        return True
    longer = (
        other[len(message) : len(message) + 1] for other in others if other.startswith(message)
    )
    return any(letter.isalnum() for letter in longer)


def is_cut(body: str, *, is_last: bool, terminated: bool) -> bool:
    """Tell whether a record stops in the middle.

    Args:
        body: The record without wrapping and without its last newline.
        is_last: It is the last of its log.
        terminated: It ends with a newline.
    """
    if is_last and ends_open(body, terminated=terminated):
        return True
    return has_open_quote(body)


def cut_at_width(widths: Sequence[int], is_provably_cut: Sequence[bool]) -> list[int]:
    """Return the lines that a screen has cut.

    Lines as wide as the widest of all are, when one of them is provably cut.

    Args:
        widths: Width of each line, 0 for what is no line of its own.
        is_provably_cut: The line ends inside quotes or brackets.
    """
    widest = max(widths, default=0)
    if widest < _NARROWEST:
        return []
    at_edge = [place for place, width in enumerate(widths) if width == widest]
    return at_edge if len(at_edge) > 1 and any(is_provably_cut[p] for p in at_edge) else []
