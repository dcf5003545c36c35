"""The ``tracekit`` command and what its exit codes mean.

0 done · 1 failed · 2 usage · 3 done, but data was lost or damaged on the way · 4 a
``--fail-on`` rule fired · 130 interrupted, store consistent.
"""

from __future__ import annotations

import os
import sys

import click

from tracekit.cli.collect import collect
from tracekit.cli.lookup import diff, get, ls
from tracekit.cli.query import query
from tracekit.cli.replay import replay
from tracekit.cli.report import report
from tracekit.cli.screen import plain_text
from tracekit.cli.verify import verify
from tracekit.errors import TracekitError

__all__ = ["main", "tracekit"]

_INTERRUPTED = 130
_BROKEN_PIPE = 141


class _Commands(click.Group):
    """The commands; a reader that has gone away ends them without a word."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The interpreter would stumble over what is still in the buffer.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(_BROKEN_PIPE)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  tracekit collect etcd-watch.json kube-scheduler.log
  tracekit replay
  tracekit replay default/web-0
  tracekit query pending_by_cause
  tracekit report --html
""",
)
@click.version_option(package_name="tracekit")
def tracekit() -> None:
    """Say why pods were pending, landed, and moved, from what a cluster recorded."""


for _command in (collect, replay, report, query, ls, get, diff, verify):
    tracekit.add_command(_command)


def main() -> None:
    """Run the command line; ends the process with one of the exit codes above."""
    try:
        code = tracekit.main(standalone_mode=False)
    except TracekitError as error:
        # Names in it come from the record, or from other people's disks.
        click.echo(f"tracekit: {plain_text(str(error))}", err=True)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("tracekit: interrupted; what was committed stays", err=True)
        code = _INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)
