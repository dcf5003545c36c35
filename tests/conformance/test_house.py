"""The house: sizes, names, `__all__`, and what a module may import.

Parameters, complexity, docstrings and the order of ``__all__`` are ruff's; who may import whom is
import-linter's. Here is what neither can say.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.recordings import ROOT
from tracekit.model.diagnostics import CODES

MAX_MODULE_LINES: Final = 500
MAX_FUNCTION_LINES: Final = 60
ATTIC_NAMES: Final = {"common", "helpers", "manager", "misc", "util", "utils"}

PACKAGE = sorted((ROOT / "tracekit").rglob("*.py"))
EVERYTHING = sorted(
    [*PACKAGE, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
)


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _module(path: Path) -> str:
    return _id(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _imported(path: Path) -> set[str]:
    """Return the top-level packages that a module imports when it runs."""
    tree = _tree(path)
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", EVERYTHING, ids=_id)
def test_module_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_MODULE_LINES


@pytest.mark.parametrize("path", EVERYTHING, ids=_id)
def test_functions_are_short(path: Path) -> None:
    sizes = {f.name: (f.end_lineno or 0) - f.lineno + 1 for f in _functions(path)}
    assert {name: n for name, n in sizes.items() if n > MAX_FUNCTION_LINES} == {}


@pytest.mark.parametrize("path", PACKAGE, ids=_id)
def test_module_is_no_attic(path: Path) -> None:
    assert not ATTIC_NAMES & set(_module(path).split("."))


@pytest.mark.parametrize("path", PACKAGE, ids=_id)
def test_module_says_what_it_promises(path: Path) -> None:
    assert ast.get_docstring(_tree(path))


@pytest.mark.parametrize(
    "path", [p for p in PACKAGE if len(_tree(p).body) > 1 and p.name != "__main__.py"], ids=_id
)
def test_module_lists_what_it_offers(path: Path) -> None:
    module = importlib.import_module(_module(path))
    assert hasattr(module, "__all__"), "a module with code has __all__"
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_package_offers_nothing_unlisted() -> None:
    package = importlib.import_module("tracekit")
    assert list(getattr(package, "__all__", [])) == sorted(getattr(package, "__all__", []))


def test_every_diagnostic_code_is_in_use() -> None:
    text = "".join(p.read_text() for p in PACKAGE if p.name != "diagnostics.py")
    assert [code for code in CODES if f'"{code}"' not in text] == []


# Packages whose distribution has another name.
DISTRIBUTIONS = {"google": "protobuf", "grpc": "grpcio", "yaml": "pyyaml"}


@pytest.mark.parametrize("path", PACKAGE, ids=_id)
def test_third_parties_are_declared(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[^a-z0-9]", line.lower())[0] for line in project["dependencies"]}
    imported = {DISTRIBUTIONS.get(name, name) for name in _imported(path)}
    assert imported - sys.stdlib_module_names <= {*declared, "tracekit"}


@pytest.mark.parametrize("path", sorted((ROOT / "tracekit" / "model").glob("*.py")), ids=_id)
def test_model_needs_the_standard_library_only(path: Path) -> None:
    assert _imported(path) - sys.stdlib_module_names <= {"tracekit"}
