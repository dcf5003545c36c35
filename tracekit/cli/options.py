"""Options that several commands share, and writing rows in the format asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, cast

import click

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMATS", "cluster_option", "output_option", "store_option", "warn", "write_rows"]

Format = Literal["table", "json", "jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = ("table", "json", "jsonl", "csv", "parquet")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def store_option(command: _Command) -> _Command:
    """Add ``--store``."""
    return click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="TRACEKIT_STORE",
        default=Path("tracekit-store"),
        show_default="./tracekit-store",
        help="Folder of the store, also from $TRACEKIT_STORE.",
    )(command)


def cluster_option(command: _Command) -> _Command:
    """Add ``--cluster`` to a command that reads."""
    return click.option(
        "--cluster", default=None, help="Cluster to look at; the only one by default."
    )(command)


def output_option(command: _Command) -> _Command:
    """Add ``-o/--output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        default=None,
        show_default="table on a terminal, else json",
        help="Format of the rows.",
    )(command)


def chosen(output: Format | None) -> Format:
    """Return the format asked for, or the one that fits where the rows go."""
    return output or ("table" if sys.stdout.isatty() else "json")


def write_rows(
    frame: pl.DataFrame, output: Format | None, json_columns: frozenset[str] = frozenset()
) -> None:
    """Write rows to standard output; the count of a table goes to standard error."""
    from tracekit.cli.output import write_frame

    form = chosen(output)
    out = cast(BinaryIO, sys.stdout.buffer)
    write_frame(frame, form, out, json_columns=json_columns, width=None)
    out.flush()
    if form == "table":
        click.echo(f"({frame.height} rows)", err=True)


def warn(text: str) -> None:
    """Say something beside the data."""
    click.echo(f"tracekit: {text}", err=True)
