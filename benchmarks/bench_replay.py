"""Replaying a recording, beside a loop that only decodes the same object states from JSON.

The peer does no replay; it is the floor for any reader that looks at every state once, had
etcd kept JSON. Ours starts from protobuf, folds, compares, reads the log and writes tables.
"""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

from benchmarks.measure import Figure, Run, best_of, recording, run_job, warm, workspace

__all__ = ["measure"]


def measure() -> list[Figure]:
    """Replay ``mid``, stream and scheduler log, from a freshly collected store each round."""
    mid = recording("mid")
    with workspace() as folder:
        collected, states = folder / "collected", folder / "states.jsonl"
        run_job("collect", collected, mid / "etcd-watch.json", mid / "kube-scheduler.log")
        run_job("write-json", collected, states)
        warm(states)
        numbers = count()
        ours, peer = best_of(
            lambda: _replay(collected, folder / f"store-{next(numbers)}"),
            lambda: run_job("load-json", states),
        )
    return [
        Figure(
            what="replay mid, stream and log",
            ours=ours,
            peer=peer,
            peer_name="orjson, same states as JSON",
        )
    ]


def _replay(collected: Path, store: Path) -> Run:
    shutil.copytree(collected, store)
    run = run_job("replay", store)
    shutil.rmtree(store)
    return run
