"""Nodes: cordons, taints and readiness over time, and each change."""

from __future__ import annotations

from tracekit.report import numbers
from tracekit.report.anchors import link_to, node_anchor
from tracekit.report.context import Context
from tracekit.report.fields import Row, text
from tracekit.report.marks import percent_of_plot
from tracekit.report.node_states import NodeSpan, natural_order, node_spans
from tracekit.report.page import (
    Block,
    Cell,
    Figure,
    Header,
    LegendItem,
    Overlay,
    StripChart,
    StripRow,
    Table,
)

__all__ = ["build_nodes"]

_MAX_NODES = 60
_MAX_CHANGES = 200
_CSS = {
    "cordoned": "nb cordoned",
    "tainted": "nb taint",
    "not_ready": "nb notready",
    "gone": "nb gone",
}
_WORDS = {"cordoned": "cordoned", "not_ready": "not ready", "gone": "deleted"}
_CHARACTER_PERCENT = 0.72


def build_nodes(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the section's figures and its badge: the number of changes."""
    rows: list[Row] = list(context.rows("node_changes"))
    return (_timeline(context, rows),), numbers.count(len(rows)) if rows else ""


def _timeline(context: Context, rows: list[Row]) -> Figure:
    spans = node_spans(rows)
    zones = {text(r, "node"): text(r, "zone") for r in rows}
    busy = {s.node for s in spans}
    names = sorted(zones, key=lambda n: (zones[n] == "", zones[n], natural_order(n)))
    if len(names) > _MAX_NODES:
        names = [n for n in names if n in busy][:_MAX_NODES]
    left = len(zones) - len(names)
    chart = StripChart(
        axis=context.axis(),
        label_head="Node",
        tone="nodes",
        rows=tuple(_node_row(context, n, zones[n], spans, rows) for n in names),
        value_heads=(Header("changes", "v4"),),
        left_out=f"{numbers.plural(left, 'more node')} without such a state." if left else "",
    )
    return Figure(
        id="fig-node-states",
        title="State of each node",
        caption="Upper lane: cordons and lost readiness. Lower lane: taints.",
        queries=context.queries("node_changes"),
        legend=(
            LegendItem("cordoned", "nb cordoned"),
            LegendItem("not ready", "nb notready"),
            LegendItem("taint", "nb taint"),
        ),
        chart=chart if names else None,
        data=_changes(context, rows),
        empty="" if names else "No node changed.",
    )


def _node_row(
    context: Context, node: str, zone: str, spans: list[NodeSpan], rows: list[Row]
) -> StripRow:
    mark = context.zone(zone)
    return StripRow(
        label=node,
        more=mark.letter,
        zone=mark.css,
        anchor=node_anchor(node),
        overlays=tuple(o for s in spans if s.node == node for o in _bars(context, s)),
        values=(Cell(text=numbers.count(sum(text(r, "node") == node for r in rows)), tone="v4"),),
    )


def _bars(context: Context, span: NodeSpan) -> tuple[Overlay, ...]:
    window = context.window
    if window is None:
        return ()
    left, width = percent_of_plot(window.x(span.begin), window.x(span.end))
    words = _WORDS.get(span.kind, span.detail)
    fits = len(words) * _CHARACTER_PERCENT + 1 < width
    until = "the end" if span.end is None else window.label(span.end, 0)
    title = f"{words}, {window.label(span.begin, 0)} to {until}"
    return (Overlay(_CSS[span.kind], left, width, title, words if fits else ""),)


def _changes(context: Context, rows: list[Row]) -> Table | None:
    notable = [r for r in rows if text(r, "change") not in ("labels", "allocatable")]
    kept = (notable if len(rows) > _MAX_CHANGES else rows)[:_MAX_CHANGES]
    left = len(rows) - len(kept)
    heads = ("Time (UTC)", "Revision", "Node", "Zone", "Change", "Detail")
    return (
        Table(
            headers=tuple(Header(h, "r" if h == "Revision" else "") for h in heads),
            rows=tuple(_change_row(context, r) for r in kept),
            left_out=f"{numbers.plural(left, 'more change')} in the query." if left else "",
        )
        if kept
        else None
    )


def _change_row(context: Context, row: Row) -> tuple[Cell, ...]:
    zone = context.zone(text(row, "zone"))
    return (
        context.time(row),
        Cell(text=text(row, "revision"), tone="r"),
        Cell(text=text(row, "node"), href=link_to(node_anchor(text(row, "node")))),
        Cell(text=zone.name or "none", tone=zone.css),
        Cell(text=text(row, "change").replace("_", " "), tone="b"),
        Cell(text=text(row, "detail") or numbers.UNKNOWN, tone="wide"),
    )
