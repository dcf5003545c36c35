"""The checkout itself: where files may stand, what they may not name, locks and changelog."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement

from tests.recordings import ROOT

ALLOWED_TOP_LEVEL: Final = {
    ".ci",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "benchmarks",
    "pyproject.toml",
    "queries",
    "reports",
    "sample_traces",
    "tests",
    "tracekit",
}
MAX_SAMPLE_BYTES: Final = 6_000_000
MAX_FILE_BYTES: Final = 2_000_000
# Recordings are other people's words and may name any path.
DATA_SUFFIXES: Final = {".bin", ".json", ".jsonl", ".log", ".tsv", ".txt", ".zst"}

# Written apart, so that this file does not name what it forbids.
_MACHINE_PATH = re.compile(r"(?<![\w.~$}])/" + r"(home|root|work|Users)/\w")
_REGISTRY = re.compile(
    r"\b(pypi|pythonhosted|npmjs|debian|golang|crates|docker)" + r"\.(org|com|io)\b"
    r"|index-" + r"url\s*[= ]\s*http",
    re.IGNORECASE,
)


def _files() -> list[Path]:
    # Untracked files count too: they are about to be committed.
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def _texts() -> Iterator[tuple[str, str]]:
    for path in _files():
        is_lock = path.name.startswith("requirements")
        if is_lock or path.suffix not in DATA_SUFFIXES:
            yield path.relative_to(ROOT).as_posix(), path.read_text(errors="replace")


def _lock(name: str) -> dict[str, tuple[str, int]]:
    """Return the pinned versions of a lock, each with its number of hashes."""
    pins: dict[str, tuple[str, int]] = {}
    for block in re.split(r"\n(?=\S)", (ROOT / ".ci" / name).read_text()):
        found = re.match(r"([\w.-]+)==(\S+)", block)
        assert found, f"not a pin: {block[:60]}"
        pins[f"{found[1]}=={found[2]}"] = (found[2], block.count("--hash=sha256:"))
    return pins


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_top_level_holds_only_what_is_agreed() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in _files()} <= ALLOWED_TOP_LEVEL


@pytest.mark.parametrize("pattern", [_MACHINE_PATH, _REGISTRY], ids=["machine path", "registry"])
def test_no_file_names_one_machine_or_registry(pattern: re.Pattern[str]) -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_samples_are_small() -> None:
    samples = [path for path in _files() if path.is_relative_to(ROOT / "sample_traces")]
    assert sum(path.stat().st_size for path in samples) <= MAX_SAMPLE_BYTES


def test_no_file_is_large() -> None:
    large = [path.name for path in _files() if path.stat().st_size > MAX_FILE_BYTES]
    assert large == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_lock_pins_by_hash(name: str) -> None:
    assert [pin for pin, (_, hashes) in _lock(name).items() if hashes == 0] == []


def test_development_lock_holds_the_runtime_lock() -> None:
    assert _lock("requirements.txt").keys() <= _lock("requirements-dev.txt").keys()


def test_lock_answers_the_project() -> None:
    project = _pyproject()["project"]
    wanted = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["test"]])
    pinned = {
        pin.partition("==")[0]: version
        for pin, (version, _) in _lock("requirements-dev.txt").items()
    }
    stale = [
        str(need) for need in wanted if not need.specifier.contains(pinned.get(need.name, "0"))
    ]
    assert stale == [], "run make lock"


def test_changelog_tells_what_is_unreleased() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert unreleased, "CHANGELOG.md has no '## [Unreleased]' section"
    assert re.search(r"^- \S", unreleased[1], re.MULTILINE), "the Unreleased section is empty"
