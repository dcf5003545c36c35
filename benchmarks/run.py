"""Prints one table of all benchmarks; ``python -m benchmarks.run [NAME...]`` runs some."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

from benchmarks import bench_collect_etcd, bench_collect_klog, bench_replay
from benchmarks.measure import ROUNDS, Absent, Figure

__all__ = ["BENCHMARKS", "main"]

BENCHMARKS: Final[dict[str, Callable[[], list[Figure]]]] = {
    "collect_etcd": bench_collect_etcd.measure,
    "collect_klog": bench_collect_klog.measure,
    "replay": bench_replay.measure,
}
_HEAD: Final = ("what", "ours", "peer", "ratio", "promised", "memory", "beside")
_LEFT: Final = (0, len(_HEAD) - 1)


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; return how many promises are not kept."""
    if unknown := sorted(set(names) - set(BENCHMARKS)):
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    figures: list[Figure] = []
    for name in names or BENCHMARKS:
        try:
            figures += BENCHMARKS[name]()
        except Absent as absence:
            print(f"{name} is left out: {absence}")
    _print([_HEAD, *map(_cells, figures)])
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    print(f"best of {ROUNDS} each, in turn; {os.cpu_count()} cores, load average {load}")
    return sum(not figure.is_kept for figure in figures)


def _cells(figure: Figure) -> tuple[str, ...]:
    times, most = figure.most_times, figure.most_bytes
    promised = [f"≤ {times:g}×"] if times else []
    promised += [f"≤ {most / 1e6:.0f} MB"] if most else []
    return (
        figure.what,
        f"{figure.ours.seconds:.2f} s",
        f"{figure.peer.seconds:.2f} s",
        f"{figure.ratio:.2f}×",
        (", ".join(promised) or "–") + ("" if figure.is_kept else " MISSED"),
        f"{figure.ours.peak_bytes / 1e6:.0f} MB",
        figure.peer_name,
    )


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if i in _LEFT else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
