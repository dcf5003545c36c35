"""Which pod counts on which node, from which revision to which.

A pod counts from its binding until it is terminal or deleted; a terminating pod still does.

Source: scheduler informers leave terminal pods out (facts/replay.md §6 rule 2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from tracekit.model.objects import ObjectRevision
from tracekit.replay import stages
from tracekit.replay.pods import is_pod
from tracekit.replay.requests import effective_requests

__all__ = ["PlacementFold", "fold_placements"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Placement:
    """A stretch in the making."""

    namespace: str
    pod: str
    uid: str
    node: str
    from_revision: int
    requests: str

    def same(self, other: _Placement) -> bool:
        """Tell whether both belong to one stretch."""
        mine = (self.uid, self.node, self.requests)
        return mine == (other.uid, other.node, other.requests)

    def row(self, to_revision: int) -> Row:
        return {
            "namespace": self.namespace,
            "pod": self.pod,
            "uid": self.uid,
            "node": self.node,
            "from_revision": self.from_revision,
            "to_revision": to_revision,
            "requests": self.requests,
        }


class PlacementFold:
    """Folds pod revisions, ascending, into ``placements``."""

    def __init__(self) -> None:
        self._open: dict[str, _Placement] = {}
        self._rows: list[Row] = []

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision; those of other kinds change nothing."""
        if not is_pod(revision):
            return
        now = self._placement(revision)
        was = self._open.get(revision.key)
        if was is not None:
            if now is not None and was.same(now):
                return
            del self._open[revision.key]
            if was.from_revision < revision.revision:
                self._rows.append(was.row(revision.revision))
        if now is not None:
            self._open[revision.key] = now

    def _placement(self, revision: ObjectRevision) -> _Placement | None:
        """Give what counts after this revision; None when nothing does."""
        pod = revision.object
        if revision.operation == "DELETE" or pod is None:
            return None
        node = stages.node_name(pod)
        if node is None or stages.is_terminal(pod):
            return None
        return _Placement(
            namespace=revision.namespace,
            pod=revision.name,
            uid=revision.uid,
            node=node,
            from_revision=revision.revision,
            requests=orjson.dumps(effective_requests(pod)).decode(),
        )

    def rows(self, last_revision: int) -> list[Row]:
        """Give the rows of ``placements``, by node, revision and uid.

        Args:
            last_revision: Highest revision of the record; open stretches end behind it.
        """
        still = [placement.row(last_revision + 1) for placement in self._open.values()]
        order = ("node", "from_revision", "uid")
        return sorted((*self._rows, *still), key=lambda row: tuple(row[c] for c in order))


def fold_placements(revisions: Iterable[ObjectRevision]) -> list[Row]:
    """Fold a whole record into the rows of ``placements``.

    Args:
        revisions: Every object's revisions, ascending by (revision, sub).

    Returns:
        One row per stretch in which one uid counts on one node with the same requests.
    """
    fold, last = PlacementFold(), 0
    for revision in revisions:
        fold.add(revision)
        last = revision.revision
    return fold.rows(last)
