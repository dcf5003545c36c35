"""Rows written by hand: a page built from them, and its parts by name."""

from __future__ import annotations

from tests.report.synthetic import Rows, result
from tracekit.model.results import ReportFacts
from tracekit.report import build_view
from tracekit.report.page import Block, Cell, Figure, Page, PodPage, PodSection, Table, Verdict

FACTS = ReportFacts(
    cluster="test",
    first_revision=1,
    last_revision=100,
    window_from="2026-12-01T12:00:00.000000Z",
    window_to="2026-12-01T12:01:40.000000Z",
    generated_by="tracekit 0",
)


def at(seconds: float) -> str:
    """Return an instant of the window: 0 is its begin, 100 its end; one second is 20 units."""
    return f"2026-12-01T12:{int(seconds) // 60:02d}:{seconds % 60:09.6f}Z"


def page(facts: ReportFacts = FACTS, **rows: Rows) -> Page:
    """Build the page of some queries' rows."""
    return build_view({name: result(name, r) for name, r in rows.items()}, facts)


def blocks(view: Page) -> list[Block]:
    """Return all blocks of a page."""
    return [b for s in view.sections for b in s.blocks]


def figure(view: Page, figure_id: str) -> Figure:
    """Return a figure by its id."""
    return next(b for b in blocks(view) if isinstance(b, Figure) and b.id == figure_id)


def verdict(view: Page) -> Verdict:
    """Return the head of a page."""
    return next(b for b in blocks(view) if isinstance(b, Verdict))


def pods(view: Page) -> tuple[PodPage, ...]:
    """Return the pod pages."""
    return next(b for b in blocks(view) if isinstance(b, PodSection)).pods


def texts(cells: tuple[Cell, ...]) -> list[str]:
    """Return what a row prints."""
    return [f"{c.text} {c.more}".strip() for c in cells]


def table(found: Table | None) -> list[list[str]]:
    """Return what a table prints, row by row."""
    assert found is not None
    return [texts(row) for row in found.rows]


def pod(name: str, **columns: object) -> dict[str, object]:
    """Return the columns that name a pod."""
    return {"namespace": "ns", "pod": name, "uid": f"uid-{name}", **columns}
