"""Holes that the record itself betrays: a key's version that jumps over missing revisions.

etcd counts a key's changes in ``version``. When it grows by more than one, changes are
missing; where the record also lacks revisions in between, they are in there. A missing
revision alone proves nothing: other prefixes of the same etcd use revisions too.

Source: etcd ``mvccpb/kv.proto``, KeyValue.version; mvcc counts one revision a transaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tracekit.model.batches import Gap
from tracekit.model.objects import ObjectRevision

__all__ = ["HoleFold"]


class HoleFold:
    """Folds changes, ascending, into the holes between them."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}
        self._jumps: list[tuple[int, int, str]] = []
        self._missing: list[tuple[int, int]] = []
        self._revision: int | None = None

    def add(self, change: ObjectRevision) -> None:
        """Take in one change of any kind."""
        if self._revision is not None and change.revision > self._revision + 1:
            self._missing.append((self._revision + 1, change.revision - 1))
        self._revision = change.revision
        if change.operation == "DELETE":
            self._last.pop(change.key, None)
            return
        before = self._last.get(change.key)
        # Only etcd tells versions; 0 is a state that the Kubernetes API told.
        told = before is not None and before[0] and change.version
        if before is not None and told and change.version != before[0] + 1:
            self._jumps.append((before[1], change.revision, change.key))
        self._last[change.key] = (change.version, change.revision)

    def gaps(self) -> list[Gap]:
        """Return the holes, each once, ascending by revision."""
        found: dict[tuple[int, int], str] = {}
        for start, end, key in self._jumps:
            for hole in self._between(start, end):
                found.setdefault(hole, key)
        return [
            Gap(
                from_revision=first,
                to_revision=last,
                cause=f"revisions are missing: the version of {key} jumps over them",
            )
            for (first, last), key in sorted(found.items())
        ]

    def _between(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        place = bisect_left(self._missing, (start,))
        while place < len(self._missing) and self._missing[place][0] < end:
            yield self._missing[place]
            place += 1
