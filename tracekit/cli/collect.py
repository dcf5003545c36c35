"""``tracekit collect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.options import (
    Format,
    chosen,
    output_option,
    show_lines,
    store_option,
    warn,
    write_rows,
)
from tracekit.cli.screen import counted, grid, plain_text, screen_width
from tracekit.model.options import CollectOptions, CollectSummary, Redaction

if TYPE_CHECKING:
    from tracekit.pipeline.trace import Trace

__all__ = ["collect"]

_DATA_LOST = 3
_COLUMNS = ("source", "format", "records", "stored", "duplicates", "diagnostics", "gaps")
_NUMBERS = frozenset(range(2, len(_COLUMNS)))


@click.command(
    epilog="""\b
Examples:
  tracekit collect etcd-watch.json kube-scheduler.log
  tracekit collect recording/ --cluster prod
  etcdctl watch --prefix /registry -w json --rev 1 | tracekit collect -
  tracekit collect scheduler.log.gz --log-year 2026 --log-timezone +01:00
"""
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@store_option
@output_option
@click.option(
    "--cluster",
    default="default",
    show_default=True,
    metavar="NAME",
    help="Name to store the rows under.",
)
@click.option(
    "--format",
    "format_name",
    default=None,
    metavar="NAME",
    help="Force a format; by default the content tells it.",
)
@click.option("--component", default=None, metavar="NAME", help="Component that wrote the logs.")
@click.option("--node", default=None, metavar="NAME", help="Node the logs come from.")
@click.option(
    "--log-year",
    type=click.IntRange(2014, 2200),
    default=None,
    metavar="YEAR",
    help="Year of a log's first record; klog writes none.",
)
@click.option(
    "--log-timezone",
    default=None,
    metavar="ZONE",
    help="Zone of a log's clock: IANA name or ±HH:MM.",
)
@click.option(
    "--redact",
    type=click.Choice(["default", "all", "none"]),
    default="default",
    show_default=True,
    help="Which payloads become keyed hashes.",
)
def collect(sources: tuple[str, ...], store: Path, output: Format | None, **how: object) -> int:
    """Read files, folders or standard input into the store.

    The format is recognised by content; gz, zst, xz and bz2 are opened. Reading a source
    twice adds nothing. Ends with a summary of each source.
    """
    import tracekit

    options = _options(how)
    trace = tracekit.open(store)
    summaries = _run(trace, sources, options)
    _show(summaries, output)
    return _DATA_LOST if any(s.data_lost for s in summaries) else 0


def _options(how: dict[str, object]) -> CollectOptions:
    return CollectOptions(
        cluster=str(how["cluster"]),
        format=how["format_name"],  # type: ignore[arg-type]
        component=how["component"],  # type: ignore[arg-type]
        node=how["node"],  # type: ignore[arg-type]
        log_year=how["log_year"],  # type: ignore[arg-type]
        log_timezone=how["log_timezone"],  # type: ignore[arg-type]
        redact=_redaction(str(how["redact"])),
    )


def _redaction(text: str) -> Redaction:
    return "all" if text == "all" else "none" if text == "none" else "default"


def _run(trace: Trace, sources: tuple[str, ...], options: CollectOptions) -> list[CollectSummary]:
    if not sys.stderr.isatty():
        return list(trace.collect(*sources, options=options))

    def progress(path: str, records: int) -> None:
        name = plain_text(Path(path).name)
        click.echo(f"\r\x1b[2K{name}: {counted(records, 'record')}", nl=False, err=True)

    try:
        return list(trace.collect(*sources, options=options, progress=progress))
    finally:
        click.echo("\r\x1b[2K", nl=False, err=True)


def _show(summaries: list[CollectSummary], output: Format | None) -> None:
    import polars as pl

    columns = {name: [getattr(s, name) for s in summaries] for name in _COLUMNS}
    if chosen(output) == "table":
        rows = [[str(columns[name][i]) for name in _COLUMNS] for i in range(len(summaries))]
        for lines in grid(_COLUMNS, rows, screen_width(), _NUMBERS):
            show_lines(lines)
    else:
        write_rows(pl.DataFrame(columns), output)
    for summary in summaries:
        if summary.data_lost:
            warn(
                f"{summary.source}: data was lost or damaged; "
                "see what with tracekit replay, then tracekit query diagnostics"
            )
