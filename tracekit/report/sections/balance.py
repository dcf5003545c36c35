"""Balance: node heat under zone totals, imbalance over time, zones at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tracekit.report import numbers
from tracekit.report.anchors import link_to, node_anchor
from tracekit.report.context import Context
from tracekit.report.fields import Row, instant, number, text
from tracekit.report.instants import PLOT_WIDTH
from tracekit.report.legends import apart
from tracekit.report.marks import (
    Runs,
    band_marks,
    cut_out,
    line_path,
    merge_runs,
    nice_ceiling,
    percent_of_plot,
    y_ticks,
)
from tracekit.report.node_states import NodeSpan, natural_order, node_spans, state_at_end
from tracekit.report.page import (
    Block,
    Cell,
    Figure,
    Header,
    LegendItem,
    Line,
    LineChart,
    Overlay,
    Strip,
    StripChart,
    StripRow,
    Table,
)

__all__ = ["build_balance"]

RESOURCES = ("cpu", "memory", "pods")
_ROW_HEIGHT = 10
_MAX_NODES = 60
_KEPT_AT_EACH_END = 5
_OVERLAYS = {"cordoned": "cor", "tainted": "tnt", "not_ready": "nrd", "gone": "gon"}


@dataclass(frozen=True, slots=True)
class _Piece:
    """One step of one node and resource, in plot units and the resource's own unit."""

    begin: int
    end: int
    requested: float
    allocatable: float

    @property
    def ratio(self) -> float | None:
        return self.requested / self.allocatable if self.allocatable > 0 else None


Pieces = dict[str, list[_Piece]]


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    zone: str
    pieces: Mapping[str, list[_Piece]]
    state: str
    spans: tuple[NodeSpan, ...]

    @property
    def is_there(self) -> bool:
        """The node is there when the record ends."""
        return any(self.at_end(resource) for resource in RESOURCES)

    def at_end(self, resource: str) -> _Piece | None:
        last = self.pieces.get(resource, [])[-1:]
        return last[0] if last and last[0].end >= PLOT_WIDTH else None


def build_balance(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the section's figures and its badge: the number of nodes."""
    nodes = _nodes(context)
    blocks = (_heat(context, nodes), _imbalance(context), _zone_table(context, nodes))
    return blocks, numbers.count(len(nodes)) if nodes else ""


def _nodes(context: Context) -> list[_Node]:
    pieces: dict[str, Pieces] = {}
    zones: dict[str, str] = {}
    for row in context.rows("node_balance"):
        node, piece = text(row, "node"), _piece(context, row)
        if piece is not None:
            zones[node] = text(row, "zone")
            pieces.setdefault(node, {}).setdefault(text(row, "resource"), []).append(piece)
    spans = node_spans(context.rows("node_changes"))
    states = state_at_end(spans)
    by_node = {n: tuple(s for s in spans if s.node == n) for n in pieces}
    return [
        _Node(
            name,
            zones[name],
            {r: sorted(p, key=lambda q: (q.begin, q.end)) for r, p in pieces[name].items()},
            states.get(name, "open"),
            by_node[name],
        )
        for name in sorted(pieces, key=natural_order)
    ]


def _piece(context: Context, row: Row) -> _Piece | None:
    begin, asked, there = (
        instant(row, "from_at"),
        number(row, "requested"),
        number(row, "allocatable"),
    )
    if begin is None or asked is None or there is None or context.window is None:
        return None
    end = context.window.x(instant(row, "to_at"))
    return _Piece(context.window.x(begin), end, asked, there)


def _level(ratio: float | None) -> str:
    if ratio is None:
        return ""
    steps = (0.25, 0.5, 0.75, 0.9)
    return "h0" if ratio <= 0 else f"h{1 + sum(ratio >= s for s in steps)}"


def _runs(pieces: Iterable[_Piece]) -> Runs:
    levels = ((p.begin, p.end, _level(p.ratio)) for p in pieces)
    return merge_runs(run for run in levels if run[2])


def _sum(nodes: Iterable[_Node], resource: str) -> list[_Piece]:
    """Add the nodes' steps up: requested and allocatable of all of them at each place."""
    deltas: dict[int, list[float]] = {}
    for piece in (p for n in nodes for p in n.pieces.get(resource, ())):
        for x, sign in ((piece.begin, 1), (piece.end, -1)):
            delta = deltas.setdefault(x, [0.0, 0.0])
            delta[0] += sign * piece.requested
            delta[1] += sign * piece.allocatable
    total, out, places = [0.0, 0.0], [], sorted(deltas)
    for x, after in pairwise(places):
        total = [t + d for t, d in zip(total, deltas[x], strict=True)]
        out.append(_Piece(x, after, total[0], total[1]))
    return out


def _strips(context: Context, pieces: Mapping[str, Sequence[_Piece]]) -> tuple[Strip, ...]:
    return tuple(
        Strip(r, band_marks(cut_out(_runs(pieces.get(r, ())), context.holes), _ROW_HEIGHT))
        for r in RESOURCES
    )


def _heat(context: Context, nodes: list[_Node]) -> Figure:
    rows: list[StripRow] = []
    for zone in sorted({n.zone for n in nodes}, key=lambda z: (z == "", z)):
        members = [n for n in nodes if n.zone == zone]
        rows.append(_zone_row(context, zone, members))
        shown = _bounded(members, len(nodes))
        rows += [_node_row(context, n) for n in shown]
        if len(shown) < len(members):
            rows.append(StripRow(label=f"{len(members) - len(shown)} more", tone="more"))
    chart = StripChart(
        axis=context.axis(),
        rows=tuple(rows),
        label_head="Node",
        switch=RESOURCES,
        tone="heat",
        value_heads=(Header("cpu %", "v3"), Header("mem %", "v3"), Header("pods", "v4")),
    )
    return Figure(
        id="fig-nodes",
        title="Requested share of each node over time",
        caption="One row a node under the total of its zone; a step for each change. Values on "
        "the right stand at the end of the window." + context.zone_note(),
        queries=context.queries("node_balance", "node_changes"),
        legend=_heat_legend(),
        chart=chart if nodes else None,
        data=_node_table(context, nodes),
        empty="" if nodes else "No node's requests are in the record.",
    )


def _heat_legend() -> tuple[LegendItem, ...]:
    shares = ("0", "<25", "25–50", "50–75", "75–90", "≥90 %")
    steps = [
        LegendItem(label, f"h{i}", "" if i else "Requested ÷ allocatable")
        for i, label in enumerate(shares)
    ]
    return (
        *steps,
        LegendItem("cordoned", "hz cor", "Overlay"),
        LegendItem("taint", "hz tnt"),
        LegendItem("not ready", "hz nrd"),
    )


def _bounded(members: list[_Node], of_all: int) -> list[_Node]:
    if of_all <= _MAX_NODES or len(members) <= 2 * _KEPT_AT_EACH_END:
        return members
    by_heat = sorted(members, key=lambda n: (-(_end_ratio(n, "cpu") or 0), natural_order(n.name)))
    kept = {n.name for n in (*by_heat[:_KEPT_AT_EACH_END], *by_heat[-_KEPT_AT_EACH_END:])}
    return [n for n in members if n.name in kept]


def _end_ratio(node: _Node, resource: str) -> float | None:
    piece = node.at_end(resource)
    return piece.ratio if piece else None


def _zone_row(context: Context, zone: str, members: list[_Node]) -> StripRow:
    totals = {r: _sum(members, r) for r in RESOURCES}
    ends = {r: totals[r][-1] if totals[r] else None for r in RESOURCES}
    there = [n for n in members if n.is_there]
    is_open = sum(n.state == "open" for n in there)
    return StripRow(
        label=zone or "no zone label",
        more=f"{is_open} of {len(there)} open",
        tone="total",
        zone=context.zone(zone).css,
        strips=_strips(context, totals),
        values=_values(ends),
    )


def _node_row(context: Context, node: _Node) -> StripRow:
    ends = {r: node.at_end(r) for r in RESOURCES}
    return StripRow(
        label=node.name,
        more=node.state if node.is_there else "gone",
        href=link_to(node_anchor(node.name)),
        tone="open" if node.state == "open" and node.is_there else "",
        strips=_strips(context, node.pieces),
        overlays=_overlays(context, node.spans),
        values=_values(ends),
    )


def _overlays(context: Context, spans: Iterable[NodeSpan]) -> tuple[Overlay, ...]:
    if context.window is None:
        return ()
    out = []
    for span in spans:
        left, width = percent_of_plot(context.window.x(span.begin), context.window.x(span.end))
        out.append(Overlay(_OVERLAYS[span.kind], left, width))
    return tuple(out)


def _values(ends: Mapping[str, _Piece | None]) -> tuple[Cell, ...]:
    cells = [_share(ends[r], "v3") for r in ("cpu", "memory")]
    pods = ends["pods"]
    if pods is None:
        return (*cells, Cell(text=numbers.UNKNOWN, tone="v4 mut"))
    more = f"/{numbers.count(pods.allocatable)}"
    return (*cells, Cell(text=numbers.count(pods.requested), more=more, tone="v4"))


def _share(piece: _Piece | None, tone: str) -> Cell:
    value = piece.ratio if piece else None
    heavy = " b" if value is not None and value >= 0.9 else ""
    return Cell(text=numbers.percent(value, sign=False), tone=tone + heavy)


def _mean_and_peak(pieces: Sequence[_Piece]) -> tuple[float | None, float | None]:
    known = [(p.end - p.begin, p.ratio) for p in pieces if p.ratio is not None and p.end > p.begin]
    length = sum(w for w, _ in known)
    if not length:
        return None, None
    return sum(w * r for w, r in known) / length, max(r for _, r in known)


def _node_table(context: Context, nodes: list[_Node]) -> Table | None:
    heads = [Header("Node"), Header("Zone"), Header("State at the end")]
    for resource in RESOURCES:
        heads += [Header(f"{resource} {what}", "r") for what in ("at the end", "mean", "peak")]
    rows = []
    for node in nodes:
        zone = context.zone(node.zone)
        cells = [
            Cell(text=node.name, href=link_to(node_anchor(node.name))),
            Cell(text=node.zone or "none", tone=zone.css),
            Cell(text=node.state if node.is_there else "gone"),
        ]
        for resource in RESOURCES:
            mean, peak = _mean_and_peak(node.pieces.get(resource, ()))
            values = (_end_ratio(node, resource), mean, peak)
            cells += [Cell(text=numbers.percent(v), tone="r") for v in values]
        rows.append(tuple(cells))
    return Table(headers=tuple(heads), rows=tuple(rows)) if rows else None


def _imbalance(context: Context) -> Figure:
    series = {r: _coefficients(context, r) for r in ("cpu", "memory")}
    known = [y for points in series.values() for _, _, y in points if y is not None]
    table = _balance_table(context)
    return Figure(
        id="fig-imbalance",
        title="Imbalance between nodes",
        caption="Population σ ÷ mean of requested ÷ allocatable over Ready nodes: 0 is even. "
        "Not drawn while less than 10 % is requested.",
        queries=context.queries("balance"),
        table=table,
        chart=_imbalance_chart(context, series, max(known)) if known else None,
        empty="" if table else "No balance was recorded.",
        note="" if known or not table else "Less than 10 % was requested throughout.",
    )


def _coefficients(context: Context, resource: str) -> list[tuple[int, int, float | None]]:
    points: list[tuple[int, int, float | None]] = []
    for row in context.rows("balance"):
        begin = instant(row, "from_at")
        if context.window is None or begin is None or text(row, "resource") != resource:
            continue
        low, high = context.window.x(begin), context.window.x(instant(row, "to_at"))
        if high > low:
            points.append((low, high, _coefficient(row)))
    return sorted(points, key=lambda p: p[:2])


def _coefficient(row: Row) -> float | None:
    mean, deviation = number(row, "mean_ratio"), number(row, "stddev_ratio")
    return None if mean is None or deviation is None or mean < 0.1 else deviation / mean


def _imbalance_chart(
    context: Context, series: Mapping[str, list[tuple[int, int, float | None]]], peak: float
) -> LineChart:
    height, top = 110, nice_ceiling(peak)
    lines = []
    for css, resource in (("l-a", "cpu"), ("l-b", "memory")):
        drawn = [
            (a, b, None if y is None else height - y * height / top) for a, b, y in series[resource]
        ]
        ends = [y for _, _, y in series[resource]][-1:]
        if not ends:
            continue
        last = ends[0]
        place = 50.0 if last is None else round(100 - last * 100 / top, 2)
        lines.append(
            Line(css, line_path(drawn, context.holes), numbers.ratio(last), resource, place)
        )
    return LineChart(
        axis=context.axis(),
        lines=apart(lines, 100 * 15 / height),
        height=height,
        y_ticks=y_ticks(top, whole=False),
        y_title="coefficient of variation, σ ÷ mean",
    )


def _balance_table(context: Context) -> Table | None:
    last: dict[str, Row] = {}
    for row in context.rows("balance"):
        last[text(row, "resource")] = row
    heads = (
        "Resource at the end",
        "mean",
        "σ",
        "σ ÷ mean",
        "fullest node",
        "emptiest node",
        "Gini",
        "stranded",
    )
    rows = tuple(_balance_row(name, last[name]) for name in sorted(last, key=_resource_order))
    headers = tuple(Header(h, "r" if i else "") for i, h in enumerate(heads))
    return Table(headers=headers, rows=rows) if rows else None


def _resource_order(name: str) -> tuple[int, str]:
    return (RESOURCES.index(name) if name in RESOURCES else len(RESOURCES), name)


def _balance_row(resource: str, row: Row) -> tuple[Cell, ...]:
    mean, deviation = number(row, "mean_ratio"), number(row, "stddev_ratio")
    quotient = deviation / mean if mean and deviation is not None else None
    shown = (
        numbers.percent(mean),
        numbers.ratio(deviation),
        numbers.ratio(quotient),
        numbers.percent(number(row, "max_ratio")),
        numbers.percent(number(row, "min_ratio")),
        numbers.ratio(number(row, "gini")),
        numbers.amount(resource, number(row, "stranded")),
    )
    return (Cell(text=resource, tone="b"), *(Cell(text=s, tone="r") for s in shown))


def _zone_table(context: Context, nodes: list[_Node]) -> Figure:
    zones = sorted({n.zone for n in nodes}, key=lambda z: (z == "", z))
    heads = (
        Header("Zone"),
        Header("Nodes", "r"),
        Header("Open", "r"),
        Header("cpu requested", "r"),
        Header("of allocatable"),
        Header("memory requested", "r"),
        Header("of allocatable"),
        Header("Pods", "r"),
        Header("Fullest open node"),
        Header("Emptiest node"),
    )
    rows = tuple(_zone_cells(context, z, [n for n in nodes if n.zone == z]) for z in zones)
    return Figure(
        id="fig-zones-end",
        title="Zones at the end",
        caption="Sums over the nodes that are there at the end. An open node is Ready, not "
        "cordoned and without a NoSchedule or NoExecute taint.",
        queries=context.queries("node_balance", "node_changes"),
        table=Table(headers=heads, rows=rows) if rows else None,
        empty="" if rows else "No node is in the record.",
    )


def _zone_cells(context: Context, zone: str, members: list[_Node]) -> tuple[Cell, ...]:
    mark = context.zone(zone)
    sums = {r: _end_sum(members, r) for r in RESOURCES}
    members = [n for n in members if n.is_there]
    is_open = [n for n in members if n.state == "open"]
    return (
        Cell(text=zone or "no zone label", tone=f"b {mark.css}"),
        Cell(text=numbers.count(len(members)), tone="r"),
        Cell(text=numbers.count(len(is_open)), tone="r"),
        Cell(text=numbers.amount("cpu", sums["cpu"].requested), tone="r"),
        Cell(text=numbers.percent(sums["cpu"].ratio), bar=sums["cpu"].ratio),
        Cell(text=numbers.amount("memory", sums["memory"].requested), tone="r"),
        Cell(text=numbers.percent(sums["memory"].ratio), bar=sums["memory"].ratio),
        Cell(text=numbers.count(sums["pods"].requested), tone="r"),
        _extreme(is_open, fullest=True),
        _extreme(members, fullest=False),
    )


def _end_sum(members: Iterable[_Node], resource: str) -> _Piece:
    ends = [p for p in (n.at_end(resource) for n in members) if p is not None]
    return _Piece(0, PLOT_WIDTH, sum(p.requested for p in ends), sum(p.allocatable for p in ends))


def _extreme(members: Iterable[_Node], fullest: bool) -> Cell:
    known = [(_end_ratio(n, "cpu"), n) for n in members]
    ranked = sorted(
        ((r, natural_order(n.name), n.name) for r, n in known if r is not None),
        key=lambda item: (-item[0] if fullest else item[0], item[1]),
    )
    if not ranked:
        return Cell(text="none", tone="mut")
    share, _, name = ranked[0]
    return Cell(text=name, more=f"{numbers.percent(share)} cpu", href=link_to(node_anchor(name)))
