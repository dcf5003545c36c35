"""Zone redundancy: zones in use over time by workload, and the risk at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tracekit.report import numbers
from tracekit.report.context import Context
from tracekit.report.fields import Row, instant, number, text, whole
from tracekit.report.instants import PLOT_WIDTH
from tracekit.report.marks import Runs, band_marks, cut_out, merge_runs
from tracekit.report.page import (
    Block,
    Cell,
    Figure,
    Header,
    LegendItem,
    Strip,
    StripChart,
    StripRow,
    Table,
)

__all__ = ["build_zones"]

_MAX_WORKLOADS = 40
_MAX_SHOWN = 30
_MAX_ROWS = 200
_MAX_ZONE_COLUMNS = 5
_ROW_HEIGHT = 9
_HEIGHTS = {"zx0": 1, "zx1": 3, "zx2": 6, "zx3": 9}
_RISKS = {
    "single_zone": (0, "▲", "high", "single zone"),
    "skewed": (1, "◆", "med", "skewed"),
    "single_replica": (2, "●", "info", "single replica"),
    "none": (3, "", "mut", "none"),
}
_UNKNOWN_RISK = (4, "", "mut", "unknown")


@dataclass(slots=True)
class _Spread:
    """Replicas of one workload by zone over time, as changes in plot units."""

    deltas: dict[int, dict[str, int]] = field(default_factory=dict)
    at_end: dict[str, int] = field(default_factory=dict)

    def add(self, zone: str, begin: int, end: int, pods: int) -> None:
        for x, sign in ((begin, 1), (end, -1)):
            zones = self.deltas.setdefault(x, {})
            zones[zone] = zones.get(zone, 0) + sign * pods
        if end >= PLOT_WIDTH:
            self.at_end[zone] = self.at_end.get(zone, 0) + pods

    def runs(self) -> Runs:
        """Return runs of ``zx0`` to ``zx3``: fewer than two replicas, one, two, more zones."""
        here: dict[str, int] = defaultdict(int)
        runs: Runs = []
        places = sorted(self.deltas)
        for x, after in pairwise(places):
            for zone, change in self.deltas[x].items():
                here[zone] += change
            used = sum(n > 0 for zone, n in here.items() if zone)
            replicas = sum(here.values())
            css = "zx0" if replicas < 2 else f"zx{min(max(used, 1), 3)}"
            if replicas > 0:
                runs.append((x, after, css))
        return merge_runs(runs)


_Key = tuple[str, str]


def build_zones(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the section's figures and its badge: workloads on a single zone."""
    rows: list[Row] = sorted(context.rows("zone_redundancy"), key=_worst_first)
    risky = sum(text(r, "risk") == "single_zone" for r in rows)
    blocks = (_strips(context, rows, _spreads(context)), _risk_table(context, rows))
    return blocks, numbers.count(risky) if rows else ""


def _key(row: Row) -> _Key:
    return text(row, "namespace"), text(row, "workload")


def _worst_first(row: Row) -> tuple[int, float, float, _Key]:
    rank = _RISKS.get(text(row, "risk"), _UNKNOWN_RISK)[0]
    return (
        rank,
        -(number(row, "seconds_in_one_zone") or 0),
        -(number(row, "replicas") or 0),
        _key(row),
    )


def _spreads(context: Context) -> dict[_Key, _Spread]:
    out: dict[_Key, _Spread] = defaultdict(_Spread)
    for row in context.rows("zone_spread"):
        begin, pods = instant(row, "from_at"), whole(row, "pods")
        if context.window is None or begin is None or pods is None:
            continue
        low, high = context.window.x(begin), context.window.x(instant(row, "to_at"))
        out[_key(row)].add(text(row, "zone"), low, high, pods)
    return out


def _strips(context: Context, rows: list[Row], spreads: Mapping[_Key, _Spread]) -> Figure:
    kept = [r for r in rows if _key(r) in spreads and (number(r, "replicas") or 0) > 1]
    left = len(kept) - _MAX_WORKLOADS
    letters = [z for z in context.zones.values() if z.name]
    columns = letters if len(letters) <= _MAX_ZONE_COLUMNS else []
    chart = StripChart(
        axis=context.axis(),
        label_head="Workload",
        tone="zones",
        height=_ROW_HEIGHT,
        rows=tuple(
            _strip_row(context, r, spreads[_key(r)], [z.name for z in columns])
            for r in kept[:_MAX_WORKLOADS]
        ),
        value_heads=(
            *(Header(z.letter, f"v1 {z.css}") for z in columns),
            Header("on one zone", "v5"),
        ),
        left_out=f"{numbers.plural(left, 'more workload')} in the table below." if left > 0 else "",
    )
    return Figure(
        id="fig-zones",
        title="Zones that hold a running replica, over time",
        caption="Workloads with two or more running replicas at the end, those at risk first. "
        "Counts on the right are replicas in each zone at the end." + context.zone_note(),
        queries=context.queries("zone_spread", "zone_redundancy"),
        legend=_legend(),
        chart=chart if kept else None,
        empty="" if kept else "No workload has two running replicas at the end.",
    )


def _legend() -> tuple[LegendItem, ...]:
    return (
        LegendItem("one, at risk", "zx1", "Zones in use"),
        LegendItem("two", "zx2"),
        LegendItem("three or more", "zx3"),
        LegendItem("fewer than two replicas", "zx0"),
    )


def _strip_row(context: Context, row: Row, spread: _Spread, zones: list[str]) -> StripRow:
    marks = band_marks(cut_out(spread.runs(), context.holes), _ROW_HEIGHT, _HEIGHTS)
    counts = [(context.zone(z), spread.at_end.get(z, 0)) for z in zones]
    cells = [
        Cell(text=numbers.count(n) if n else "·", tone=f"v1 b {z.css}" if n else "v1 mut")
        for z, n in counts
    ]
    alone = number(row, "seconds_in_one_zone")
    tone = "v5 bad" if text(row, "risk") == "single_zone" else "v5"
    namespace, workload = _key(row)
    return StripRow(
        label=f"{namespace}/{workload.split('/', 1)[-1]}",
        more=text(row, "kind"),
        strips=(Strip("", marks),),
        values=(*cells, Cell(text=numbers.seconds(alone), tone=tone)),
    )


def _risk_table(context: Context, rows: list[Row]) -> Figure:
    return Figure(
        id="fig-risk",
        title="Redundancy of each workload at the end",
        caption="Single zone: all replicas would go with one zone. Skewed: the fullest zone has "
        "at least two replicas more than the emptiest. DaemonSets are left out.",
        queries=context.queries("zone_redundancy"),
        table=_risks(rows, _MAX_SHOWN),
        data=_risks(rows, _MAX_ROWS) if len(rows) > _MAX_SHOWN else None,
        note=_summary(rows),
        empty="" if rows else "No workload is running at the end.",
    )


def _risks(rows: list[Row], limit: int) -> Table | None:
    heads = (
        "Workload",
        "Risk",
        "Replicas",
        "Zones used",
        "Zones available",
        "Largest zone",
        "Skew",
        "On one zone",
        "Could have spread",
    )
    left = len(rows) - limit
    headers = tuple(Header(h, "r" if 1 < i < 8 else "") for i, h in enumerate(heads))
    return (
        Table(
            headers=headers,
            rows=tuple(_risk_row(r) for r in rows[:limit]),
            left_out=f"{numbers.plural(left, 'more workload')}." if left > 0 else "",
        )
        if rows
        else None
    )


def _summary(rows: list[Row]) -> str:
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[text(row, "risk")] += 1
    known = [(words, counts[risk]) for risk, (_, _, _, words) in _RISKS.items() if counts[risk]]
    return " · ".join(f"{words} {numbers.count(n)}" for words, n in known)


def _risk_row(row: Row) -> tuple[Cell, ...]:
    _, shape, tone, words = _RISKS.get(text(row, "risk"), _UNKNOWN_RISK)
    namespace, workload = _key(row)
    spread = row.get("spread_was_possible")
    skew = number(row, "skew")
    return (
        Cell(text=f"{namespace}/{workload}"),
        Cell(text=words, shape=shape, tone=tone),
        Cell(text=numbers.count(number(row, "replicas")), tone="r"),
        Cell(text=numbers.count(number(row, "zones_used")), tone="r"),
        Cell(text=numbers.count(number(row, "zones_available")), tone="r"),
        Cell(text=numbers.percent(number(row, "largest_zone_share")), tone="r"),
        Cell(text=numbers.UNKNOWN if skew is None else f"{skew:g}", tone="r"),
        Cell(text=numbers.seconds(number(row, "seconds_in_one_zone")), tone="r"),
        Cell(text="yes" if spread is True else "no" if spread is False else numbers.UNKNOWN),
    )
