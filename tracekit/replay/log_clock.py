"""Year and zone of a log, which its headers do not tell: told, inferred with evidence, or assumed.

A stamp is microseconds since 2000-01-01 of a yearless clock: month, day and time stand in the
year 2000 + 4 * year_step, where ``year_step`` counts the New Years passed since the log began.

Source: klog v2 ``buffer.go`` FormatHeader (``mmdd hh:mm:ss.uuuuuu``, process-local time).
"""

from __future__ import annotations

import re
from calendar import isleap
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from statistics import median
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tracekit.errors import UsageError
from tracekit.model.diagnostics import Diagnostic

__all__ = [
    "LogClock",
    "LogClockEvidence",
    "StampSpan",
    "header_time_us",
    "parse_timezone",
    "resolve_log_clock",
    "year_step_of",
]

Certainty = Literal["observed", "estimated", "unknown"]

_DOUBT: Final[tuple[Certainty, ...]] = ("observed", "estimated", "unknown")

_CYCLE_US: Final = 1461 * 86_400_000_000
_DAY_US: Final = 86_400_000_000
_QUARTER_SECONDS: Final = 900
_QUARTER_US: Final = _QUARTER_SECONDS * 1_000_000
# Zones in use lie between UTC-12:00 and UTC+14:00; nearest to UTC first, so that it wins ties.
_OFFSETS: Final = tuple(
    sorted(range(-12 * 3600, 14 * 3600 + 1, _QUARTER_SECONDS), key=lambda s: (abs(s), s))
)
_STEP_ZERO: Final = datetime(2000, 1, 1)
_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIXED_ZONE: Final = re.compile(r"(?:UTC)?([+-])(\d\d?):?(\d\d)?")


@dataclass(frozen=True, slots=True)
class StampSpan:
    """First and last stamp of one ``year_step`` of a log, in its yearless clock."""

    year_step: int
    first_us: int
    last_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogClockEvidence:
    """All that may tell the year and zone of one log.

    Attributes:
        spans: One per year step that has stamps.
        modified_us: Modification time of the file, microseconds since 1970 UTC.
        log_year: Year of the log's first record, told with ``--log-year``.
        log_timezone: Zone told with ``--log-timezone``: an IANA name or ``±HH:MM``.
        created_year: Year of the file's "Log file created at" line.
        window_us: First and last time of the same cluster's etcd stream, microseconds since
            1970 UTC.
        matches: The same facts known from both sides: (stamp, UTC time in microseconds).
        wrapped: Stamps with the time that the wrapping of the record tells, or a record
            in JSON itself: (stamp, UTC time in microseconds).
        traced: Stamps with the year that the record's words name: (stamp, year).
    """

    spans: tuple[StampSpan, ...]
    modified_us: int | None = None
    log_year: int | None = None
    log_timezone: str | None = None
    created_year: int | None = None
    window_us: tuple[int, int] | None = None
    matches: tuple[tuple[int, int], ...] = ()
    wrapped: tuple[tuple[int, int], ...] = ()
    traced: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogClock:
    """One row of ``log_clocks`` without its source: the clock of one year step.

    ``year`` is None when nothing tells it, not even a file time.
    """

    year_step: int
    year: int | None
    utc_offset_seconds: int
    certainty: Certainty
    evidence: str


@dataclass(frozen=True, slots=True)
class _Year:
    """Year of step 0, and what it rests on."""

    value: int | None
    certainty: Certainty
    evidence: str


@dataclass(frozen=True, slots=True)
class _Zone:
    value: tzinfo
    certainty: Certainty
    evidence: str


def year_step_of(stamp_us: int) -> int:
    """Return how many New Years had passed before the stamp."""
    return stamp_us // _CYCLE_US


def header_time_us(stamp_us: int, year: int, utc_offset_seconds: int = 0) -> int:
    """Put a yearless stamp into its year: microseconds since 1970 UTC.

    29 February of a year that has none becomes 1 March.

    Args:
        stamp_us: Stamp of the yearless clock.
        year: Year of the stamp's own year step.
        utc_offset_seconds: What the log's zone is ahead of UTC.
    """
    within = _STEP_ZERO + timedelta(microseconds=stamp_us % _CYCLE_US)
    begin = datetime(year, within.month, 1) - _EPOCH
    since = within - datetime(2000, within.month, 1)
    return (begin + since) // _MICROSECOND - utc_offset_seconds * 1_000_000


def parse_timezone(text: str) -> tzinfo:
    """Read ``--log-timezone``: an IANA name, ``UTC``, or ``±HH:MM``.

    Raises:
        UsageError: If there is no such zone.
    """
    fixed = _FIXED_ZONE.fullmatch(text)
    if fixed is not None:
        ahead = timedelta(hours=int(fixed[2]), minutes=int(fixed[3] or 0))
        if ahead < timedelta(hours=24):
            return timezone(-ahead if fixed[1] == "-" else ahead)
    if text.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"no time zone {text!r}", todo="give an IANA name such as Europe/Berlin, or +HH:MM"
        ) from None


def resolve_log_clock(
    evidence: LogClockEvidence,
) -> tuple[tuple[LogClock, ...], tuple[Diagnostic, ...]]:
    """Decide year and zone of a log; one row per year step, ascending.

    What was told wins, then the wrapping's own time. Else the file's own "created at" year;
    else facts known from both log and etcd stream; else a year that the log's words name;
    else the year and zone in which the log overlaps the stream, UTC first; else the file
    time's year and UTC, which is an assumption: certainty ``unknown``.

    Returns:
        The clocks, and LOG_CLOCK_ASSUMED when year or zone is assumed.

    Raises:
        UsageError: If the told zone does not exist.
    """
    if not evidence.spans:
        return (), ()
    year, zone = _told(evidence)
    if year is None or zone is None:
        year, zone = _wrapped(evidence, year, zone)
    year = year or _created(evidence)
    if year is None or zone is None:
        year, zone = _matched(evidence, year, zone)
    year = year or _traced(evidence)
    if year is None or zone is None:
        year, zone = _overlapping(evidence, year, zone)
    year = year or _assumed_year(evidence)
    zone = zone or _Zone(UTC, "unknown", "zone assumed UTC")
    ordered = sorted(evidence.spans, key=lambda s: s.year_step)
    clocks = tuple(_clock(span, year, zone) for span in ordered)
    assumed = [c for c in clocks if c.certainty == "unknown"][:1]
    notes = (Diagnostic(code="LOG_CLOCK_ASSUMED", position=0, detail=c.evidence) for c in assumed)
    return clocks, tuple(notes)


def _told(evidence: LogClockEvidence) -> tuple[_Year | None, _Zone | None]:
    year, zone = None, None
    if evidence.log_year is not None:
        year = _Year(evidence.log_year, "observed", "year told with --log-year")
    if evidence.log_timezone is not None:
        told = parse_timezone(evidence.log_timezone)
        zone = _Zone(told, "observed", f"zone {evidence.log_timezone} told with --log-timezone")
    return year, zone


def _created(evidence: LogClockEvidence) -> _Year | None:
    if evidence.created_year is None:
        return None
    return _Year(evidence.created_year, "estimated", 'year of the line "Log file created at"')


def _traced(evidence: LogClockEvidence) -> _Year | None:
    """Use the year in a record's words, such as the begin of a utiltrace."""
    if not evidence.traced:
        return None
    bases = Counter(year - year_step_of(stamp) for stamp, year in evidence.traced)
    words = f"year named by {len(evidence.traced)} records"
    return _Year(bases.most_common(1)[0][0], "estimated", words)


def _wrapped(
    evidence: LogClockEvidence, year: _Year | None, zone: _Zone | None
) -> tuple[_Year | None, _Zone | None]:
    """Use the time that stands around each record."""
    pairs = evidence.wrapped
    if not pairs:
        return year, zone
    base = year.value if year is not None and year.value is not None else _usual_base(pairs)
    offset = _offset_of(pairs, base)[0]
    if offset is None:
        return year, zone
    words = f"the wrapping of {len(pairs)} records"
    if all(header_time_us(stamp, base + year_step_of(stamp)) == utc for stamp, utc in pairs):
        words = "the records themselves"
    return (
        year or _Year(base, "observed", f"year told by {words}"),
        zone or _Zone(_fixed(offset), "observed", f"zone told by {words}"),
    )


def _offset_of(pairs: tuple[tuple[int, int], ...], base: int) -> tuple[int | None, float]:
    """Return the zone's offset in seconds, None where it is none, and the rest in ms."""
    differences = [header_time_us(stamp, base + year_step_of(stamp)) - utc for stamp, utc in pairs]
    middle = round(median(differences))
    offset = round(middle / _QUARTER_US) * _QUARTER_SECONDS
    rest_ms = (middle - offset * 1_000_000) / 1000
    return (offset if -12 * 3600 <= offset <= 14 * 3600 else None), rest_ms


def _matched(
    evidence: LogClockEvidence, year: _Year | None, zone: _Zone | None
) -> tuple[_Year | None, _Zone | None]:
    """Use facts that stand in the log and, with a UTC time, elsewhere."""
    if not evidence.matches:
        return year, zone
    pairs = evidence.matches
    base = year.value if year is not None and year.value is not None else _usual_base(pairs)
    offset, rest_ms = _offset_of(pairs, base)
    if offset is None:
        return year, zone
    words = f"{len(pairs)} facts known from log and stream, {rest_ms:+.1f} ms apart"
    return (
        year or _Year(base, "estimated", f"year by {words}"),
        zone or _Zone(_fixed(offset), "estimated", f"zone by {words}"),
    )


def _usual_base(pairs: tuple[tuple[int, int], ...]) -> int:
    """Return the year of step 0 in which most of the matches come closest."""
    bases: Counter[int] = Counter()
    for stamp, utc in pairs:
        near = _year_of(utc)
        year = min((near - 1, near, near + 1), key=lambda y: abs(header_time_us(stamp, y) - utc))
        bases[year - year_step_of(stamp)] += 1
    return bases.most_common(1)[0][0]


def _overlapping(
    evidence: LogClockEvidence, year: _Year | None, zone: _Zone | None
) -> tuple[_Year | None, _Zone | None]:
    """Use the stretch of the etcd stream: the log was written beside it."""
    if evidence.window_us is None:
        return year, zone
    steps = [span.year_step for span in evidence.spans]
    near = {_year_of(at) - step for at in evidence.window_us for step in steps}
    bases = sorted({b + d for b in near for d in (-1, 0, 1)}, reverse=True)
    if year is not None and year.value is not None:
        bases = [year.value]
    zones = (zone.value,) if zone is not None else (UTC, *map(_fixed, _OFFSETS))
    best, best_overlap = None, 0
    for candidate in zones:
        for base in bases:
            overlap = _overlap_us(evidence, base, candidate)
            if overlap > best_overlap:
                best, best_overlap = (base, candidate), overlap
        if best is not None and candidate is UTC:
            break
    if best is None:
        return year, zone
    words = f"the log overlaps the etcd stream by {best_overlap / 1e6:.0f} s"
    name = _offset_name(best[1])
    return (
        year or _Year(best[0], "estimated", f"year in which {words}"),
        zone or _Zone(best[1], "estimated", f"zone {name}, in which {words}"),
    )


def _overlap_us(evidence: LogClockEvidence, base: int, zone: tzinfo) -> int:
    """Return how long log and stream run together; 1 where they only touch in a moment."""
    assert evidence.window_us is not None
    begin, end = evidence.window_us
    total = 0
    for span in evidence.spans:
        year = base + span.year_step
        offset = _offset_seconds(span.first_us, year, zone)
        first = header_time_us(span.first_us, year, offset)
        last = header_time_us(span.last_us, year, offset)
        shared = min(last, end) - max(first, begin)
        total += max(shared, 1) if shared >= 0 else 0
    return total


def _assumed_year(evidence: LogClockEvidence) -> _Year:
    """Take the file time's year, or the year before when the log would end after it."""
    if evidence.modified_us is None:
        return _Year(None, "unknown", "nothing tells the year")
    last = max(evidence.spans, key=lambda s: s.year_step)
    year = _year_of(evidence.modified_us)
    latest = evidence.modified_us + _DAY_US
    while header_time_us(last.last_us, year) > latest or not _has_day(last.last_us, year):
        year -= 1
    return _Year(year - last.year_step, "unknown", "year assumed from the file's modification time")


def _has_day(stamp_us: int, year: int) -> bool:
    shown = _STEP_ZERO + timedelta(microseconds=stamp_us % _CYCLE_US)
    return isleap(year) or (shown.month, shown.day) != (2, 29)


def _clock(span: StampSpan, year: _Year, zone: _Zone) -> LogClock:
    evidence = f"{year.evidence}; {zone.evidence}"
    if year.value is None:
        offset = _offset_seconds(span.first_us, 2000, zone.value)
        return LogClock(
            year_step=span.year_step, year=None, utc_offset_seconds=offset,
            certainty="unknown", evidence=evidence,
        )  # fmt: skip
    here = year.value + span.year_step
    offset = _offset_seconds(span.first_us, here, zone.value)
    certainty = max(year.certainty, zone.certainty, key=_DOUBT.index)
    if _offset_seconds(span.last_us, here, zone.value) != offset:
        # One offset per year step: what lies behind the change is an hour off.
        evidence += "; the zone changes its offset within the log"
        certainty = max(certainty, "estimated", key=_DOUBT.index)
    return LogClock(
        year_step=span.year_step, year=here, utc_offset_seconds=offset,
        certainty=certainty, evidence=evidence,
    )  # fmt: skip


def _fixed(seconds: int) -> tzinfo:
    return timezone(timedelta(seconds=seconds)) if seconds else UTC


def _offset_seconds(stamp_us: int, year: int, zone: tzinfo) -> int:
    """Return what the zone is ahead of UTC when its clocks show the stamp."""
    shown = _EPOCH + timedelta(microseconds=header_time_us(stamp_us, year))
    offset = shown.replace(tzinfo=zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _offset_name(zone: tzinfo) -> str:
    return datetime(2000, 1, 1, tzinfo=zone).strftime("%Z") or "UTC"


def _year_of(at_us: int) -> int:
    return (_EPOCH + timedelta(microseconds=at_us)).year
