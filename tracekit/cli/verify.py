"""``tracekit verify``."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import Format, chosen, output_option, show_lines, store_option, write_rows
from tracekit.cli.screen import counted, paragraph, screen_width

__all__ = ["verify"]


@click.command(
    short_help="Check the store and name what is wrong.",
    epilog="\b\nExamples:\n  tracekit verify\n  tracekit verify -o json\n",
)
@store_option
@output_option
def verify(store: Path, output: Format | None) -> int:
    """Check the store: files, checksums, schema, order, holes; name what is wrong.

    Exit code 1 when the store has an error; a hole in the record is none.
    """
    import tracekit

    findings = tracekit.open(store).verify()
    if chosen(output) == "table":
        for row in findings.iter_rows(named=True):
            text = f"{row['severity']} {row['where']}: {row['what']}; {row['todo']}"
            show_lines(paragraph(text, screen_width(), rest="  "))
        errors = findings.filter(findings["severity"] == "ERROR").height
        words = counted(errors, "error") if errors else "the store is sound"
        click.echo(f"({words})", err=True)
    else:
        write_rows(findings, output)
    return 0 if not findings.filter(findings["severity"] == "ERROR").height else 1
