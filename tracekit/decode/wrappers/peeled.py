"""A log line with one wrapping taken off, and what the wrapping told."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["HEADER", "RFC3339", "YEARLESS", "Peel", "Peeled", "to_us", "without_noise"]

HEADER: Final = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}(?: |$)")
"""The begin of a klog header; a cut line may end behind its stamp."""
RFC3339: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,12})?(?:Z|[+-]\d\d:?\d\d)"

_NOISE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x00|\ufeff")
_TABLE_EDGE: Final = re.compile(r"^\u2502 ?|\s*\u2502\s*$")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

YEARLESS = tuple[int, int, int]
"""Month, day and µs since midnight."""


@dataclass(slots=True, kw_only=True)
class Peeled:
    """What is left of a line, and what its wrapping told of it.

    Attributes:
        text: The line without the wrapping.
        at_us: Absolute time of the wrapping, µs since 1970 UTC.
        stamp: Time of a wrapping that tells neither year nor zone.
        stream: Lines of one stream follow each other; others may stand between them.
        partial: The line goes on in the next one of its stream.
        component, node: Who wrote it, where the wrapping names them.
        strong: The wrapping is beyond doubt, whatever the text is.
        damaged: The wrapping is cut or broken; its text is what could be read of it.
    """

    text: str
    at_us: int | None = None
    stamp: YEARLESS | None = None
    stream: str = ""
    partial: bool = False
    component: str | None = None
    node: str | None = None
    strong: bool = False
    damaged: bool = False


Peel = Callable[[str], Peeled | None]


def without_noise(line: str) -> str:
    """Take off what terminals, editors and copytruncate put around a line."""
    line = line.removesuffix("\r")
    if "\x1b" in line or "\x00" in line or "\ufeff" in line:
        line = _NOISE.sub("", line)
    if line.isascii() or "\u2502" not in line:
        return line
    return _TABLE_EDGE.sub("", line)


def to_us(text: str) -> int | None:
    """Read RFC 3339 as µs since 1970 UTC; digits behind the microsecond are cut off."""
    try:
        at = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    return (at - _EPOCH) // _MICROSECOND if at.tzinfo is not None else None
