"""Pending: pods by cause over time, pod-seconds by namespace and cause, longest spells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from tracekit.report import numbers
from tracekit.report.causes import Cause, cause_of, has_no_node, present_causes
from tracekit.report.context import Context, pod_key
from tracekit.report.fields import Row, flag, instant, number, text, whole
from tracekit.report.instants import PLOT_WIDTH
from tracekit.report.legends import apart, cause_legend
from tracekit.report.marks import (
    Runs,
    band_marks,
    cut_out,
    merge_runs,
    nice_ceiling,
    step_area,
    y_ticks,
)
from tracekit.report.page import (
    AreaChart,
    Block,
    Cell,
    Figure,
    Header,
    Line,
    Strip,
    StripChart,
    StripRow,
    Table,
)

__all__ = ["Spell", "build_pending", "spell_runs", "spells", "spells_by_pod"]

_STEPS = 400
_HEIGHT = 190
_LABEL_FROM = 8
_LABEL_PITCH = 15
_MAX_NAMESPACES = 12
_MAX_PODS = 24
_ROW_HEIGHT = 9


@dataclass(frozen=True, slots=True)
class Spell:
    """One stretch of waiting: a row of ``pending`` on the page's time axis.

    Attributes:
        begin, end: Plot units.
        seconds: As the query says; None when it does not.
        reason: The cause in the scheduler's own words.
    """

    pod: str
    row: Row
    begin: int
    end: int
    seconds: float | None
    cause: Cause
    reason: str
    open: bool


def spells(context: Context) -> list[Spell]:
    """Return the stretches of waiting for a node in the query's order."""
    window = context.window
    if window is None:
        return []
    out = []
    for row in context.rows("pending"):
        begin = instant(row, "from_at")
        if begin is None or not has_no_node(row):
            continue
        reason = text(row, "cause") or text(row, "kind")
        out.append(
            Spell(
                pod_key(row),
                row,
                window.x(begin),
                window.x(instant(row, "to_at")),
                number(row, "seconds"),
                cause_of(reason),
                reason,
                flag(row, "open"),
            )
        )
    return out


def spells_by_pod(all_spells: Iterable[Spell]) -> dict[str, list[Spell]]:
    """Group the stretches by pod, each pod's in order of time."""
    out: dict[str, list[Spell]] = defaultdict(list)
    for spell in all_spells:
        out[spell.pod].append(spell)
    return {pod: sorted(group, key=lambda s: (s.begin, s.end)) for pod, group in out.items()}


def build_pending(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the section's figures and its badge: pods that still wait."""
    found = spells(context)
    waiting = len({s.pod for s in found if s.open})
    blocks = (_stack(context, found), _pod_seconds(context), _longest(context, found))
    return blocks, numbers.count(waiting) if found else ""


def _grid(found: Sequence[Spell]) -> list[int]:
    """Return the steps of the stack: each change where they are few, else equal steps."""
    places = {0, PLOT_WIDTH} | {x for s in found for x in (s.begin, s.end)}
    if len(places) <= _STEPS:
        return sorted(places)
    return [PLOT_WIDTH * i // _STEPS for i in range(_STEPS + 1)]


def _levels(found: Sequence[Spell], grid: Sequence[int]) -> dict[str, list[float]]:
    """Return pods waiting by cause, as the mean over each step."""
    index = {x: i for i, x in enumerate(grid)}
    exact = all(s.begin in index and s.end in index for s in found)
    out: dict[str, list[float]] = defaultdict(lambda: [0.0] * (len(grid) - 1))
    for spell in found:
        first = index[spell.begin] if exact else spell.begin * _STEPS // PLOT_WIDTH
        for i in range(max(first - 1, 0), len(grid) - 1):
            if grid[i] >= spell.end:
                break
            shared = min(grid[i + 1], spell.end) - max(grid[i], spell.begin)
            if shared > 0:
                out[spell.cause.id][i] += shared / (grid[i + 1] - grid[i])
    return dict(out)


def _stack(context: Context, found: list[Spell]) -> Figure:
    grid = _grid(found)
    levels = _levels(found, grid)
    causes = present_causes(levels)
    seconds = context.window.seconds if context.window else 0
    exact = len(grid) != _STEPS + 1
    resolution = (
        "A step for each change."
        if exact
        else f"Each step is the mean over {numbers.seconds(seconds / _STEPS)}."
    )
    return Figure(
        id="fig-pending",
        title="Pods without a node, by cause",
        caption="Each waiting pod counts once, under the reason that blocks most nodes at that "
        f"moment. {resolution}",
        queries=context.queries("pending"),
        legend=cause_legend(causes),
        chart=_stack_chart(context, grid, levels, causes) if causes else None,
        data=_stack_table(context, grid, levels, causes),
        empty="" if causes else "Nothing was pending.",
    )


def _stack_chart(
    context: Context, grid: list[int], levels: Mapping[str, list[float]], causes: Sequence[Cause]
) -> AreaChart:
    steps = range(len(grid) - 1)
    top = nice_ceiling(max(sum(levels[c.id][i] for c in causes) for i in steps))
    base = [0.0 for _ in steps]
    areas: list[Line] = []
    for cause in causes:
        level = levels[cause.id]
        high = [b + v for b, v in zip(base, level, strict=True)]
        path = step_area(
            grid,
            [_HEIGHT - b * _HEIGHT / top for b in base],
            [_HEIGHT - h * _HEIGHT / top for h in high],
            context.holes,
        )
        middle = 100 - (base[-1] + high[-1]) / 2 * 100 / top
        tall_enough = level[-1] * _HEIGHT / top >= _LABEL_FROM
        value = numbers.count(level[-1]) if tall_enough else ""
        areas.append(Line(f"c-{cause.id}", path, value, cause.label, round(middle, 2)))
        base = high
    return AreaChart(
        axis=context.axis(),
        areas=apart(areas, 100 * _LABEL_PITCH / _HEIGHT),
        y_ticks=y_ticks(top, whole=True),
        y_title="pods waiting",
        height=_HEIGHT,
    )


def _stack_table(
    context: Context, grid: list[int], levels: Mapping[str, list[float]], causes: Sequence[Cause]
) -> Table | None:
    window = context.window
    if window is None or not causes:
        return None
    heads = (
        Header("Time (UTC)"),
        *(Header(c.label, "r", f"c-{c.id}") for c in causes),
        Header("All", "r"),
    )
    rows = []
    for i in sorted({round(k * (len(grid) - 2) / 12) for k in range(13)}):
        values = [levels[c.id][i] for c in causes]
        cells = [Cell(text=_pods(v), tone="r") for v in (*values, sum(values))]
        rows.append((Cell(text=window.label(window.at(grid[i]), 0), tone="t"), *cells))
    return Table(headers=heads, rows=tuple(rows))


def _pods(value: float) -> str:
    return numbers.count(value) if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def _pod_seconds(context: Context) -> Figure:
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in _sums(context):
        cause = cause_of(text(row, "cause"))
        sums[text(row, "namespace")][cause.id] += number(row, "pod_seconds") or 0.0
    causes = present_causes(c for by_cause in sums.values() for c in by_cause)
    return Figure(
        id="fig-pod-seconds",
        title="Pod-seconds spent waiting for a node",
        caption="Time added up over pods: one pod that waits a minute is 60 pod-seconds.",
        queries=context.queries("pending_by_cause"),
        note=_starting(context),
        table=_pod_seconds_table(sums, causes) if causes else None,
        data=_cause_detail(context),
        empty="" if causes else "No pod spent time pending.",
    )


def _sums(context: Context) -> list[Row]:
    return [r for r in context.rows("pending_by_cause") if has_no_node(r)]


def _starting(context: Context) -> str:
    rows = [r for r in context.rows("pending_by_cause") if not has_no_node(r)]
    if not rows:
        return ""
    pods, spent = (
        sum(whole(r, "pods") or 0 for r in rows),
        sum(number(r, "pod_seconds") or 0.0 for r in rows),
    )
    return (
        f"Not in it: {numbers.plural(pods, 'pod')} that had a node and were starting, for "
        f"{numbers.count(spent)} pod-seconds."
    )


def _pod_seconds_table(sums: Mapping[str, Mapping[str, float]], causes: Sequence[Cause]) -> Table:
    ranked = sorted(sums, key=lambda n: (-sum(sums[n].values()), n))
    kept, rest = ranked[:_MAX_NAMESPACES], ranked[_MAX_NAMESPACES:]
    lines = [(n, [sums[n].get(c.id, 0.0) for c in causes]) for n in sorted(kept)]
    if rest:
        other = [sum(sums[n].get(c.id, 0.0) for n in rest) for c in causes]
        lines.append((numbers.plural(len(rest), "other namespace"), other))
    peak = max((v for _, values in lines for v in values), default=0.0)
    totals = [sum(values[i] for _, values in lines) for i in range(len(causes))]
    heads = (
        Header("Namespace"),
        *(Header(c.label, "r", f"c-{c.id}") for c in causes),
        Header("All causes", "r"),
    )
    return Table(
        headers=heads,
        rows=tuple(_seconds_row(n, values, peak) for n, values in lines),
        total=_seconds_row("All", totals, 0.0),
        tone="matrix",
    )


def _seconds_row(name: str, values: Sequence[float], peak: float) -> tuple[Cell, ...]:
    cells = [
        Cell(text=_tidy(v), tone="r", tint=round(sqrt(v / peak), 2) if peak > 0 and v > 0 else None)
        for v in values
    ]
    return (Cell(text=name, tone="b"), *cells, Cell(text=_tidy(sum(values)), tone="r b"))


def _tidy(value: float) -> str:
    return "<1" if 0 < value < 0.5 else numbers.count(value)


def _cause_detail(context: Context) -> Table | None:
    """Return the longest rows of the query in the scheduler's own words."""
    rows = sorted(
        _sums(context),
        key=lambda r: (
            -(number(r, "pod_seconds") or 0),
            text(r, "namespace"),
            text(r, "workload"),
            text(r, "cause"),
        ),
    )
    heads = ("Namespace", "Workload", "Cause", "Pods", "Pod-seconds", "Longest")
    kept = rows[:60]
    left = f"{numbers.count(len(rows) - len(kept))} more rows in the query." if rows[60:] else ""
    headers = tuple(Header(h, "r" if i > 2 else "") for i, h in enumerate(heads))
    cells = tuple(_detail_row(r) for r in kept)
    return Table(headers=headers, rows=cells, left_out=left) if kept else None


def _detail_row(row: Row) -> tuple[Cell, ...]:
    cause = text(row, "cause")
    return (
        Cell(text=text(row, "namespace")),
        Cell(text=text(row, "workload"), tone="m"),
        Cell(text=cause, swatch=f"c-{cause_of(cause).id}"),
        Cell(text=numbers.count(whole(row, "pods")), tone="r"),
        Cell(text=_tidy(number(row, "pod_seconds") or 0), tone="r"),
        Cell(text=numbers.seconds(number(row, "longest_seconds")), tone="r"),
    )


def _longest(context: Context, found: list[Spell]) -> Figure:
    groups = spells_by_pod(found)
    total = {pod: sum(s.seconds or 0.0 for s in group) for pod, group in groups.items()}
    ranked = sorted(groups, key=lambda p: (-total[p], _name(groups[p][0].row), p))
    kept = ranked[:_MAX_PODS]
    left = len(ranked) - len(kept)
    chart = StripChart(
        axis=context.axis(),
        label_head="Pod",
        tone="gantt",
        height=_ROW_HEIGHT,
        rows=tuple(_pod_row(context, groups[p], total[p]) for p in kept),
        value_heads=(Header("waited", "v5"), Header("at the end", "v6")),
        left_out=f"{numbers.plural(left, 'more pod')} waited less." if left else "",
    )
    return Figure(
        id="fig-spells",
        title="Longest waits",
        caption="The pods that waited longest in all; colour is the reason that blocked most "
        "nodes at that moment.",
        queries=context.queries("pending"),
        chart=chart if kept else None,
        legend=cause_legend(present_causes(s.cause.id for p in kept for s in groups[p])),
        data=_spell_table(context, [(groups[p], total[p]) for p in kept]),
        empty="" if kept else "No pod waited.",
    )


def _name(row: Row) -> tuple[str, str]:
    return text(row, "namespace"), text(row, "pod")


def spell_runs(group: Iterable[Spell], holes: Sequence[tuple[int, int]]) -> Runs:
    """Return a pod's waiting as runs of cause classes, never thinner than one unit."""
    runs = [(s.begin, max(s.end, s.begin + 1), f"c-{s.cause.id}") for s in group]
    return cut_out(merge_runs(runs), holes)


def _pod_row(context: Context, group: Sequence[Spell], waited: float) -> StripRow:
    row = group[0].row
    open_ = any(s.open for s in group)
    marks = band_marks(spell_runs(group, context.holes), _ROW_HEIGHT)
    return StripRow(
        label=f"{text(row, 'namespace')}/{text(row, 'pod')}",
        href=context.pod_href(group[0].pod),
        short=True,
        strips=(Strip("", marks),),
        values=(
            Cell(text=numbers.seconds(waited), tone="v5"),
            Cell(text="still waits" if open_ else "done", tone="v6 bad" if open_ else "v6 mut"),
        ),
    )


def _spell_table(context: Context, groups: Sequence[tuple[Sequence[Spell], float]]) -> Table | None:
    heads = ("Pod", "Workload", "First wait", "Waited", "Longest stretch", "Its cause", "Nodes")
    rows = []
    for group, waited in groups:
        longest = max(group, key=lambda s: (s.seconds or 0.0, -s.begin))
        rows.append(
            (
                context.pod_cell(group[0].row),
                Cell(text=text(group[0].row, "workload")),
                context.time(group[0].row, "from_at"),
                Cell(text=numbers.seconds(waited), tone="r"),
                Cell(text=numbers.seconds(longest.seconds), tone="r"),
                Cell(text=longest.reason, swatch=f"c-{longest.cause.id}"),
                Cell(text=numbers.count(whole(longest.row, "nodes_blocked")), tone="r"),
            )
        )
    headers = tuple(Header(h, "r" if i in (3, 4, 6) else "") for i, h in enumerate(heads))
    return Table(headers=headers, rows=tuple(rows)) if rows else None
