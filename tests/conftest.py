"""Fixtures every folder of tests may use: the recordings and a real browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import hypothesis
import pytest

from tests.recordings import Recording, Recordings, find_recording

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Two cores are shared by all workers, so a slow example is no finding; CI tries the same examples
# each time, a developer new ones.
hypothesis.settings.register_profile(
    "house", deadline=None, derandomize="CI" in os.environ, print_blob=True
)
hypothesis.settings.load_profile("house")

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    """Give ``recordings("mid") / "etcd-watch.json"``; skip where the recording is absent."""
    base = tmp_path_factory.getbasetemp().parent
    # A worker's base folder is one level deeper; all of them and later runs share one cache.
    shelf = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tracekit-recordings"

    def recording(name: str) -> Recording:
        source = find_recording(name)
        if source is None:
            pytest.skip(
                f"recording {name!r} is not here: put it in ../shared/traces/{name} "
                "or name its shelf with TRACEKIT_RECORDINGS"
            )
        return Recording(source, shelf / name)

    return recording


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give a headless Chromium, driven by playwright; its own build is not needed."""
    sync_api = pytest.importorskip("playwright.sync_api")
    found = (os.environ.get("TRACEKIT_CHROMIUM"), *map(shutil.which, _BROWSERS))
    executable = next((path for path in found if path), None)
    if executable is None:
        _lacking("no Chromium: install chromium or set TRACEKIT_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable)
        yield chromium
        chromium.close()


def _lacking(message: str) -> NoReturn:
    # CI installs what it needs (.ci/browser), so a skip there would hide a failure.
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
