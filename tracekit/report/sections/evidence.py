"""Evidence and holes: the clock, diagnostics, gaps and the SQL of every query."""

from __future__ import annotations

from collections import Counter

from tracekit.report import numbers
from tracekit.report.context import Context
from tracekit.report.fields import Row, number, text, whole
from tracekit.report.page import Block, Cell, Figure, Header, Table

__all__ = ["build_evidence"]

_SEVERITIES = {
    "ERROR": (0, "■", "crit"),
    "DATA_LOSS": (1, "▲", "high"),
    "INFO": (2, "●", "info"),
}
_UNKNOWN_SEVERITY = (3, "", "mut")
_MAX_ROWS = 100


def build_evidence(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the section's figures and its badge: diagnostics and gaps."""
    damage = len(context.rows("diagnostics")) + len(context.rows("gaps"))
    blocks = (_clock(context), _diagnostics(context), _gaps(context), _index(context))
    return blocks, numbers.count(damage)


def _clock(context: Context) -> Figure:
    sources = [
        q
        for q in ("pod_revisions", "attempts", "bindings", "node_changes", "moves")
        if context.rows(q)
    ]
    heads = (
        "Query",
        "Rows with a time",
        "Observed",
        "Estimated",
        "Unknown",
        "Median bound",
        "Largest bound",
    )
    rows = tuple(_clock_row(q, context.rows(q)) for q in sources)
    headers = tuple(Header(h, "r" if i else "") for i, h in enumerate(heads))
    return Figure(
        id="fig-clock",
        title="The clock",
        caption="An etcd stream has revisions and no wall time. The time of a revision is "
        "estimated from the times inside its objects and never runs backwards; such a time is "
        "printed with ≈ and its error bound, an observed one without. All times are UTC.",
        queries=context.queries(*sources),
        table=Table(headers=headers, rows=rows) if rows else None,
        empty="" if rows else "Nothing in the record has a time.",
    )


def _clock_row(name: str, rows: list[dict[str, object]]) -> tuple[Cell, ...]:
    certainty = Counter(text(r, "at_certainty") or "not told" for r in rows)
    bounds = sorted(
        b
        for r in rows
        if text(r, "at_certainty") == "estimated"
        and (b := number(r, "at_error_seconds")) is not None
    )
    told = certainty["not told"] < len(rows)
    values = [numbers.count(len(rows))]
    for kind in ("observed", "estimated", "unknown"):
        values.append(numbers.count(certainty[kind]) if told else numbers.UNKNOWN)
    values.append(numbers.seconds(bounds[len(bounds) // 2] if bounds else None))
    values.append(numbers.seconds(bounds[-1] if bounds else None))
    return (Cell(text=name, tone="m"), *(Cell(text=v, tone="r") for v in values))


def _severity(row: Row) -> tuple[int, str, str]:
    return _SEVERITIES.get(text(row, "severity"), _UNKNOWN_SEVERITY)


def _diagnostics(context: Context) -> Figure:
    rows = sorted(
        context.rows("diagnostics"),
        key=lambda r: (_severity(r)[0], text(r, "code"), text(r, "source")),
    )
    heads = ("Severity", "Code", "Source", "Count", "First at", "Example", "What helps")
    left = len(rows) - _MAX_ROWS
    table = Table(
        headers=tuple(Header(h, "r" if h == "Count" else "") for h in heads),
        rows=tuple(_diagnostic_row(r) for r in rows[:_MAX_ROWS]),
        left_out=f"{numbers.plural(left, 'more row')} in the query." if left > 0 else "",
    )
    return Figure(
        id="fig-diagnostics",
        title="Diagnostics",
        caption="What was damaged, unknown or assumed while reading, by kind and source.",
        queries=context.queries("diagnostics"),
        table=table if rows else None,
        empty="" if rows else "No damage is recorded.",
    )


def _diagnostic_row(row: Row) -> tuple[Cell, ...]:
    _, shape, tone = _severity(row)
    words = text(row, "severity").lower().replace("_", " ")
    return (
        Cell(text=words, shape=shape, tone=tone),
        Cell(text=text(row, "code"), tone="m"),
        Cell(text=text(row, "source"), tone="m"),
        Cell(text=numbers.count(whole(row, "count")), tone="r"),
        Cell(text=text(row, "first_at") or numbers.UNKNOWN),
        Cell(text=_short(text(row, "example")), tone="m wide"),
        Cell(text=text(row, "remedy"), tone="wide"),
    )


def _short(words: str, limit: int = 240) -> str:
    return words if len(words) <= limit else words[:limit] + " …"


def _gaps(context: Context) -> Figure:
    rows = context.rows("gaps")
    heads = ("Source", "From revision", "To revision", "From", "To", "Cause")
    headers = tuple(Header(h, "r" if "revision" in h else "") for h in heads)
    table = Table(headers=headers, rows=tuple(_gap_row(context, r) for r in rows[:_MAX_ROWS]))
    return Figure(
        id="fig-gaps",
        title="Holes in the record",
        caption="Stretches that may be missing. They are outlined in red on every plot, and "
        "nothing is drawn across them.",
        queries=context.queries("gaps"),
        table=table if rows else None,
        empty="" if rows else "The record has no known hole.",
    )


def _gap_row(context: Context, row: Row) -> tuple[Cell, ...]:
    return (
        Cell(text=text(row, "source"), tone="m"),
        Cell(text=text(row, "from_revision") or numbers.UNKNOWN, tone="r"),
        Cell(text=text(row, "to_revision") or numbers.UNKNOWN, tone="r"),
        context.time(row, "from_at"),
        context.time(row, "to_at"),
        Cell(text=text(row, "cause")),
    )


def _index(context: Context) -> Figure:
    names = sorted(n for n in context.results if not n.startswith("_"))
    rows = tuple(
        (
            Cell(text=n, tone="m"),
            Cell(text=numbers.count(len(context.rows(n))), tone="r"),
            Cell(text=f"tracekit query {n}", tone="m mut"),
        )
        for n in names
    )
    headers = (Header("Query"), Header("Rows", "r"), Header("The same rows in full"))
    return Figure(
        id="fig-queries",
        title="Queries",
        caption="Every number on this page is a row of one of these, or a sum of such rows.",
        queries=(),
        table=Table(headers=headers, rows=rows) if rows else None,
        empty="" if rows else "No query was run.",
    )
