"""Event-sourced scheduling trace analyzer for Kubernetes.

::

    import tracekit

    trace = tracekit.open("tracekit-store")
    list(trace.collect("etcd-watch.json", "kube-scheduler.log"))
    trace.replay()
    trace.query("pending_by_cause")        # a polars DataFrame
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.pipeline.trace import Trace

__all__ = ["TracekitError", "open"]


def open(store: str | Path, *, cluster: str | None = None) -> Trace:
    """Open a store; it need not exist before something is collected into it.

    Args:
        store: Folder of the store.
        cluster: Cluster to look at; None means the only one the store has.
    """
    from tracekit.pipeline.trace import Trace

    return Trace(store, cluster=cluster)
