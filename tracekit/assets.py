"""What is installed: the version, and where ``queries/`` and ``reports/`` are."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["asset_folder", "program_version"]

_PACKAGE = Path(__file__).resolve().parent


def asset_folder(name: str) -> Path:
    """Return the folder ``queries`` or ``reports``.

    A wheel carries both under ``tracekit/_assets``; an editable install and a checkout
    have them beside the package.
    """
    installed = _PACKAGE / "_assets" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def program_version() -> str:
    """Return the version of tracekit; of a checkout that was never installed, ``0``."""
    try:
        return version("tracekit")
    except PackageNotFoundError:
        return "0"
