"""Moves: pods that left their node, by cause over time and one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tracekit.report import numbers
from tracekit.report.context import Context
from tracekit.report.fields import Row, instant, text
from tracekit.report.marks import band_marks, cut_out, merge_runs
from tracekit.report.page import Block, Cell, Figure, Header, Strip, StripChart, StripRow, Table

__all__ = ["build_moves"]

_MAX_SHOWN = 30
_MAX_ROWS = 200
_ROW_HEIGHT = 10
_TICK = 3
# What ends by itself or by intent is listed after what somebody has to look at.
_LAST = ("job_finished", "owner_deleted", "scale_down", "rollout", "deleted_by_user")


def build_moves(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the section's figures and its badge: the number of moves."""
    rows: Sequence[Row] = context.rows("moves")
    by_cause: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_cause[text(row, "cause") or "unknown"].append(row)
    ranked = sorted(by_cause, key=lambda c: (-len(by_cause[c]), c))
    groups = [(c, by_cause[c]) for c in ranked]
    return (_by_cause(context, groups), _listed(context, rows)), (
        numbers.count(len(rows)) if rows else ""
    )


def _words(cause: str) -> str:
    return cause.replace("_", " ")


def _by_cause(context: Context, groups: list[tuple[str, list[Row]]]) -> Figure:
    chart = StripChart(
        axis=context.axis(),
        label_head="Cause",
        tone="ticks",
        rows=tuple(_tick_row(context, cause, rows) for cause, rows in groups),
        value_heads=(Header("moves", "v4"), Header("replaced", "v5")),
    )
    return Figure(
        id="fig-moves",
        title="Pods that left their node, by cause",
        caption="A tick for each pod at the moment that decided it. Replaced: a pod of the same "
        "controller took its place.",
        queries=context.queries("moves"),
        chart=chart if groups else None,
        data=_cause_table(groups),
        empty="" if groups else "No bound pod left its node.",
    )


def _tick_row(context: Context, cause: str, rows: list[Row]) -> StripRow:
    places = sorted(
        context.window.x(at)
        for at in (instant(r, "at") for r in rows)
        if at is not None and context.window is not None
    )
    ticks = merge_runs((x, x + _TICK, "tick") for x in places)
    replaced = sum(bool(text(r, "replacement_uid")) for r in rows)
    return StripRow(
        label=_words(cause),
        strips=(Strip("", band_marks(cut_out(ticks, context.holes), _ROW_HEIGHT)),),
        values=(
            Cell(text=numbers.count(len(rows)), tone="v4 b"),
            Cell(text=numbers.count(replaced), tone="v5"),
        ),
    )


def _cause_table(groups: list[tuple[str, list[Row]]]) -> Table | None:
    heads = ("Cause", "Pods", "Nodes", "Replaced", "Replacement has a node", "Certain")
    rows = []
    for cause, members in groups:
        values = (
            len(members),
            len({text(r, "node") for r in members}),
            sum(bool(text(r, "replacement_uid")) for r in members),
            sum(bool(text(r, "replacement_node")) for r in members),
            sum(text(r, "certainty") == "observed" for r in members),
        )
        cells = (Cell(text=numbers.count(v), tone="r") for v in values)
        rows.append((Cell(text=_words(cause)), *cells))
    headers = tuple(Header(h, "r" if i else "") for i, h in enumerate(heads))
    return Table(headers=headers, rows=tuple(rows)) if rows else None


def _listed(context: Context, rows: Sequence[Row]) -> Figure:
    urgent = [r for r in rows if text(r, "cause") not in _LAST]
    routine = [r for r in rows if text(r, "cause") in _LAST]
    ranked = [*urgent, *routine]
    is_long = len(rows) > _MAX_SHOWN
    return Figure(
        id="fig-move-list",
        title="Each move",
        caption="Why each pod left and what came in its place, in order of time."
        + (
            " Evictions, preemptions and failures first; the rest is under Data." if is_long else ""
        ),
        queries=context.queries("moves"),
        table=_move_table(context, ranked, _MAX_SHOWN),
        data=_move_table(context, ranked, _MAX_ROWS) if is_long else None,
        empty="" if rows else "No bound pod left its node.",
    )


def _move_table(context: Context, ranked: Sequence[Row], limit: int) -> Table | None:
    kept = sorted(
        ranked[:limit],
        key=lambda r: (instant(r, "at") or 0, text(r, "namespace"), text(r, "pod")),
    )
    left = len(ranked) - len(kept)
    heads = ("Time (UTC)", "Pod", "Left node", "Cause", "Evidence", "Replaced by", "on node")
    return (
        Table(
            headers=tuple(Header(h) for h in heads),
            rows=tuple(_move_row(context, r) for r in kept),
            left_out=f"{numbers.plural(left, 'more move')}." if left else "",
        )
        if kept
        else None
    )


def _move_row(context: Context, row: Row) -> tuple[Cell, ...]:
    detail = text(row, "detail")
    preemptor = text(row, "preemptor")
    if preemptor and preemptor not in detail:
        detail = f"{detail} · preemptor {preemptor}".strip(" ·")
    successor = {
        "uid": row.get("replacement_uid"),
        "namespace": row.get("namespace"),
        "pod": row.get("replacement_pod"),
    }
    has_one = bool(text(row, "replacement_pod"))
    return (
        context.time(row),
        context.pod_cell(row),
        Cell(text=text(row, "node"), tone="t"),
        Cell(text=_words(text(row, "cause")), tone="b t"),
        Cell(text=detail or numbers.UNKNOWN, tone="mut wide", more=text(row, "actor")),
        context.pod_cell(successor) if has_one else Cell(text="none", tone="mut"),
        Cell(
            text=text(row, "replacement_node") or ("still pending" if has_one else ""),
            tone="t" if text(row, "replacement_node") else "mut t",
        ),
    )
