"""Every shipped query keeps the SQL contract, and the queries together are a catalogue."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.conformance.sql_contract import problems
from tests.recordings import ROOT
from tracekit.model.tables import TABLES
from tracekit.query.header import read_header
from tracekit.query.runner import FIXED_VIEWS

QUERIES = sorted((ROOT / "queries").rglob("*.sql"))
STEMS = [path.stem for path in QUERIES]


def _sources(path: Path) -> tuple[str, ...]:
    return read_header(path.read_text()).sources


@pytest.mark.parametrize("path", QUERIES, ids=STEMS)
def test_query_keeps_the_contract(path: Path) -> None:
    assert problems(path, read_header(path.read_text())) == []


@pytest.mark.parametrize("path", QUERIES, ids=STEMS)
def test_query_reads_what_exists(path: Path) -> None:
    views = {*(f"{table}_rows" for table in TABLES), *FIXED_VIEWS}
    assert set(_sources(path)) <= {*views, *STEMS}


def test_queries_are_there() -> None:
    assert QUERIES, "queries/ has no .sql file"


def test_query_names_are_unique() -> None:
    assert len(STEMS) == len(set(STEMS))


def test_queries_do_not_read_each_other_in_a_circle() -> None:
    TopologicalSorter({path.stem: _sources(path) for path in QUERIES}).prepare()
