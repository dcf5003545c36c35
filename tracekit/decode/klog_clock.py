"""The yearless clock of a log: New Years counted from the stamps, or known from outside.

A stamp is microseconds since 2000-01-01 in the year 2000 + 4 * (New Years passed before it):
leap years all, so 29 February has its place.

Source: klog v2 ``internal/buffer/buffer.go`` FormatHeader, which prints no year.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracekit.decode.klog_rows import NO_DAY, Bytes, Ints

__all__ = [
    "CYCLE_DAYS",
    "YearClock",
    "day_numbers",
    "days_of",
    "stamps_of",
    "year_near",
    "year_of",
    "years_of",
]

CYCLE_DAYS: Final = 1461  # days from 1 January of a leap year to that of the next
_HALF_YEAR_DAYS: Final = 180
_DAY_US: Final = 86_400_000_000
_EPOCH: Final = datetime(1970, 1, 1)
_FEBRUARY_29: Final = 59  # days since 1 January


def _day_table() -> Ints:
    """Days since 1 January by month * 100 + day in a leap year, NO_DAY where none is."""
    days = np.full(10_000, NO_DAY, np.int64)
    passed = 0
    for month in range(1, 13):
        length = calendar.monthrange(2000, month)[1]
        days[month * 100 + 1 : month * 100 + 1 + length] = passed + np.arange(length)
        passed += length
    return days


_DAY_TABLE: Final = _day_table()


def day_numbers(stamps: Bytes) -> Ints:
    """Return the day of each header (``Lmmdd ...``) since 1 January, NO_DAY where none is."""
    digits = stamps[:, 1:5].astype(np.int64) - 48
    days: Ints = _DAY_TABLE[digits @ np.array([1000, 100, 10, 1])]
    return days


def days_of(month: int, day: int) -> int:
    """Return the day since 1 January of a leap year, NO_DAY where the date is none."""
    return int(_DAY_TABLE[month * 100 + day]) if 0 < month < 13 and 0 < day < 32 else NO_DAY


@dataclass(frozen=True, slots=True)
class YearClock:
    """The day last seen and how many New Years had passed before it."""

    step: int = 0
    day: int | None = None

    def place(self, days: Ints) -> tuple[Ints, YearClock]:
        """Return the days since 2000-01-01, and the clock behind the last.

        A step back by more than half a year is a New Year; a step ahead by more than half a
        year is a late line of the year before, not a new year for each such line.

        Args:
            days: Day of each header since 1 January, or NO_DAY.
        """
        days = days.copy()
        known = days != NO_DAY
        seen = days[known]
        if not seen.size:
            return days, self
        before = np.concatenate([seen[:1] if self.day is None else [self.day], seen[:-1]])
        jump = seen - before
        turns = (jump < -_HALF_YEAR_DAYS).astype(np.int64) - (jump > _HALF_YEAR_DAYS)
        steps = self.step + np.cumsum(turns)
        days[known] = seen + steps * CYCLE_DAYS
        return days, YearClock(int(steps[-1]), int(seen[-1]))

    def at(self, day: int) -> YearClock:
        """Return the clock behind one header, as ``place`` does for many.

        Args:
            day: Its day since 1 January.
        """
        jump = 0 if self.day is None else day - self.day
        turn = (jump < -_HALF_YEAR_DAYS) - (jump > _HALF_YEAR_DAYS)
        return YearClock(self.step + turn, day)


def year_near(day: int, at_us: int) -> int:
    """Return the year of one header, as ``years_of`` does for many."""
    at = _EPOCH + timedelta(microseconds=at_us)
    apart = day - int(_DAY_TABLE[at.month * 100 + at.day])
    return at.year - (apart > _HALF_YEAR_DAYS) + (apart < -_HALF_YEAR_DAYS)


def years_of(days: Ints, at_us: Ints) -> Ints:
    """Return the year of headers whose absolute time is known to within half a year.

    Args:
        days: Day of each header since 1 January in a leap year.
        at_us: About when it was, µs since 1970 UTC; the header's zone may differ.
    """
    years, own = _calendar(at_us)
    apart = days - own
    nearest: Ints = years - (apart > _HALF_YEAR_DAYS) + (apart < -_HALF_YEAR_DAYS)
    return nearest


def year_of(at_us: int) -> int:
    """Return the year, in UTC, of a time in µs since 1970."""
    return int(_calendar(np.array([at_us]))[0][0])


def stamps_of(at_us: Ints, base_year: int) -> Ints:
    """Put absolute times into the yearless clock of a log that writes UTC.

    Args:
        at_us: µs since 1970 UTC.
        base_year: Year of the log's first record.
    """
    years, days = _calendar(at_us)
    stamps: Ints = (days + (years - base_year) * CYCLE_DAYS) * _DAY_US + at_us % _DAY_US
    return stamps


def _calendar(at_us: Ints) -> tuple[Ints, Ints]:
    """Return the year of each time, and its day since 1 January of a leap year."""
    dates = (at_us // _DAY_US).astype("datetime64[D]")
    starts: NDArray[np.datetime64] = dates.astype("datetime64[Y]")
    years = starts.astype(np.int64) + 1970
    days = (dates - starts.astype("datetime64[D]")).astype(np.int64)
    is_leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    return years, days + (~is_leap & (days >= _FEBRUARY_29))
