"""The nouns of a page: what the templates loop over and print, already in words.

Every text here may be hostile and is escaped when printed; every ``tone`` and ``css`` comes
from a closed set of class names and every geometry is made of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracekit.report.instants import Tick

__all__ = [
    "AreaChart",
    "Axis",
    "Block",
    "Cell",
    "ColumnHelp",
    "Figure",
    "Header",
    "LegendItem",
    "Life",
    "Line",
    "LineChart",
    "Mark",
    "Overlay",
    "Page",
    "PodPage",
    "PodSection",
    "Query",
    "Section",
    "Strip",
    "StripChart",
    "StripRow",
    "Table",
    "Verdict",
    "YTick",
]

_LABEL_LENGTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One table cell.

    Attributes:
        tone: Class name: ``r`` right, ``m`` mono, ``mut`` muted, ``b`` bold, and such.
        href: Fragment the text links to; empty for none.
        swatch: Cause or zone class whose colour stands before the text; empty for none.
        shape: Glyph before the text, the channel beside the colour.
        tint: 0 to 1, how strongly the cell is tinted; None for not at all.
        bar: 0 to 1, length of a small bar before the text; None for none.
        bound: Error bound of an estimated time; empty when it is observed.
        more: Second, muted text after the first.
    """

    text: str
    tone: str = ""
    href: str = ""
    swatch: str = ""
    shape: str = ""
    tint: float | None = None
    bar: float | None = None
    bound: str = ""
    more: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """One column heading; ``tone`` as in ``Cell``."""

    label: str
    tone: str = ""
    swatch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; ``left_out`` says in words what is not in it, empty when all is."""

    headers: tuple[Header, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] = ()
    left_out: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class LegendItem:
    """One key of a legend; ``group`` is printed bold before the first of its members."""

    label: str
    css: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """The shared time axis and the holes of the record, both in percent of the plot."""

    ticks: tuple[Tick, ...]
    gaps: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class YTick:
    """One horizontal grid line at ``top`` percent of the plot's height."""

    top: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One SVG path in plot units and the class that colours it."""

    css: str
    d: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """A state laid over a strip, in percent; ``label`` stands inside when it fits."""

    css: str
    left: float
    width: float
    title: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """One strip of a row; ``key`` picks it when the figure has a switch."""

    key: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StripRow:
    """One row of a strip chart: a label, strips on the time axis, values on the right.

    Attributes:
        short: Print the label without its middle, so that names of one prefix stay apart.
    """

    label: str
    short: bool = False
    more: str = ""
    href: str = ""
    anchor: str = ""
    tone: str = ""
    zone: str = ""
    strips: tuple[Strip, ...] = ()
    overlays: tuple[Overlay, ...] = ()
    values: tuple[Cell, ...] = ()

    @property
    def shown(self) -> str:
        """The label as it is printed."""
        half = _LABEL_LENGTH // 2
        if not self.short or len(self.label) <= _LABEL_LENGTH:
            return self.label
        return f"{self.label[:half]}…{self.label[-half:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StripChart:
    """Rows of strips over one time axis; ``switch`` names the keys a reader may pick."""

    axis: Axis
    rows: tuple[StripRow, ...]
    label_head: str
    value_heads: tuple[Header, ...] = ()
    switch: tuple[str, ...] = ()
    tone: str = ""
    height: int = 10
    left_out: str = ""
    kind: str = "strips"


@dataclass(frozen=True, slots=True)
class Line:
    """One line or area with its direct label at ``top`` percent; no label when it is empty."""

    css: str
    d: str
    value: str
    label: str
    top: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines over the shared time axis; ``height`` in pixels is also the plot's unit."""

    axis: Axis
    lines: tuple[Line, ...]
    y_ticks: tuple[YTick, ...]
    y_title: str
    height: int
    kind: str = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaChart:
    """Stacked step areas over the shared time axis."""

    axis: Axis
    areas: tuple[Line, ...]
    y_ticks: tuple[YTick, ...]
    y_title: str
    height: int
    kind: str = "areas"


@dataclass(frozen=True, slots=True)
class ColumnHelp:
    """One column of a query in words."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Query:
    """A query a figure rests on; ``sql`` is empty when it was not run."""

    name: str
    sql: str
    rows: int
    columns: tuple[ColumnHelp, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: a claim, its chart or table, the table behind it and its queries.

    Attributes:
        empty: Sentence printed instead of chart and tables when there is nothing to show.
        data: The table behind the chart, folded away.
    """

    id: str
    title: str
    caption: str
    queries: tuple[Query, ...]
    legend: tuple[LegendItem, ...] = ()
    chart: StripChart | LineChart | AreaChart | None = None
    table: Table | None = None
    data: Table | None = None
    empty: str = ""
    note: str = ""
    number: int = 0
    kind: str = "figure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A pod's life as one bar in percent of its own length, with its ends in words."""

    parts: tuple[Overlay, ...]
    begin: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPage:
    """One pod: a claim, its life bar, its revisions and verdicts."""

    anchor: str
    name: str
    facts: str
    claim: str
    life: Life | None
    revisions: Table
    verdicts: Table | None
    message: str = ""
    summary: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSection:
    """The pods that have a page in this file."""

    pods: tuple[PodPage, ...]
    queries: tuple[Query, ...]
    legend: tuple[LegendItem, ...] = ()
    left_out: str = ""
    empty: str = ""
    kind: str = "pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The top of the page: one sentence, the facts and what to know before believing them."""

    sentence: str
    support: str
    facts: tuple[tuple[str, str], ...]
    banners: tuple[str, ...]
    queries: tuple[Query, ...]
    kind: str = "verdict"


Block = Figure | PodSection | Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section; ``badge`` is the number beside its name.

    A section without a row stays: ``empty`` says what to collect, ``queries`` what was asked.
    """

    id: str
    title: str
    lead: str
    badge: str
    blocks: tuple[Block, ...]
    empty: str = ""
    queries: tuple[Query, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report."""

    title: str
    template: str
    cluster: str
    window: str
    revisions: str
    generated_by: str
    sections: tuple[Section, ...]
