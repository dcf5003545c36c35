"""Collecting a watch recording, beside a loop that only reads its JSON and base64."""

from __future__ import annotations

from itertools import count

from benchmarks.measure import Figure, best_of, recording, run_job, warm, workspace

__all__ = ["measure"]


def measure() -> list[Figure]:
    """Collect ``mid``'s stream into a new store each round."""
    source = recording("mid") / "etcd-watch.json"
    warm(source)
    with workspace() as folder:
        numbers = count()
        ours, peer = best_of(
            lambda: run_job("collect", folder / f"store-{next(numbers)}", source),
            lambda: run_job("load-watch", source),
        )
    return [
        Figure(
            what=f"collect etcd-watch.json, {source.stat().st_size / 1e6:.0f} MB",
            ours=ours,
            peer=peer,
            peer_name="orjson + base64 loop",
            most_times=4.0,
            most_bytes=600 * 1000**2,
        )
    ]
