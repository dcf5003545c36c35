"""Geometry: rows of values to SVG paths in plot units.

Equal neighbours are merged and everything is cut to whole units, so a strip costs what it
shows and not what was recorded. Nothing is drawn across a hole in the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracekit.report.instants import PLOT_WIDTH
from tracekit.report.page import Mark, YTick

__all__ = [
    "Run",
    "Runs",
    "band_marks",
    "cut_out",
    "line_path",
    "merge_runs",
    "nice_ceiling",
    "percent_of_plot",
    "step_area",
    "y_ticks",
]

Run = tuple[int, int, str]
Runs = list[Run]
Holes = Sequence[tuple[int, int]]


def merge_runs(runs: Iterable[Run]) -> Runs:
    """Join runs of one class that touch; a later run covers an earlier one it overlaps.

    Args:
        runs: (from, to, class) in plot units, ordered by their start.
    """
    out: Runs = []
    for begin, end, css in runs:
        if out and out[-1][1] > begin:
            out[-1] = (out[-1][0], begin, out[-1][2])
            if out[-1][0] >= out[-1][1]:
                out.pop()
        if out and out[-1][1] == begin and out[-1][2] == css:
            out[-1] = (out[-1][0], end, css)
        elif end > begin:
            out.append((begin, end, css))
    return out


def cut_out(runs: Iterable[Run], holes: Holes) -> Runs:
    """Take the holes of the record out of the runs."""
    out = list(runs)
    for low, high in holes:
        out = [piece for run in out for piece in _pieces(run, low, high)]
    return out


def _pieces(run: Run, low: int, high: int) -> Iterable[Run]:
    begin, end, css = run
    if begin < min(end, low):
        yield begin, min(end, low), css
    if max(begin, high) < end:
        yield max(begin, high), end, css


def band_marks(
    runs: Iterable[Run], height: int, levels: dict[str, int] | None = None
) -> tuple[Mark, ...]:
    """Draw runs as boxes standing on the base line, one path a class.

    Args:
        runs: (from, to, class) in plot units.
        height: Height of the strip in units.
        levels: Height of a class's boxes where it is not the full height.
    """
    paths: dict[str, list[str]] = {}
    for begin, end, css in runs:
        tall = (levels or {}).get(css, height)
        paths.setdefault(css, []).append(f"M{begin} {height}v-{tall}h{end - begin}v{tall}z")
    return tuple(Mark(css, "".join(paths[css])) for css in sorted(paths))


def step_area(xs: Sequence[int], low: Sequence[float], high: Sequence[float], holes: Holes) -> str:
    """Return the area between two step functions; step i lasts from xs[i] to xs[i + 1].

    Steps without height and steps inside a hole are left out.
    """
    parts: list[str] = []
    run: list[int] = []
    for i in range(len(xs) - 1):
        blocked = any(a < xs[i + 1] and xs[i] < b for a, b in holes)
        if high[i] != low[i] and not blocked:
            run.append(i)
        elif run:
            parts.append(_area_of(run, xs, low, high))
            run = []
    if run:
        parts.append(_area_of(run, xs, low, high))
    return "".join(parts)


def _area_of(
    run: Sequence[int], xs: Sequence[int], low: Sequence[float], high: Sequence[float]
) -> str:
    there = "".join(f"V{high[i]:.4g}H{xs[i + 1]}" for i in run)
    back = "".join(f"V{low[i]:.4g}H{xs[i]}" for i in reversed(run))
    return f"M{xs[run[0]]} {low[run[0]]:.4g}{there}{back}z"


def line_path(points: Sequence[tuple[int, int, float | None]], holes: Holes) -> str:
    """Return a step line; each point is (from, to, y), and y None breaks the line."""
    parts: list[str] = []
    pen: int | None = None
    for begin, end, y in points:
        blocked = any(a < end and begin < b for a, b in holes)
        if y is None or blocked:
            pen = None
            continue
        parts.append(f"V{y:.4g}H{end}" if pen == begin else f"M{begin} {y:.4g}H{end}")
        pen = end
    return "".join(parts)


def nice_ceiling(value: float) -> float:
    """Return the least of 1, 2, 2.5, 4, 5, 8 times a power of ten that is not below value."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 < value:
        power *= 10
    while power >= value:
        power /= 10
    return next(f * power for f in (1, 2, 2.5, 4, 5, 8, 10) if f * power >= value * 0.9999)


def y_ticks(top: float, whole: bool) -> tuple[YTick, ...]:
    """Return the grid lines of an axis from 0 to ``top``: four or five round ones."""
    steps = 5 if f"{top:e}"[0] == "5" or f"{top:e}".startswith("2.5") else 4
    values = [top * i / steps for i in range(steps + 1)]
    if whole:
        values = sorted({float(round(v)) for v in values})
    return tuple(YTick(round(100 - v * 100 / top, 2), f"{v:g}") for v in values)


def percent_of_plot(begin: int, end: int) -> tuple[float, float]:
    """Return left and width in percent; never thinner than one unit."""
    width = max(end - begin, 1)
    return round(begin * 100 / PLOT_WIDTH, 2), round(width * 100 / PLOT_WIDTH, 2)
