"""The schema of ``model.tables`` in polars' and Delta's words."""

from __future__ import annotations

import deltalake
import polars as pl
from deltalake.schema import Field, PrimitiveType

from tracekit.model.tables import ColumnType, Table

__all__ = ["conform", "delta_schema", "polars_schema"]

_POLARS: dict[ColumnType, pl.DataType] = {
    "string": pl.String(),
    "int64": pl.Int64(),
    "float64": pl.Float64(),
    "bool": pl.Boolean(),
    "binary": pl.Binary(),
    "timestamp": pl.Datetime("us", "UTC"),
}
_DELTA: dict[ColumnType, str] = {
    "string": "string",
    "int64": "long",
    "float64": "double",
    "bool": "boolean",
    "binary": "binary",
    "timestamp": "timestamp",
}


def polars_schema(table: Table) -> pl.Schema:
    """Return the columns of a table with their polars types, in order."""
    return pl.Schema({c.name: _POLARS[c.type] for c in table.columns})


def delta_schema(table: Table) -> deltalake.Schema:
    """Return the columns of a table as a Delta schema, all nullable."""
    fields = [Field(c.name, PrimitiveType(_DELTA[c.type]), nullable=True) for c in table.columns]
    return deltalake.Schema(fields)


def conform(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Put a frame's columns in the table's order and types.

    A missing column becomes null.

    Raises:
        ValueError: If the frame has a column that the table has not; that is a bug.
    """
    schema = polars_schema(table)
    unknown = set(frame.columns) - set(schema)
    if unknown:
        raise ValueError(f"{table.name} has no column {', '.join(sorted(unknown))}")
    columns = [
        (pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name))
        for name, dtype in schema.items()
    ]
    return frame.select(columns)
