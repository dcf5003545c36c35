"""The live half of ``tracekit collect``: options to a config, signals to an orderly end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tracekit.cli.options import warn
from tracekit.model.live import EtcdConfig
from tracekit.model.options import CollectOptions, CollectSummary

if TYPE_CHECKING:
    from tracekit.pipeline.trace import Trace

__all__ = ["record_etcd"]


def record_etcd(
    trace: Trace, options: CollectOptions, how: Mapping[str, object]
) -> tuple[CollectSummary, bool]:
    """Record a live etcd until it ends or a signal asks for the end.

    Args:
        trace: Where to record.
        options: Cluster name and redaction.
        how: The command's options; what is missing comes from etcdctl's variables.

    Returns:
        What was recorded, and whether a signal ended it.
    """
    given = {name: how[name] for name in ("cacert", "cert", "key", "user", "prefix")}
    endpoints = how["etcd"]
    config = EtcdConfig.from_environment(
        os.environ,
        **given,
        endpoints=tuple(str(endpoints).split(",")) if endpoints else None,
        from_revision=how["from_revision"],
        duration_seconds=how["duration"],
    )
    stop = threading.Event()
    with _ended_by_signals(stop) as signals:
        summary = trace.collect_etcd(config, options=options, stop=stop, tell=warn)
    return summary, bool(signals)


@contextmanager
def _ended_by_signals(stop: threading.Event) -> Iterator[list[int]]:
    """Set ``stop`` on SIGINT and SIGTERM; give the list of signals that came."""
    came: list[int] = []

    def end(number: int, _frame: object) -> None:
        came.append(number)
        stop.set()

    before = {s: signal.signal(s, end) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
