"""Write the generated parts of the documents, or say where they have drifted (``--check``).

A generated part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. ``PLACES`` says
which document must have which part: a missing marker is an error, so none is lost in an edit.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent

PLACES = {
    "README.md": ("commands", "diagnostics"),
    "CONTRIBUTING.md": ("targets",),
    "queries/README.md": ("queries", "tables"),
}

_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_HELP_WIDTH = 90


class MarkerError(Exception):
    """A document lacks a marker, or has one that nothing fills."""


def main() -> int:
    """Run the script; 1 when ``--check`` finds drift or a marker is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, report drift")
    check = parser.parse_args().check
    failed = False
    for name, parts in PLACES.items():
        path = ROOT / name
        try:
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            after = fill(before, name, parts)
        except MarkerError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        if before != after and check:
            print(f"{name} has drifted from the code: run make docs", file=sys.stderr)
            failed = True
        elif before != after:
            path.write_text(after, encoding="utf-8")
            print(f"wrote {name}")
    return int(failed)


def fill(text: str, name: str, parts: tuple[str, ...]) -> str:
    """Return a document with each of its generated parts made anew.

    Raises:
        MarkerError: If a marker is missing, stands twice, has no end or is unknown.
    """
    found = [match[2] for match in _PART.finditer(text)]
    if sorted(found) != sorted(parts) or text.count("<!-- generated:") != len(found):
        wanted = ", ".join(f"<!-- generated: {part} -->" for part in parts)
        raise MarkerError(
            f"{name} must have each of {wanted} once, each with its <!-- end -->; it has "
            f"{', '.join(found) or 'none'}"
        )
    return _PART.sub(lambda match: f"{match[1]}{PARTS[match[2]]()}\n{match[3]}", text)


def commands() -> str:
    """Return every command with its help, as click prints it."""
    # The command line is imported when asked for: the other parts do without it.
    from tracekit.cli.main import tracekit as group

    lines = list(_table(("command", "does"), _command_rows(group, "tracekit")))
    for path, command in _walk(group, "tracekit"):
        context = click.Context(
            command, info_name=path, terminal_width=_HELP_WIDTH, max_content_width=_HELP_WIDTH
        )
        text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        lines += ["", f"<details><summary><code>{path} --help</code></summary>", ""]
        lines += ["```", text.strip(), "```", "", "</details>"]
    return "\n".join(lines)


def diagnostics() -> str:
    """Return the closed list of diagnostic codes."""
    from tracekit.model.diagnostics import CODES

    rows = [(f"`{c.code}`", str(c.severity), c.meaning, c.remedy) for c in CODES.values()]
    return "\n".join(_table(("code", "severity", "meaning", "what helps"), rows))


def queries() -> str:
    """Return the shipped queries, each with its grain and columns; private ones are left out."""
    from tracekit.query.header import read_header

    paths = sorted((ROOT / "queries").rglob("*.sql"), key=lambda path: path.stem)
    lines: list[str] = []
    for path in paths:
        if path.stem.startswith("_"):
            continue
        header = read_header(path.read_text(encoding="utf-8"), where=path.name)
        lines += [f"### {path.stem}", "", f"{header.summary} {_sentence(header.grain)}", ""]
        rows = [(f"`{c.name}`", c.unit, c.meaning) for c in header.columns]
        lines += [*_table(("column", "unit", "meaning"), rows), ""]
    return "\n".join(lines).rstrip()


def tables() -> str:
    """Return the tables of the store, which a query reads as ``<table>_rows``."""
    from tracekit.model.tables import TABLES

    lines: list[str] = []
    for table in TABLES.values():
        lines += [f"### {table.name}_rows", "", f"Ordered by {', '.join(table.order_by)}.", ""]
        rows = [(f"`{c.name}`", c.type, c.meaning) for c in table.columns]
        lines += [*_table(("column", "type", "meaning"), rows), ""]
    return "\n".join(lines).rstrip()


def targets() -> str:
    """Return the targets of the Makefile that say what they do."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    rows = [
        (f"`make {name}`", words)
        for name, words in re.findall(r"^([a-z-]+):.*## (.*)$", text, re.MULTILINE)
    ]
    return "\n".join(_table(("target", "does"), rows))


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "diagnostics": diagnostics,
    "queries": queries,
    "tables": tables,
    "targets": targets,
}


def _walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            if not inner.hidden:
                yield from _walk(inner, f"{path} {name}")


def _command_rows(group: click.Group, path: str) -> list[tuple[str, str]]:
    inner = [entry for entry in _walk(group, path) if entry[1] is not group]
    return [(f"`{name}`", command.get_short_help_str(limit=200)) for name, command in inner]


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


if __name__ == "__main__":
    sys.exit(main())
