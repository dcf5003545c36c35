"""Stamps and evidence in, year and zone out."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.recordings import Recordings
from tracekit.errors import UsageError
from tracekit.model.diagnostics import Diagnostic
from tracekit.replay.log_clock import (
    LogClock,
    LogClockEvidence,
    StampSpan,
    header_time_us,
    parse_timezone,
    resolve_log_clock,
    year_step_of,
)

US = timedelta(microseconds=1)


def stamp(text: str, *, step: int = 0) -> int:
    """``"1201 15:59:20"`` as microseconds of the yearless clock."""
    at = datetime.strptime(f"{2000 + 4 * step} {text}", "%Y %m%d %H:%M:%S")
    return (at - datetime(2000, 1, 1)) // US


def utc(text: str) -> int:
    return (
        datetime.fromisoformat(text).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    ) // US


def span(first: str, last: str, *, step: int = 0) -> StampSpan:
    return StampSpan(step, stamp(first, step=step), stamp(last, step=step))


DECEMBER = span("1201 15:59:04", "1201 16:09:00")


def one(evidence: LogClockEvidence) -> tuple[LogClock, tuple[Diagnostic, ...]]:
    clocks, notes = resolve_log_clock(evidence)
    assert len(clocks) == 1
    return clocks[0], notes


@pytest.mark.parametrize(
    ("text", "year", "offset", "expected"),
    [
        ("1201 15:59:20", 2026, 0, "2026-12-01T15:59:20"),
        ("0101 00:00:00", 1970, 0, "1970-01-01T00:00:00"),
        ("0228 10:00:00", 2026, 0, "2026-02-28T10:00:00"),
        ("0301 10:00:00", 2026, 0, "2026-03-01T10:00:00"),
        ("0229 10:00:00", 2028, 0, "2028-02-29T10:00:00"),
        ("1231 23:00:00", 2027, -3600, "2028-01-01T00:00:00"),
        ("0926 19:59:07", 2017, 8 * 3600, "2017-09-26T11:59:07"),  # sample 64
    ],
)
@pytest.mark.parametrize("step", [0, 1, 3, -1])
def test_header_time(text: str, year: int, offset: int, expected: str, step: int) -> None:
    at = stamp(text, step=step)
    assert year_step_of(at) == step
    assert header_time_us(at, year, offset) == utc(expected)


@pytest.mark.parametrize(
    ("text", "at", "offset"),
    [
        ("UTC", "2026-07-01", 0),
        ("Z", "2026-07-01", 0),
        ("+08:00", "2026-07-01", 8 * 3600),
        ("-0330", "2026-07-01", -3 * 3600 - 1800),
        ("+5", "2026-07-01", 5 * 3600),
        ("UTC+01:00", "2026-07-01", 3600),
        ("Europe/Berlin", "2026-07-01", 7200),
        ("Europe/Berlin", "2026-12-01", 3600),
        ("Asia/Kathmandu", "2026-12-01", 5 * 3600 + 2700),
    ],
)
def test_zone(text: str, at: str, offset: int) -> None:
    found = datetime.fromisoformat(at).replace(tzinfo=parse_timezone(text)).utcoffset()
    assert found == timedelta(seconds=offset)


@pytest.mark.parametrize("text", ["", "Mars/Olympus", "+99:00", "../etc/passwd", "+08:00x"])
def test_unknown_zone_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no time zone"):
        parse_timezone(text)


def test_told_year_and_zone_are_observed() -> None:
    clock, notes = one(
        LogClockEvidence(
            spans=(span("0701 12:00:00", "0701 13:00:00"),),
            log_year=2019, log_timezone="Europe/Berlin", created_year=2020,
            window_us=(utc("2026-07-01T00:00:00"), utc("2026-07-02T00:00:00")),
        )
    )  # fmt: skip
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2019, 7200, "observed")
    assert "--log-year" in clock.evidence
    assert "Europe/Berlin" in clock.evidence
    assert notes == ()


def test_told_year_alone_leaves_the_zone_assumed() -> None:
    clock, notes = one(LogClockEvidence(spans=(DECEMBER,), log_year=2026))
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2026, 0, "unknown")
    assert notes == (Diagnostic(code="LOG_CLOCK_ASSUMED", position=0, detail=clock.evidence),)


def test_zone_that_changes_within_the_log_is_not_certain() -> None:
    clock, _ = one(
        LogClockEvidence(
            spans=(span("0601 00:00:00", "1201 00:00:00"),),
            log_year=2026, log_timezone="Europe/Berlin",
        )
    )  # fmt: skip
    assert (clock.utc_offset_seconds, clock.certainty) == (7200, "estimated")
    assert "changes its offset" in clock.evidence


def test_preamble_year_and_new_years() -> None:
    # Sample 80: created 2019/12/31, rolls into 2020.
    clocks, _ = resolve_log_clock(
        LogClockEvidence(
            spans=(
                span("0101 00:00:00", "0101 00:00:01", step=1),
                span("1231 23:59:58", "1231 23:59:59"),
            ),
            created_year=2019, log_timezone="UTC",
        )
    )  # fmt: skip
    assert [(c.year_step, c.year, c.certainty) for c in clocks] == [
        (0, 2019, "estimated"), (1, 2020, "estimated"),
    ]  # fmt: skip
    assert "Log file created at" in clocks[0].evidence


def test_utc_wins_when_the_log_overlaps_the_stream_there() -> None:
    clock, notes = one(
        LogClockEvidence(
            spans=(DECEMBER,),
            window_us=(utc("2026-12-01T15:00:00"), utc("2026-12-01T16:05:00")),
            modified_us=utc("2031-05-01T00:00:00"),
        )
    )
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2026, 0, "estimated")
    assert notes == ()


@pytest.mark.parametrize("hours", [8, -7, 5.75, 12, -12, 14])
def test_zone_of_the_best_overlap(hours: float) -> None:
    shift = timedelta(hours=hours)
    begin, end = datetime(2026, 12, 31, 22), datetime(2026, 12, 31, 23)
    local = [f"{t + shift:%m%d %H:%M:%S}" for t in (begin, end)]
    year = (begin + shift).year
    clock, _ = one(
        LogClockEvidence(
            spans=(span(*local),),
            window_us=(utc("2026-12-31T22:00:00"), utc("2026-12-31T23:00:00")),
        )
    )
    assert (clock.year, clock.utc_offset_seconds) == (year, hours * 3600)
    assert clock.certainty == "estimated"


def test_log_far_from_the_stream_is_not_bent_to_it() -> None:
    clock, notes = one(
        LogClockEvidence(
            spans=(DECEMBER,),
            window_us=(utc("2026-06-01T00:00:00"), utc("2026-06-02T00:00:00")),
            modified_us=utc("2025-12-01T16:09:00"),
        )
    )
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2025, 0, "unknown")
    assert len(notes) == 1


def test_matches_tell_year_and_zone_to_the_quarter_hour() -> None:
    # A told stretch would fit UTC too; the facts themselves say +05:45.
    shift = 5 * 3600 + 2700
    facts = [("1201 15:59:20", 300), ("1201 16:00:00", -800), ("1201 16:05:00", 90_000_000)]
    matches = tuple((stamp(t), header_time_us(stamp(t), 2026, shift) + noise) for t, noise in facts)
    clock, notes = one(
        LogClockEvidence(
            spans=(DECEMBER,), matches=matches,
            window_us=(utc("2026-12-01T00:00:00"), utc("2026-12-02T00:00:00")),
        )
    )  # fmt: skip
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2026, shift, "estimated")
    assert "3 facts" in clock.evidence
    assert notes == ()


def test_matches_across_new_year_in_a_zone_ahead() -> None:
    # 00:30 on 1 January in +08:00 is still the year before in UTC.
    spans = (span("0101 00:30:00", "0101 00:40:00"),)
    matches = ((stamp("0101 00:30:00"), utc("2026-12-31T16:30:00")),)
    clock, _ = one(LogClockEvidence(spans=spans, matches=matches))
    assert (clock.year, clock.utc_offset_seconds) == (2027, 8 * 3600)


def test_told_zone_stands_when_matches_give_the_year() -> None:
    matches = ((stamp("1201 16:00:00"), utc("2026-12-01T16:00:00")),)
    clock, _ = one(LogClockEvidence(spans=(DECEMBER,), matches=matches, log_timezone="+01:00"))
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2026, 3600, "estimated")


@pytest.mark.parametrize(
    ("modified", "year"),
    [
        ("2026-12-01T16:09:00", 2026),
        ("2026-12-01T02:00:00", 2026),  # a zone ahead of UTC: less than a day after
        ("2026-11-01T00:00:00", 2025),
        ("2027-01-03T00:00:00", 2026),
    ],
)
def test_file_time_gives_an_assumed_year(modified: str, year: int) -> None:
    clock, notes = one(LogClockEvidence(spans=(DECEMBER,), modified_us=utc(modified)))
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (year, 0, "unknown")
    assert [n.code for n in notes] == ["LOG_CLOCK_ASSUMED"]


def test_file_time_dates_the_last_year_of_the_log() -> None:
    spans = (span("1230 00:00:00", "1231 00:00:00"), span("0101 00:00:00", "0105 00:00:00", step=1))
    clocks, notes = resolve_log_clock(
        LogClockEvidence(spans=spans, modified_us=utc("2027-01-05T00:00:10"))
    )
    assert [c.year for c in clocks] == [2026, 2027]
    assert len(notes) == 1


def test_leap_day_is_never_put_into_a_common_year() -> None:
    spans = (span("0229 10:00:00", "0229 11:00:00"),)
    clock, _ = one(LogClockEvidence(spans=spans, modified_us=utc("2026-03-05T00:00:00")))
    assert clock.year == 2024


def test_nothing_tells_the_year() -> None:
    clock, notes = one(LogClockEvidence(spans=(DECEMBER,)))
    assert (clock.year, clock.certainty) == (None, "unknown")
    assert "nothing tells the year" in clock.evidence
    assert len(notes) == 1


def test_log_without_stamps_has_no_clock() -> None:
    assert resolve_log_clock(LogClockEvidence(spans=())) == ((), ())


def test_recorded_bindings_date_the_scheduler_log(recordings: Recordings) -> None:
    """The log's bind lines against the API server's times of the same bindings."""
    recording = recordings("seed")
    found = re.findall(
        r"^I(\d{4} [\d:]{8})\.(\d{6}) .*"
        r'"Successfully bound pod to node" pod="([^"]*)" node="([^"]*)"',
        (recording / "truth/scheduler-kept.log").read_text(),
        re.MULTILINE,
    )
    bound = {(pod, node): stamp(at) + int(us) for at, us, pod, node in found}
    lines = io.StringIO((recording / "truth/bindings.tsv").read_text())
    cells = [line.rstrip("\n").split("\t") for line in lines][1:]
    ends = [(f"{c[0]}/{c[1]}", c[3], datetime.fromisoformat(c[5])) for c in cells]
    matches = tuple(
        (bound[pod, node], (at - datetime(1970, 1, 1, tzinfo=UTC)) // US)
        for pod, node, at in ends
        if [pod for _, _, pod, _ in found].count(pod) == 1
    )
    assert len(matches) > 20
    spans = (StampSpan(0, min(bound.values()), max(bound.values())),)
    clock, notes = one(LogClockEvidence(spans=spans, matches=matches))
    # traces/README.md: recorded 2026-12-01, UTC.
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2026, 0, "estimated")
    assert notes == ()


def test_wrapping_tells_year_and_zone() -> None:
    """docker json-file: UTC around a header in UTC+8, sample 64."""
    stamp = _stamp_of("0926 19:59:07.162477")
    at = int(datetime(2017, 9, 26, 11, 59, 7, 162748, UTC).timestamp() * 1_000_000)
    evidence = LogClockEvidence(
        spans=(StampSpan(0, stamp, stamp),), wrapped=((stamp, at),), created_year=2001
    )
    (clock,), notes = resolve_log_clock(evidence)
    assert (clock.year, clock.utc_offset_seconds, clock.certainty) == (2017, 28800, "observed")
    assert notes == ()


def test_told_year_stands_above_the_wrapping() -> None:
    stamp = _stamp_of("0926 11:59:07.162477")
    at = int(datetime(2017, 9, 26, 11, 59, 7, tzinfo=UTC).timestamp() * 1_000_000)
    evidence = LogClockEvidence(
        spans=(StampSpan(0, stamp, stamp),), wrapped=((stamp, at),), log_year=2017
    )
    (clock,), _ = resolve_log_clock(evidence)
    assert (clock.year, clock.evidence.split(";")[0]) == (2017, "year told with --log-year")


def test_year_that_a_trace_names() -> None:
    stamp = _stamp_of("0520 07:14:56.717446")
    evidence = LogClockEvidence(
        spans=(StampSpan(0, stamp, stamp),), traced=((stamp, 2023),), modified_us=0
    )
    (clock,), _ = resolve_log_clock(evidence)
    assert (clock.year, clock.certainty) == (2023, "unknown")  # the zone is assumed


def _stamp_of(text: str) -> int:
    at = datetime.strptime(f"2000 {text}", "%Y %m%d %H:%M:%S.%f")
    return (at - datetime(2000, 1, 1)) // timedelta(microseconds=1)
