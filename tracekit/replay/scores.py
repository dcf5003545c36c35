"""Score lines of a ``-v=10`` log, each given to the attempt it belongs to.

A scheduler logs the scores of a pod before the verdict of the same cycle, so a score line
belongs to the next verdict line of the same pod, in whichever piece of the log that is.

Source: kube-scheduler ``schedule_one.go`` prioritizeNodes ("Plugin scored node for pod",
"Calculated node's final score for pod").
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tracekit.replay.attempts import Attempt

__all__ = ["SCORE_WORDS", "score_rows"]

SCORE_WORDS = ("Plugin scored node for pod", "Calculated node's final score for pod")
TOTAL = "Total"
_MOST = 10**12


def score_rows(
    rows: Iterable[Mapping[str, Any]],
    fields: Callable[[str], Mapping[str, Any]],
    at_us: Callable[[str, int | None], int | None],
    attempts: Iterable[Attempt],
    cluster: str,
) -> list[dict[str, Any]]:
    """Turn score lines into rows of ``node_scores`` without cluster.

    Args:
        rows: Rows of ``log_lines`` with one of ``SCORE_WORDS`` as message.
        fields: Parses the key=value pairs of a structured record.
        at_us: Gives the time of a stamp of a source, µs UTC; None without a clock.
        attempts: Attempts that a log told.
        cluster: Name that the attempt ids are made with.
    """
    verdicts = _verdict_times(attempts, cluster)
    scores: dict[tuple[str, str, str], int] = {}
    for row in rows:
        pairs = fields(row["raw"])
        known = verdicts.get(str(pairs.get("pod")), [])
        at = at_us(row["source_id"], row["stamp_us"])
        place = len(known) if at is None else bisect_left(known, (at, ""))
        if (
            place < len(known)
            and isinstance(pairs.get("score"), int)
            and abs(pairs["score"]) < _MOST
        ):
            plugin = str(pairs.get("plugin", TOTAL))
            scores[known[place][1], str(pairs.get("node")), plugin] = pairs["score"]
    return [
        {
            "attempt_id": attempt_id,
            "node": node,
            "plugin": plugin,
            "origin": "scheduler",
            "score": score,
            "weight": None,
        }
        for (attempt_id, node, plugin), score in sorted(scores.items())
    ]


def _verdict_times(attempts: Iterable[Attempt], cluster: str) -> dict[str, list[tuple[int, str]]]:
    verdicts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for attempt in attempts:
        if attempt.log is not None and attempt.log.at_us is not None:
            name = f"{attempt.namespace}/{attempt.pod}"
            verdicts[name].append((attempt.log.at_us, attempt.attempt_id(cluster)))
    for known in verdicts.values():
        known.sort()
    return verdicts
