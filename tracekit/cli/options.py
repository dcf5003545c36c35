"""Options that several commands share, and writing rows in the format asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, cast

import click

from tracekit.cli.screen import counted, plain_text

if TYPE_CHECKING:
    import polars as pl

    from tracekit.pipeline.trace import Trace

__all__ = [
    "FORMATS",
    "Format",
    "chosen",
    "cluster_option",
    "output_option",
    "show_lines",
    "store_option",
    "warn",
    "warn_when_stale",
    "write_rows",
]

Format = Literal["table", "json", "jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = ("table", "json", "jsonl", "csv", "parquet")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def store_option(command: _Command) -> _Command:
    """Add ``--store``."""
    return click.option(
        "--store",
        type=click.Path(path_type=Path),
        envvar="TRACEKIT_STORE",
        default=Path("tracekit-store"),
        metavar="DIR",
        help="Folder of the store; $TRACEKIT_STORE, else ./tracekit-store.",
    )(command)


def cluster_option(command: _Command) -> _Command:
    """Add ``--cluster`` to a command that reads."""
    return click.option(
        "--cluster", default=None, metavar="NAME", help="Cluster to look at, if there are several."
    )(command)


def output_option(command: _Command) -> _Command:
    """Add ``-o/--output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        default=None,
        metavar="FORMAT",
        help="table, json, jsonl, csv or parquet; a table on a terminal, else json.",
    )(command)


def chosen(output: Format | None) -> Format:
    """Return the format asked for, or the one that fits where the rows go."""
    return output or ("table" if sys.stdout.isatty() else "json")


def write_rows(
    frame: pl.DataFrame, output: Format | None, json_columns: frozenset[str] = frozenset()
) -> None:
    """Write rows to standard output; the count of a table goes to standard error.

    A table has no column for the cluster when all rows are of one: the count names it.
    """
    from tracekit.cli.output import write_frame

    form, of = chosen(output), ""
    if form == "table":
        frame, of = _without_cluster(frame)
    out = cast(BinaryIO, sys.stdout.buffer)
    write_frame(frame, form, out, json_columns=json_columns, width=None)
    out.flush()
    if form == "table":
        click.echo(f"({counted(frame.height, 'row')}{of})", err=True)


def _without_cluster(frame: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    if "cluster" not in frame.columns or frame.width == 1 or frame["cluster"].n_unique() != 1:
        return frame, ""
    return frame.drop("cluster"), plain_text(f" of cluster {frame['cluster'][0]}")


def show_lines(lines: Iterable[str]) -> None:
    """Write text to standard output."""
    for line in lines:
        click.echo(line)


def warn(text: str) -> None:
    """Say something beside the data, in one harmless line."""
    click.echo(f"tracekit: {plain_text(text)}", err=True)


def warn_when_stale(trace: Trace) -> None:
    """Say so when the answer does not know what was collected last."""
    if trace.is_replayed is False:
        warn("the store has new rows since the last replay; run tracekit replay to see them")
