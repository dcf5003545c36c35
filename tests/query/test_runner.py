"""Header, build order and running: text in, rows out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from tracekit.errors import NotFoundError, QueryError
from tracekit.model.diagnostics import CODES
from tracekit.model.tables import TABLES
from tracekit.query import Catalog, QueryRunner, result_of
from tracekit.query.header import read_header

# The pipeline gives the real one; a shipped query calls it.
FUNCTIONS: dict[str, Callable[[str], str]] = {
    "klog_fields": lambda raw: raw,
    "klog_pods": lambda raw: raw,
}
HEADER = """\
-- Pods by node.
-- @grain one row per node
-- @column node  text; name of the node
-- @column pods  pods; pods on it; now
-- @source {source}
SELECT node, pods FROM {source} ORDER BY node
"""


def test_a_header_is_read() -> None:
    header = read_header(HEADER.format(source="a, b"))
    assert header.summary == "Pods by node."
    assert header.grain == "one row per node"
    assert [(c.name, c.unit, c.meaning) for c in header.columns] == [
        ("node", "text", "name of the node"),
        ("pods", "pods", "pods on it; now"),
    ]
    assert header.sources == ("a", "b")


@pytest.mark.parametrize("part", ["Pods by node.", "@grain", "@column", "@source"])
def test_a_header_without_a_part_is_refused(part: str) -> None:
    text = "\n".join(line for line in HEADER.splitlines() if part not in line)
    with pytest.raises(QueryError, match=r"^x\.sql: the header has no"):
        read_header(text, where="x.sql")


@pytest.mark.parametrize(
    "line", ["node text; x", "node  parsecs; x", "node  text x", "node  text;"]
)
def test_a_column_line_has_name_unit_and_meaning(line: str) -> None:
    if line == "node text; x":  # one space is enough
        read_header(HEADER.replace("node  text; name of the node", line))
        return
    with pytest.raises(QueryError, match="malformed @column line"):
        read_header(HEADER.replace("node  text; name of the node", line))


@pytest.fixture
def catalog(tmp_path: Path) -> Callable[..., Catalog]:
    def make(**queries: str) -> Catalog:
        for name, sql in queries.items():
            (tmp_path / f"{name}.sql").write_text(sql, encoding="utf-8")
        return Catalog(tmp_path)

    return make


def base(sql: str) -> str:
    return HEADER.format(source="pods_rows").replace(
        "SELECT node, pods FROM pods_rows ORDER BY node", sql
    )


def test_a_query_is_built_after_what_it_reads(catalog: Callable[..., Catalog]) -> None:
    shipped = catalog(
        a=HEADER.format(source="b"), b=HEADER.format(source="_c"), _c=base("SELECT 1")
    )
    assert [query.name for query in shipped.build_order(["a", "b"])] == ["_c", "b", "a"]
    assert [query.name for query in shipped.queries.values() if not query.private] == ["a", "b"]


def test_a_query_reads_another_by_its_name(catalog: Callable[..., Catalog]) -> None:
    runner = QueryRunner(
        {},
        catalog=catalog(
            a=HEADER.format(source="b"),
            b=base("SELECT 'n' || i AS node, i AS pods FROM range(2) AS r (i) ORDER BY i"),
        ),
    )
    assert runner.run("a").rows() == [("n0", 0), ("n1", 1)]
    assert runner.run("SELECT sum(pods) AS pods FROM a").rows() == [(1,)]


def test_an_unknown_name_gives_the_nearest(catalog: Callable[..., Catalog]) -> None:
    runner = QueryRunner({}, catalog=catalog(bindings=base("SELECT 1")))
    with pytest.raises(NotFoundError, match="no query 'bindigns'; did you mean bindings"):
        runner.run("bindigns")


def test_every_table_can_be_read_before_it_has_rows() -> None:
    runner = QueryRunner({}, FUNCTIONS)
    for table in TABLES.values():
        frame = runner.run(f"SELECT * FROM {table.name}_rows")
        assert (frame.columns, frame.height) == ([c.name for c in table.columns], 0)
    for query in runner.catalog.queries.values():
        frame = runner.run(query.name)
        assert frame.columns == [column.name for column in query.header.columns]
        assert frame.height == 0
    assert runner.run("SELECT count(*) AS n FROM diagnostic_codes_rows").rows() == [(len(CODES),)]


def test_rows_come_from_the_files_given(tmp_path: Path) -> None:
    at = datetime(2026, 12, 1, 15, 59, tzinfo=UTC)
    path = tmp_path / "it's.parquet"
    pl.DataFrame(
        {
            "cluster": ["c"],
            "revision": [7],
            "at": [at],
            "at_certainty": ["estimated"],
            "at_error_seconds": [0.5],
        },
        schema_overrides={"at": pl.Datetime("us", "UTC")},
    ).write_parquet(path)
    runner = QueryRunner({"revision_times": [str(path)]}, FUNCTIONS)
    frame = runner.run("SELECT * FROM revision_times_rows")
    assert frame.rows() == [("c", 7, at, "estimated", 0.5)]
    assert frame.schema["at"] == pl.Datetime("us", "UTC")


def test_a_function_of_the_caller_can_be_called() -> None:
    runner = QueryRunner({}, FUNCTIONS | {"shout": lambda text: text.upper()})
    assert runner.run("SELECT shout('pod') AS text").rows() == [("POD",)]


def test_json_columns_are_nested_in_a_result(catalog: Callable[..., Catalog]) -> None:
    sql = base("SELECT '{\"a\":[1]}' AS node, 2 AS pods, TIMESTAMPTZ '2026-12-01 00:00:00Z' AS at")
    shipped = catalog(a=sql.replace("node  text;", "node  json;"))
    frame = QueryRunner({}, catalog=shipped).run("a")
    result = result_of(shipped.get("a"), frame)
    assert result.rows == [{"node": {"a": [1]}, "pods": 2, "at": "2026-12-01T00:00:00.000000Z"}]


@pytest.mark.parametrize(
    ("expression", "value", "dtype"),
    [
        ("INTERVAL 90 MINUTE", "01:30:00", pl.String),
        ("NULL::INTERVAL", None, pl.String),
        ("[INTERVAL 1 DAY]", '["1 day"]', pl.String),
        ("{'a': 1, 'b': INTERVAL 1 DAY}", '{"a":1,"b":"1 day"}', pl.String),
        ("[MAP {'a': INTERVAL 1 DAY}]", '[{"a":"1 day"}]', pl.String),
        ("union_value(a := 1)", "1", pl.String),
        ("'101'::BIT", "101", pl.String),
        ("'10:00:00+02'::TIMETZ", "10:00:00+02", pl.String),
        ("sum(i) FROM range(3) AS r (i)", 3, pl.Int64),
        ("1::HUGEINT", 1, pl.Int64),
        ("1::UHUGEINT", 1, pl.Int64),
        ("1::DECIMAL(38, 0)", 1, pl.Int64),
        ("1.5::DECIMAL(10, 3)", 1.5, pl.Float64),
        ("avg(i) FROM range(4) AS r (i)", 1.5, pl.Float64),
        ("DATE '2026-12-01'", date(2026, 12, 1), pl.Date),
        ("'infinity'::DATE", None, pl.Date),
        ("TIMESTAMPTZ 'infinity'", None, pl.Datetime("us", "UTC")),
        ("TIMESTAMP '12026-01-01 00:00:00'", None, pl.Datetime("us")),
        (
            "TIMESTAMP_NS '2026-01-01 00:00:00.123456789'",
            datetime(2026, 1, 1, 0, 0, 0, 123456),
            pl.Datetime("us"),
        ),
        ("'\\x00k'::BLOB", b"\0k", pl.Binary),
    ],
)
def test_any_type_of_own_sql_arrives(expression: str, value: object, dtype: pl.DataType) -> None:
    frame = QueryRunner({}, FUNCTIONS).run(f"SELECT {expression}")
    assert frame.item() == value
    assert frame.dtypes == [dtype]


def test_a_number_wider_than_64_bits_keeps_its_digits() -> None:
    frame = QueryRunner({}, FUNCTIONS).run("SELECT 12345678901234567890123::HUGEINT AS wide")
    assert int(frame.item()) == 12345678901234567890123


def test_columns_of_one_name_are_numbered() -> None:
    frame = QueryRunner({}, FUNCTIONS).run('SELECT 1 AS a, 2 AS a_1, 3 AS a, 4 AS "q""x"')
    assert frame.rows(named=True) == [{"a": 1, "a_1": 2, "a_2": 3, 'q"x': 4}]


@pytest.mark.parametrize("tail", [";", " ;\n", "; -- that is it", "\n-- one\n; -- two; yes\n", ""])
def test_a_comment_behind_the_statement_is_allowed(tail: str) -> None:
    sql = "SELECT '--;' AS text, INTERVAL 1 DAY AS span" + tail
    assert QueryRunner({}, FUNCTIONS).run(sql).rows() == [("--;", "1 day")]


@pytest.mark.parametrize("sql", ["CREATE TABLE t (i INT)", "-- nothing", "SET threads = 1"])
def test_a_statement_without_rows_gives_none(sql: str) -> None:
    assert QueryRunner({}, FUNCTIONS).run(sql).height == 0


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nodes FROM pods_rows", 'Candidate bindings: "node'),
        ("SELECT * FROM podz", "Did you mean"),
        ("SELECT 'x'::INT", "Could not convert string 'x'"),
        ("SELECT error('boom')", "boom"),
        ("SELECT max(at) FROM bindings", 'write the column at as "at" or t.at'),
    ],
)
def test_what_duckdb_refuses_is_told_in_one_line(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        QueryRunner({}, FUNCTIONS).run(sql)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("query: ")
