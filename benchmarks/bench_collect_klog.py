"""Collecting a scheduler log, beside lnav indexing the same file to count its records."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

from benchmarks.measure import (
    Absent,
    Figure,
    Run,
    best_of,
    recording,
    run_job,
    run_tool,
    warm,
    workspace,
)

__all__ = ["measure"]

_QUERY = ";SELECT count(*) FROM glog_log"


def measure() -> list[Figure]:
    """Collect ``mid``'s scheduler log into a new store each round.

    Our imports are not timed, so lnav's start, measured on a log of one line, is taken off
    its time. Raises ``RuntimeError`` if the two disagree on the number of records.
    """
    lnav = shutil.which("lnav")
    if lnav is None:
        raise Absent("lnav is not here: apt-get install lnav")
    source = recording("mid") / "kube-scheduler.log"
    warm(source)
    with workspace() as folder:
        numbers = count()
        start = min(_lnav(lnav, _one_line(source, folder), folder).seconds for _ in range(5))
        ours, peer = best_of(
            lambda: run_job("collect", folder / f"store-{next(numbers)}", source),
            lambda: _lnav(lnav, source, folder),
        )
    if ours.count != peer.count:
        raise RuntimeError(f"we found {ours.count} records, lnav {peer.count}")
    return [
        Figure(
            what=f"collect kube-scheduler.log, {source.stat().st_size / 1e6:.0f} MB",
            ours=ours,
            peer=Run(peer.seconds - start, peer.peak_bytes, peer.count),
            peer_name="lnav counting glog_log",
            most_times=1.3,
        )
    ]


def _lnav(lnav: str, source: Path, home: Path) -> Run:
    return run_tool([lnav, "-n", "-c", _QUERY, str(source)], home=home)


def _one_line(source: Path, folder: Path) -> Path:
    target = folder / "one.log"
    with source.open("rb") as file:
        target.write_bytes(file.readline())
    return target
