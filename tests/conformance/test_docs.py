"""The drift gate bites: a lost, doubled, unended or unknown marker is an error, drift is undone."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.recordings import ROOT


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """Load the script, which stands outside any package."""
    spec = importlib.util.spec_from_file_location("docs", ROOT / ".ci" / "docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_part_is_made_anew(docs: ModuleType) -> None:
    text = "a\n<!-- generated: targets -->\nstale\n<!-- end -->\nz\n"
    filled = docs.fill(text, "X.md", ("targets",))
    assert "stale" not in filled
    assert "| `make demo` |" in filled
    assert filled.startswith("a\n<!-- generated: targets -->\n| target | does |\n")
    assert filled.endswith("|\n<!-- end -->\nz\n")
    assert docs.fill(filled, "X.md", ("targets",)) == filled


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- generated: targets -->\nno end",
        "<!-- generated: targets -->\n<!-- end -->\n" * 2,
        "<!-- generated: tables -->\n<!-- end -->\n",
        "<!-- generated: targets -->\n<!-- end -->\n<!-- generated: tables -->\n",
    ],
    ids=["absent", "unended", "twice", "another", "one more"],
)
def test_a_wrong_marker_is_an_error(docs: ModuleType, text: str) -> None:
    with pytest.raises(docs.MarkerError, match=r"X\.md must have each of <!-- generated: targets"):
        docs.fill(text, "X.md", ("targets",))


def test_every_part_has_a_place(docs: ModuleType) -> None:
    placed = [part for parts in docs.PLACES.values() for part in parts]
    assert sorted(placed) == sorted(docs.PARTS)


def test_every_diagnostic_is_told(docs: ModuleType) -> None:
    assert "| `WATCH_LINE_CUT` | DATA_LOSS |" in docs.diagnostics()


def test_a_pipe_does_not_break_a_row(docs: ModuleType) -> None:
    *_, row = docs._table(("a",), [("x|y",)])
    assert row == "| x\\|y |"
