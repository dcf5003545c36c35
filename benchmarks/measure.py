"""Runs jobs and their peers, in turn so that a busy moment meets both, and keeps the best."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.recordings import ROOT, Recording, find_recording

__all__ = [
    "Absent",
    "Figure",
    "Run",
    "best_of",
    "recording",
    "run_job",
    "run_tool",
    "warm",
    "workspace",
]

ROUNDS: Final = 5


class Absent(Exception):  # noqa: N818 - it is no failure
    """A recording or a peer that this machine does not have; its text says how to get it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process: what it took, and what it counted so that both sides can be compared.

    Attributes:
        seconds: Wall time, imports excluded.
        peak_bytes: Peak resident memory of the whole process.
        count: Records or objects it dealt with.
    """

    seconds: float
    peak_bytes: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table: ours beside the peer's, and what was promised of them."""

    what: str
    ours: Run
    peer: Run
    peer_name: str
    most_times: float | None = None
    most_bytes: int | None = None

    @property
    def ratio(self) -> float:
        """How many times the peer's time ours took."""
        return self.ours.seconds / self.peer.seconds

    @property
    def is_kept(self) -> bool:
        """Tell whether time and memory are as promised."""
        slow = self.most_times is not None and self.ratio > self.most_times
        big = self.most_bytes is not None and self.ours.peak_bytes > self.most_bytes
        return not slow and not big


def recording(name: str) -> Recording:
    """Return a recording; what is compressed is opened into the temporary folder.

    Raises:
        Absent: If it is not on this machine.
    """
    source = find_recording(name)
    if source is None:
        raise Absent(
            f"recording {name!r} is not here: put it in ../shared/traces/{name} "
            "or name its shelf with TRACEKIT_RECORDINGS"
        )
    return Recording(source, Path(tempfile.gettempdir()) / "tracekit-recordings" / name)


@contextmanager
def workspace() -> Iterator[Path]:
    """Give a folder for stores, on the disk that holds temporary files."""
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as folder:
        yield Path(folder)


def best_of(ours: Callable[[], Run], peer: Callable[[], Run]) -> tuple[Run, Run]:
    """Run both in turn and return the fastest of each, with the largest memory of any run."""
    pairs = [(ours(), peer()) for _ in range(ROUNDS)]
    mine, theirs = zip(*pairs, strict=True)
    return _best(mine), _best(theirs)


def _best(runs: tuple[Run, ...]) -> Run:
    counts = {run.count for run in runs}
    if len(counts) != 1:
        raise RuntimeError(f"the same job counted {sorted(counts)}")
    fastest = min(run.seconds for run in runs)
    return Run(fastest, max(run.peak_bytes for run in runs), counts.pop())


def run_job(job: str, *arguments: str | Path) -> Run:
    """Run a job of ``benchmarks.jobs`` in a new process."""
    command = [sys.executable, "-m", "benchmarks.jobs", job, *map(str, arguments)]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE)
    outcome = json.loads(done.stdout)
    return Run(outcome["seconds"], outcome["peak_bytes"], outcome["count"])


def run_tool(command: list[str], *, home: Path) -> Run:
    """Run another program, which prints a count last, with a home folder of its own."""
    environment = os.environ | {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return Run(seconds, usage.ru_maxrss * 1024, int(output.split()[-1]))


def warm(path: Path) -> None:
    """Read a file once, so that no run pays for the disk."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 24):
            pass
