"""Sums up what became of a source: its oddities by kind, its flushes as one."""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.model.diagnostics import Diagnostic
from tracekit.model.options import CollectSummary, Oddity

__all__ = ["oddities", "summed"]


def oddities(notes: Sequence[Diagnostic]) -> tuple[Oddity, ...]:
    """Count diagnostics by code, in the order of their first; each shows its first."""
    kinds: dict[str, list[Diagnostic]] = {}
    for note in notes:
        kinds.setdefault(note.code, []).append(note)
    return tuple(
        Oddity(code=code, count=len(found), position=found[0].position, detail=found[0].detail)
        for code, found in kinds.items()
    )


def summed(source: str, format_name: str, flushes: Sequence[CollectSummary]) -> CollectSummary:
    """Make one summary of a live source's flushes; a hole counts as data lost."""
    return CollectSummary(
        source=source,
        format=format_name,
        records=sum(s.records for s in flushes),
        stored=sum(s.stored for s in flushes),
        duplicates=sum(s.duplicates for s in flushes),
        diagnostics=sum(s.diagnostics for s in flushes),
        gaps=sum(s.gaps for s in flushes),
        data_lost=any(s.data_lost or s.gaps for s in flushes),
        component=next((s.component for s in flushes if s.component), None),
        node=next((s.node for s in flushes if s.node), None),
        odd=_merged([oddity for s in flushes for oddity in s.odd]),
    )


def _merged(odd: Sequence[Oddity]) -> tuple[Oddity, ...]:
    first: dict[str, Oddity] = {}
    counts: dict[str, int] = {}
    for oddity in odd:
        first.setdefault(oddity.code, oddity)
        counts[oddity.code] = counts.get(oddity.code, 0) + oddity.count
    return tuple(
        Oddity(code=o.code, count=counts[o.code], position=o.position, detail=o.detail)
        for o in first.values()
    )
