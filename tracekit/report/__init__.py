"""Results of queries to one HTML file: spec, view model, render.

``read_spec`` says which queries to run, ``build_view`` shapes their rows into a page of words
and geometry, ``render`` prints it. Templates only loop and print; no number is computed there.
"""

from __future__ import annotations

from tracekit.report.render import render
from tracekit.report.spec import ReportSpec, SectionSpec, read_spec
from tracekit.report.view_model import build_view, page_data

__all__ = ["ReportSpec", "SectionSpec", "build_view", "page_data", "read_spec", "render"]
