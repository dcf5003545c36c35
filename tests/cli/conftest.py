"""A store of the sample recording, and the command line in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

import tracekit
from tests.recordings import ROOT, Recordings
from tracekit.cli.main import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, object]]:
        """Return the rows of ``-o json``."""
        rows = orjson.loads(self.out)
        assert isinstance(rows, list)
        return rows


Tracekit = Callable[..., Ran]


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Tracekit:
    """Give ``run("query", "bindings")``: the real ``main`` on a screen of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("TRACEKIT_STORE", raising=False)
    monkeypatch.chdir(tmp_path)

    def tracekit_main(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["tracekit", *map(str, arguments)])
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsysbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, out.decode(), err.decode())

    return tracekit_main


@pytest.fixture(scope="session")
def seed(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a replayed store of the sample recording; tests only read it."""
    store = tmp_path_factory.mktemp("seed") / "store"
    recording = recordings("seed")
    trace = tracekit.open(store)
    list(trace.collect(recording / "etcd-watch.json", recording / "kube-scheduler.log"))
    trace.replay()
    return store


@pytest.fixture(scope="session")
def watch(recordings: Recordings) -> bytes:
    """Give the sample's etcd stream."""
    return (recordings("seed") / "etcd-watch.json").read_bytes()


def process(*arguments: str | Path, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    """Start the command line as a process of its own."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "tracekit", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
