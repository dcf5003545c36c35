"""``tracekit verify``."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import Format, output_option, store_option, write_rows

__all__ = ["verify"]


@click.command(epilog="\b\nExamples:\n  tracekit verify\n  tracekit verify -o json\n")
@store_option
@output_option
def verify(store: Path, output: Format | None) -> int:
    """Check the store: files, checksums, order, schema, holes; name what is wrong."""
    import tracekit

    findings = tracekit.open(store).verify()
    write_rows(findings, output)
    return 0 if not findings.filter(findings["severity"] == "ERROR").height else 1
