"""A user's words in, an instant out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tracekit.cli.times import parse_time
from tracekit.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01T15:59:00Z", datetime(2026, 12, 1, 15, 59, tzinfo=UTC)),
        ("2026-12-01t15:59:00z", datetime(2026, 12, 1, 15, 59, tzinfo=UTC)),
        ("2026-12-01T16:59:00.5+01:00", datetime(2026, 12, 1, 15, 59, 0, 500_000, tzinfo=UTC)),
        ("2026-12-01T15:59:44.394122Z", datetime(2026, 12, 1, 15, 59, 44, 394_122, tzinfo=UTC)),
        ("2026-12-01T15:59:44.394122999Z", datetime(2026, 12, 1, 15, 59, 44, 394_122, tzinfo=UTC)),
        ("2026-12-01 10:29 -05:30", datetime(2026, 12, 1, 15, 59, tzinfo=UTC)),
        ("2026-12-01 15:59", datetime(2026, 12, 1, 15, 59, tzinfo=UTC)),
        (" 2026-12-01 15:59:07 ", datetime(2026, 12, 1, 15, 59, 7, tzinfo=UTC)),
        ("2026-12-01T15:59", datetime(2026, 12, 1, 15, 59, tzinfo=UTC)),
        ("2026-12-01", datetime(2026, 12, 1, tzinfo=UTC)),
        ("2028-02-29T00:00:00Z", datetime(2028, 2, 29, tzinfo=UTC)),
    ],
)
def test_time_is_read_as_utc(text: str, expected: datetime) -> None:
    parsed = parse_time(text)
    assert parsed == expected
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "15:59",
        "2026-12-01 15",
        "2026-13-01 15:59",
        "2026-02-29T00:00:00Z",
        "2026-12-01 25:59",
        "2026-12-01T15:59:00+0100",
        "2026-12-01T15:59:00+01:60",
        "2026-12-01T15:59:00 CET",
        "2026-12-01T15:59.5Z",
        "0001-01-01T00:00:00+01:00",
        "\u0662\u0660\u0662\u0666-12-01",
        "12345",
    ],
)
def test_bad_time_is_a_usage_error_that_shows_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_time(text)
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"{text!r} is not a time; write it with a zone as 2026-12-01T15:59:00Z or "
        "2026-12-01T16:59:00.5+01:00, or without one, which is UTC, as '2026-12-01 15:59'"
    )


@settings(deadline=None)
@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1000, 1, 1)))
def test_what_python_prints_is_read_back(instant: datetime) -> None:
    assert parse_time(instant.isoformat()) == instant


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_other_text_is_a_usage_error(text: str) -> None:
    assume(not text.strip()[:4].isdigit())
    with pytest.raises(UsageError, match="is not a time"):
        parse_time(text)
