"""A wheel carries its queries, report templates and type marker, and finds them when installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recordings import ROOT

_PROBE = """
import pathlib, tracekit.assets
print(pathlib.Path(tracekit.assets.__file__).parent)
for name in ("queries", "reports"):
    print(tracekit.assets.asset_folder(name))
"""


def _run(*command: str, cwd: Path, path: Path | None = None) -> str:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder into which the wheel of this checkout is installed, without dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    wheels, site = folder / "wheels", folder / "site"
    pip = ("-m", "pip", "--quiet")
    _run(
        *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(ROOT), cwd=folder
    )
    (wheel,) = wheels.glob("tracekit-*.whl")
    _run(*pip, "install", "--no-deps", "--target", str(site), str(wheel), cwd=folder)
    return site


def _relative_files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_installed_package_finds_its_assets(site: Path, tmp_path: Path) -> None:
    package, queries, reports = _run("-c", _PROBE, cwd=tmp_path, path=site).splitlines()
    assert Path(package) == site / "tracekit"
    assert Path(queries) == site / "tracekit" / "_assets" / "queries"
    assert Path(reports) == site / "tracekit" / "_assets" / "reports"


@pytest.mark.parametrize("name", ["queries", "reports"])
def test_wheel_carries_every_asset(site: Path, name: str) -> None:
    shipped = _relative_files(site / "tracekit" / "_assets" / name)
    assert shipped
    assert shipped == _relative_files(ROOT / name)


def test_wheel_is_typed(site: Path) -> None:
    assert (site / "tracekit" / "py.typed").is_file()


def test_wheel_holds_no_tests(site: Path) -> None:
    assert not (site / "tests").exists()
