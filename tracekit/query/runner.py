"""DuckDB over the store's parquet files: each table a view, each shipped query a view."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import duckdb
import polars as pl

from tracekit.errors import QueryError
from tracekit.model.diagnostics import CODES
from tracekit.model.tables import TABLES, ColumnType, Table
from tracekit.query.catalog import Catalog
from tracekit.query.relations import frame_of

__all__ = ["FIXED_VIEWS", "QueryRunner"]

_DUCKDB: dict[ColumnType, str] = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
}
_NAME = re.compile(r"\w+")
_BARE_AT = re.compile(r"(?<![.\w\"])at(?![\w\"])", re.IGNORECASE)


def _codes_sql() -> str:
    """Return the closed list of diagnostic codes as SQL."""
    rows = ", ".join(
        "("
        + ", ".join(
            "'" + t.replace("'", "''") + "'" for t in (c.code, c.severity, c.meaning, c.remedy)
        )
        + ")"
        for c in CODES.values()
    )
    return f"SELECT * FROM (VALUES {rows}) AS c (code, severity, meaning, remedy)"


# Views that stand beside the tables' and hold what the program knows by itself.
FIXED_VIEWS: dict[str, str] = {"diagnostic_codes_rows": _codes_sql()}


class QueryRunner:
    """Runs queries over a set of parquet files.

    Args:
        files: Paths of the parquet files of each table of ``model.tables``.
        functions: Text functions that the queries call, by name.
        catalog: The shipped queries.
    """

    def __init__(
        self,
        files: Mapping[str, Sequence[str]],
        functions: Mapping[str, Callable[[str], str]] | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        self._files, self._functions = files, functions or {}
        self.catalog = catalog or Catalog()
        self._built: set[str] = set()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for name, function in self._functions.items():
            connection.create_function(name, function, ["VARCHAR"], "VARCHAR")
        for table in TABLES.values():
            connection.execute(f"CREATE VIEW {table.name}_rows AS {self._table_sql(table)}")
        for view, sql in FIXED_VIEWS.items():
            connection.execute(f"CREATE VIEW {view} AS {sql}")
        return connection

    def _table_sql(self, table: Table) -> str:
        files = self._files.get(table.name, ())
        if files:
            paths = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
            names = ", ".join(f'"{c.name}"' for c in table.columns)
            return f"SELECT {names} FROM read_parquet([{paths}], union_by_name = true)"
        columns = ", ".join(f'NULL::{_DUCKDB[c.type]} AS "{c.name}"' for c in table.columns)
        return f"SELECT {columns} WHERE false"

    def run(self, text: str) -> pl.DataFrame:
        """Run a shipped query by name, or SQL.

        Returns:
            The rows; times as Datetime in µs UTC.

        Raises:
            NotFoundError: If the text is one word and no shipped query has that name.
            QueryError: If DuckDB refuses the SQL; names the query or the text.
        """
        if _NAME.fullmatch(text.strip()):
            query = self.catalog.get(text.strip())
            self._build([query.name])
            return self._fetch(query.sql, query.path.name)
        words = set(_NAME.findall(text.lower()))
        self._build([name for name in self.catalog.queries if name in words])
        return self._fetch(text, "query")

    def _build(self, names: list[str]) -> None:
        for query in self.catalog.build_order(names):
            if query.name not in self._built:
                self._execute(f"CREATE VIEW {query.name} AS {query.sql}", query.path.name)
                self._built.add(query.name)

    def _execute(self, sql: str, where: str) -> None:
        try:
            self._connection.execute(sql)
        except duckdb.Error as error:
            raise _failed(error, sql, where) from error

    def _fetch(self, sql: str, where: str) -> pl.DataFrame:
        try:
            return frame_of(self._connection, sql)
        except duckdb.Error as error:
            raise _failed(error, sql, where) from error


def _failed(error: duckdb.Error, sql: str, where: str) -> QueryError:
    # DuckDB says what is wrong, then often what it could have been, then shows the place.
    told = itertools.takewhile(bool, str(error).strip().splitlines())
    todo = "see the queries and their columns with tracekit query --list"
    if isinstance(error, duckdb.ParserException) and _BARE_AT.search(sql):
        todo = 'write the column at as "at" or t.at: DuckDB has a keyword of that name'
    return QueryError(" ".join(line.strip() for line in told), where=where, todo=todo)
