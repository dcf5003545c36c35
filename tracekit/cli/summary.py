"""The table that ``tracekit collect`` ends with: taken for what, stored how much, odd how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.cli.screen import counted, grid, paragraph, plain_text, screen_width, shorten
from tracekit.model.diagnostics import CODES
from tracekit.model.options import CollectSummary, Oddity

__all__ = ["summary_lines"]

_HEADS = ("source", "taken for", "records", "stored", "known")
_NUMBERS = frozenset({2, 3, 4})
_WORDS = 160


def summary_lines(summaries: Sequence[CollectSummary]) -> Iterator[str]:
    """Write a line a source, what was odd in it below, and a line over all.

    ``known`` are records that the store had already, from this source or another.

    Args:
        summaries: What became of each source.

    Yields:
        Lines no wider than the screen, but for a source's name that is.
    """
    width = screen_width()
    heads, *rows = grid(_HEADS, map(_cells, summaries), width, _NUMBERS)
    yield from heads
    for summary, lines in zip(summaries, rows, strict=True):
        yield from lines
        yield from _odd(summary, width)
    if len(summaries) > 1:
        yield from paragraph(_over_all(summaries), width)


def _cells(summary: CollectSummary) -> tuple[str, ...]:
    counts = (summary.records, summary.stored, summary.duplicates)
    return (summary.source, _taken_for(summary), *(f"{count:,}" for count in counts))


def _taken_for(summary: CollectSummary) -> str:
    """Name the format, and for a log who wrote it where that is known."""
    writer = " ".join(filter(None, (summary.component, summary.node)))
    return f"{summary.format} ({writer})" if writer else summary.format


def _odd(summary: CollectSummary, width: int) -> Iterator[str]:
    for oddity in summary.odd:
        code = CODES[oddity.code]
        lost = "" if code.severity == "INFO" else ", data lost"
        text = f"{oddity.code} × {oddity.count:,}{lost}: {code.meaning}; {code.remedy}"
        yield from paragraph(text, width, first="    ! ", rest="      ")
        if oddity.detail:
            yield from paragraph(_first(oddity), width, first="      ", rest="      ")
    if summary.gaps:
        text = f"{counted(summary.gaps, 'gap')} in its record: tracekit query gaps"
        yield from paragraph(text, width, first="    ! ", rest="      ")


def _first(oddity: Oddity) -> str:
    place = f"first at {oddity.position:,}" if oddity.position else "first"
    return f"{place}: {shorten(plain_text(oddity.detail), _WORDS)}"


def _over_all(summaries: Sequence[CollectSummary]) -> str:
    odd = sum(bool(s.odd or s.gaps) for s in summaries)
    return (
        f"{counted(len(summaries), 'source')}: {sum(s.stored for s in summaries):,} stored, "
        f"{sum(s.duplicates for s in summaries):,} known already, "
        f"{'nothing odd' if not odd else f'{odd} with something odd'}"
    )
