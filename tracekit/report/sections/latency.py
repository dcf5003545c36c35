"""Scheduling latency: percentiles by workload and step, on one logarithmic scale."""

from __future__ import annotations

from math import log10

from tracekit.report import numbers
from tracekit.report.context import Context
from tracekit.report.fields import Row, number, text, whole
from tracekit.report.page import Block, Cell, Figure, Header, Table

__all__ = ["build_latency"]

_MAX_SHOWN = 15
_MAX_ROWS = 200
_PERCENTILES = ("p50_seconds", "p90_seconds", "p99_seconds")
_TITLES = {
    "created_to_bound": ("From created to bound", "fig-created-bound"),
    "bound_to_running": ("From bound to running", "fig-bound-running"),
}


def build_latency(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build a figure for each step; the section has no badge."""
    return tuple(_step(context, step) for step in _TITLES), ""


def _step(context: Context, step: str) -> Figure:
    title, anchor = _TITLES[step]
    rows: list[Row] = [r for r in context.rows("scheduling_latency") if text(r, "step") == step]
    rows.sort(
        key=lambda r: (-(number(r, "p99_seconds") or 0), text(r, "namespace"), text(r, "workload"))
    )
    pods = sum(whole(r, "pods") or 0 for r in rows)
    return Figure(
        id=anchor,
        title=title,
        caption=f"Nearest-rank percentiles over the {numbers.plural(pods, 'pod')} that have both "
        "ends, slowest workloads first. Pods that still wait are not in it.",
        queries=context.queries("scheduling_latency"),
        table=_table(rows, _MAX_SHOWN),
        data=_table(rows, _MAX_ROWS) if len(rows) > _MAX_SHOWN else None,
        empty="" if rows else "No pod has both ends of this step in the record.",
    )


def _table(rows: list[Row], limit: int) -> Table | None:
    known = [v for r in rows for v in (number(r, p) for p in _PERCENTILES) if v]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    heads = ("Workload", "Pods", "p50", "p90", "p99")
    left = len(rows) - limit
    return (
        Table(
            headers=(
                *(Header(h, "r" if i else "") for i, h in enumerate(heads)),
                Header(_scale(low, high), "range"),
            ),
            rows=tuple(_latency_row(r, low, high) for r in rows[:limit]),
            left_out=f"{numbers.plural(left, 'more workload')}, all with a shorter p99."
            if left > 0
            else "",
        )
        if rows
        else None
    )


def _scale(low: float, high: float) -> str:
    if not high:
        return ""
    return f"p50 to p99, {numbers.seconds(low)} to {numbers.seconds(high)}, logarithmic"


def _latency_row(row: Row, low: float, high: float) -> tuple[Cell, ...]:
    values = [number(row, p) for p in _PERCENTILES]
    cells = [Cell(text=numbers.seconds(v), tone="r") for v in values]
    begin, end = (_place(values[0], low, high), _place(values[2], low, high))
    return (
        Cell(text=f"{text(row, 'namespace')}/{text(row, 'workload')}"),
        Cell(text=numbers.count(whole(row, "pods")), tone="r"),
        *cells,
        Cell(text="", tone="range", tint=begin, bar=max(round(end - begin, 3), 0.006)),
    )


def _place(value: float | None, low: float, high: float) -> float:
    """Return a value's place on the logarithmic scale, 0 to 1."""
    if not value or value <= 0 or low <= 0 or high <= low:
        return 0.0
    return round((log10(value) - log10(low)) / (log10(high) - log10(low)), 3)
