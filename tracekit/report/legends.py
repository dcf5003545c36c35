"""Keys and direct labels: what a colour means, and words that do not cover each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracekit.report.causes import Cause
from tracekit.report.page import LegendItem, Line

__all__ = ["apart", "cause_legend"]


def cause_legend(causes: Iterable[Cause]) -> tuple[LegendItem, ...]:
    """Return the key of the causes, each family named before its first member."""
    out: list[LegendItem] = []
    family = ""
    for cause in causes:
        group = "" if cause.family == family else cause.family
        out.append(LegendItem(cause.label, f"c-{cause.id}", group))
        family = cause.family
    return tuple(out)


def apart(lines: Sequence[Line], least: float) -> tuple[Line, ...]:
    """Push direct labels upwards until each is ``least`` percent from the one below.

    Lines without a label keep their place and make no room.
    """
    places: dict[int, float] = {}
    below: float | None = None
    for i in sorted(range(len(lines)), key=lambda i: -lines[i].top):
        if lines[i].value:
            top = lines[i].top if below is None else min(lines[i].top, below - least)
            places[i] = below = round(top, 2)
    return tuple(replace(x, top=places.get(i, x.top)) for i, x in enumerate(lines))
