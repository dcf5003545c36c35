"""Fixtures of the acceptance tests: the four recordings and the stores made of them."""

from __future__ import annotations

import os

import pytest

from tests.acceptance.stores import Shelf, Stores
from tests.recordings import Recordings


@pytest.fixture(scope="session")
def stores(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Give ``stores("mid", log=True)``: a replayed store; skip where the recording is absent."""
    base = tmp_path_factory.getbasetemp()
    # A worker's base folder is one level below the run's.
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return Shelf(run / "acceptance-stores", recordings).store


@pytest.fixture(params=["seed", "mid", "wide", "json"])
def name(request: pytest.FixtureRequest) -> str:
    """Give the name of each recording."""
    return str(request.param)


@pytest.fixture(params=["seed", "mid", "wide"])
def name_with_text_log(request: pytest.FixtureRequest) -> str:
    """Give the name of each recording whose scheduler log is klog text."""
    return str(request.param)
