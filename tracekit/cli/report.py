"""``tracekit report``."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import cluster_option, store_option, warn_when_stale
from tracekit.errors import UsageError

__all__ = ["report"]

_DEFAULT = Path("tracekit-report.html")


@click.command(
    epilog="""\b
Examples:
  tracekit report --html
  tracekit report --html cluster.html --json cluster.json
"""
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    is_flag=False,
    flag_value=_DEFAULT,
    default=None,
    metavar="[PATH]",
    help="Write the HTML report; to ./tracekit-report.html without a path.",
)
@click.option(
    "--json",
    "data",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="PATH",
    help="Write the same content as data.",
)
@store_option
@cluster_option
def report(html: Path | None, data: Path | None, store: Path, cluster: str | None) -> None:
    """Write a report on balance, pending causes and zone redundancy.

    The page is one file that needs no network. The path of each file goes to standard
    output.
    """
    import tracekit

    _refuse_nothing(html, data)
    trace = tracekit.open(store, cluster=cluster)
    warn_when_stale(trace)
    if html is not None:
        trace.report(html)
        click.echo(str(html))
    if data is not None:
        trace.report_data(data)
        click.echo(str(data))


def _refuse_nothing(html: Path | None, data: Path | None) -> None:
    if html is None and data is None:
        raise UsageError("say where to", todo="use --html [PATH] or --json PATH")
