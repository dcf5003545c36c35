"""A page to one HTML text: templates from ``reports/``, everything escaped, nothing fetched.

All text is escaped by jinja2 and stripped of what could fool a reader: control characters,
bidirectional overrides and lone surrogates are printed as their code, not obeyed.
"""

from __future__ import annotations

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from markupsafe import Markup

from tracekit.assets import asset_folder
from tracekit.errors import ReportError
from tracekit.report.anchors import visible
from tracekit.report.page import Page

__all__ = ["render"]


def _finalize(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def render(page: Page) -> str:
    """Return the page as one self-contained HTML text.

    Raises:
        ReportError: If a template is missing or asks for what the page does not have.
    """
    folder = asset_folder("reports")
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    try:
        return environment.get_template(page.template).render(page=page)
    except TemplateError as error:
        raise ReportError(
            f"template cannot be rendered: {error}",
            where=str(folder / page.template),
            todo="install tracekit again; this is a bug if it stays",
        ) from error
