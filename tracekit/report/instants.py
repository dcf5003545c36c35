"""Instants and the one time axis that every plot of a page shares.

Plots are ``PLOT_WIDTH`` units wide whatever their size on the screen; an instant has one
place on all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

__all__ = ["PLOT_WIDTH", "Tick", "Window", "format_clock", "format_instant", "parse_instant"]

PLOT_WIDTH = 2000

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10800,
    21600,
    43200,
    86400,
    172800,
    604800,
    1209600,
    2592000,
    7776000,
    31536000,
)
_MAX_TICKS = 8


@dataclass(frozen=True, slots=True)
class Tick:
    """One label of an axis, at ``left`` percent of the plot."""

    left: float
    label: str
    edge: str = ""


def parse_instant(value: str) -> int | None:
    """Return an RFC 3339 instant in microseconds since the epoch; None when it is none.

    Source: RFC 3339 §5.6; a missing zone is read as UTC, as the query room prints it.
    """
    match = _RFC3339.fullmatch(value)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(g) for g in match.groups()[:6])
    micros = int((match[7] or "0").ljust(6, "0")[:6])
    try:
        at = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    seconds = (at - _EPOCH) // timedelta(seconds=1) + max(0, second - 59) - _offset(match[8])
    return seconds * 1_000_000 + micros


def _offset(zone: str | None) -> int:
    if zone is None or zone in "Zz":
        return 0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60)


def format_clock(at_us: int, digits: int = 3) -> str:
    """Return ``16:03:04.729``: time of day in UTC with ``digits`` of the second."""
    at = _EPOCH + timedelta(microseconds=at_us)
    fraction = f"{at.microsecond:06d}"[:digits]
    return f"{at:%H:%M:%S}" + (f".{fraction}" if digits else "")


def format_instant(at_us: int, digits: int = 0) -> str:
    """Return ``2026-12-01 16:03:04``, in UTC."""
    at = _EPOCH + timedelta(microseconds=at_us)
    return f"{at.year:04d}-{at:%m-%d} {format_clock(at_us, digits)}"


@dataclass(frozen=True, slots=True)
class Window:
    """The stretch of time that every plot shows, in microseconds since the epoch."""

    begin: int
    end: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return (self.end - self.begin) / 1e6

    @property
    def one_day(self) -> bool:
        """Whether the whole window lies on one UTC day."""
        return format_instant(self.begin)[:10] == format_instant(self.end)[:10]

    def x(self, at_us: int | None) -> int:
        """Return an instant's place on a plot; None is the end, outside is clipped."""
        at = self.end if at_us is None else min(max(at_us, self.begin), self.end)
        length = max(self.end - self.begin, 1)
        return round((at - self.begin) * PLOT_WIDTH / length)

    def at(self, x: int) -> int:
        """Return the instant at a place on a plot."""
        return self.begin + (self.end - self.begin) * x // PLOT_WIDTH

    def label(self, at_us: int, digits: int = 3) -> str:
        """Return an instant as a row prints it: with its day only when days differ."""
        return format_clock(at_us, digits) if self.one_day else format_instant(at_us, digits)

    def ticks(self) -> tuple[Tick, ...]:
        """Return at most eight axis labels on round times."""
        step = next((s for s in _STEPS if self.seconds / s <= _MAX_TICKS), _STEPS[-1])
        first = -(-self.begin // (step * 1_000_000)) * step * 1_000_000
        return tuple(self._tick(at, step) for at in range(first, self.end + 1, step * 1_000_000))

    def _tick(self, at_us: int, step: int) -> Tick:
        left = self.x(at_us) * 100 / PLOT_WIDTH
        at = format_instant(at_us)
        label = at[:10] if step >= 86400 else at[11:] if step < 60 else at[11:16]
        if not self.one_day and step < 86400:
            label = f"{at[5:10]} {label}"
        return Tick(round(left, 2), label, "first" if left < 3 else "last" if left > 97 else "")
