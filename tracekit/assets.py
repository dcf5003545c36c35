"""Where ``queries/`` and ``reports/`` are: inside an installed wheel, or beside the package."""

from __future__ import annotations

from pathlib import Path

__all__ = ["asset_folder"]

_PACKAGE = Path(__file__).resolve().parent


def asset_folder(name: str) -> Path:
    """Return the folder ``queries`` or ``reports``.

    A wheel carries both under ``tracekit/_assets``; an editable install and a checkout
    have them beside the package.
    """
    installed = _PACKAGE / "_assets" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
