"""``tracekit collect``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.live import record_etcd
from tracekit.cli.options import (
    Format,
    chosen,
    output_option,
    show_lines,
    store_option,
    warn,
    write_rows,
)
from tracekit.cli.screen import counted, plain_text
from tracekit.cli.summary import summary_lines
from tracekit.errors import TracekitError, UsageError
from tracekit.model.options import CollectOptions, CollectSummary, Redaction

if TYPE_CHECKING:
    from tracekit.pipeline.trace import Trace

__all__ = ["collect"]

_DATA_LOST = 3
_INTERRUPTED = 130
_FILE = click.Path(path_type=Path, dir_okay=False)
_COLUMNS = ("source", "format", "records", "stored", "duplicates", "diagnostics", "gaps")


@click.command(
    epilog="""\b
Examples:
  tracekit collect etcd-watch.json kube-scheduler.log
  tracekit collect recording/ --cluster prod
  etcdctl watch --prefix /registry -w json --rev 1 | tracekit collect -
  tracekit collect scheduler.log.gz --log-year 2026 --log-timezone +01:00
  tracekit collect --etcd https://10.0.0.1:2379 --cacert ca.crt \\
      --cert client.crt --key client.key
"""
)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option(
    "--etcd",
    default=None,
    metavar="URL[,URL]",
    help="Record a live etcd v3 until interrupted; resumes where the store ends.",
)
@click.option("--cacert", type=_FILE, default=None, help="CA of the etcd servers (PEM).")
@click.option("--cert", type=_FILE, default=None, help="Client certificate for etcd (PEM).")
@click.option("--key", type=_FILE, default=None, help="Key of the client certificate (PEM).")
@click.option("--user", default=None, metavar="NAME[:PASSWORD]", help="etcd user.")
@click.option(
    "--prefix", default="/registry", show_default=True, help="etcd keys to record, as a path."
)
@click.option(
    "--from-revision", type=int, default=None, metavar="N", help="First revision to record."
)
@click.option(
    "--duration", type=float, default=None, metavar="SECONDS", help="Stop recording after so long."
)
@click.option(
    "--flush",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Commit what a live source told at least so often.",
)
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

    With --etcd it lists and then watches a live etcd v3 instead; etcdctl's ETCDCTL_*
    variables fill in what is not given.
    """
    import tracekit

    options = _options(how)
    trace = tracekit.open(store)
    if _is_live(sources, how["etcd"]):
        summary, interrupted = record_etcd(trace, options, how)
        _show([summary], output)
        return _INTERRUPTED if interrupted else _DATA_LOST if summary.data_lost else 0
    return _read(trace, sources, options, output)


def _is_live(sources: tuple[str, ...], etcd: object) -> bool:
    if etcd and sources:
        raise UsageError("files and --etcd do not go together", todo="collect one, then the other")
    if not sources and not etcd and not os.environ.get("ETCDCTL_ENDPOINTS"):
        raise UsageError("nothing to collect", todo="name files or folders, - or --etcd URL")
    return not sources


def _options(how: dict[str, object]) -> CollectOptions:
    return CollectOptions(
        cluster=str(how["cluster"]),
        format=how["format_name"],  # type: ignore[arg-type]
        component=how["component"],  # type: ignore[arg-type]
        node=how["node"],  # type: ignore[arg-type]
        log_year=how["log_year"],  # type: ignore[arg-type]
        log_timezone=how["log_timezone"],  # type: ignore[arg-type]
        redact=_redaction(str(how["redact"])),
        flush_seconds=how["flush"],  # type: ignore[arg-type]
    )


def _redaction(text: str) -> Redaction:
    return "all" if text == "all" else "none" if text == "none" else "default"


def _read(
    trace: Trace, sources: tuple[str, ...], options: CollectOptions, output: Format | None
) -> int:
    """Read files; where one is refused, tell what the others before it gave."""
    summaries: list[CollectSummary] = []
    try:
        _run(trace, sources, options, summaries)
    except TracekitError:
        if summaries:
            _show(summaries, output)
        raise
    _show(summaries, output)
    return _DATA_LOST if any(s.data_lost for s in summaries) else 0


def _run(
    trace: Trace, sources: tuple[str, ...], options: CollectOptions, done: list[CollectSummary]
) -> None:
    """Collect into ``done``, which then tells what was stored also where a source is refused."""
    if not sys.stderr.isatty():
        done.extend(trace.collect(*sources, options=options))
        return

    def progress(path: str, records: int) -> None:
        name = plain_text(Path(path).name)
        click.echo(f"\r\x1b[2K{name}: {counted(records, 'record')}", nl=False, err=True)

    try:
        done.extend(trace.collect(*sources, options=options, progress=progress))
    finally:
        click.echo("\r\x1b[2K", nl=False, err=True)


def _show(summaries: list[CollectSummary], output: Format | None) -> None:
    import polars as pl

    if chosen(output) == "table":
        show_lines(summary_lines(summaries))
    else:
        columns = {name: [getattr(s, name) for s in summaries] for name in _COLUMNS}
        write_rows(pl.DataFrame(columns), output)
    lost = [summary.source for summary in summaries if summary.data_lost]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        warn(
            f"{lost[0]}{more}: data was lost or damaged; "
            "after tracekit replay, tracekit query diagnostics has it all"
        )
