"""Run the command line as ``python -m tracekit``."""

from tracekit.cli.main import main

main()
