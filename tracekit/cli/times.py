"""The TIME argument of ``--at``, ``--since`` and ``--until``."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tracekit.errors import UsageError

__all__ = ["parse_time"]

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)"
    r" ?([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?"
)
_FORMS = (
    "write it with a zone as 2026-12-01T15:59:00Z or 2026-12-01T16:59:00.5+01:00, "
    "or without one, which is UTC, as '2026-12-01 15:59'"
)


def parse_time(text: str) -> datetime:
    """Read a time as a user writes it.

    Args:
        text: RFC 3339 with a zone, or the same without one, which is UTC; seconds and the clock
            may be left out. Digits below a microsecond are cut.

    Returns:
        The instant, in UTC.

    Raises:
        UsageError: If the text is no such time; the message shows the right forms.

    Source: RFC 3339 §5.6.
    """
    match = _TIME.fullmatch(text.strip())
    day, clock, zone = match.groups() if match else ("", None, None)
    try:
        # With no match the day is empty, which is no date either: one way out for both.
        local = datetime.fromisoformat(f"{day}T{clock or '00:00'}{(zone or 'Z').upper()}")
        return local.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time", todo=_FORMS) from error
