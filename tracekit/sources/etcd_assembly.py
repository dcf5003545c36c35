"""Messages put together into steps: pages into a list, fragments into whole revisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tracekit.model.live import Change, Listed, Pair, VanishedKey
from tracekit.sources.etcd_schema import EventMessage, KeyValueMessage, RangeMessage, WatchMessage

__all__ = ["Joiner", "Listing", "readable_key"]

_DELETE: Final = 1
_FIRST_PAGE: Final = 100


@dataclass(slots=True)
class Listing:
    """A list under way; it survives lost connections.

    Attributes:
        revision: Revision it is of; 0 until the first page told it.
        next_key: Where the next page begins.
        hole_from: First revision that may be missing; None when none is.
        is_reconciled: Only what differs from the known keys is handed on.
        unseen: Known keys that no page has shown yet; None until they are asked for.
        vanished: Keys whose delete was missed.
        limit: Most keys of the next page.
        keys: Keys listed so far.
    """

    revision: int
    next_key: bytes
    hole_from: int | None = None
    is_reconciled: bool = False
    unseen: dict[str, int] | None = None
    vanished: list[VanishedKey] = field(default_factory=list)
    limit: int = _FIRST_PAGE
    keys: int = 0

    def take(self, page: RangeMessage, at_us: int) -> Listed:
        """Move on by a page."""
        self.revision = self.revision or page.header.revision
        pairs = [_pair(kv) for kv in page.kvs]
        if pairs:
            self.keys += len(pairs)
            self.next_key = page.kvs[-1].key + b"\0"
        news = pairs if self.unseen is None else [p for p in pairs if self._is_news(p, self.unseen)]
        return Listed(self.revision, tuple(news), self.unseen is None, at_us)

    def _is_news(self, pair: Pair, unseen: dict[str, int]) -> bool:
        known = unseen.pop(pair.key, None)
        if known is not None and pair.create_revision > known:
            self._miss(pair.key, known, pair.create_revision - 1)  # deleted, then made again
        return pair.revision != known

    def end(self) -> None:
        """Add the known keys that no page has shown."""
        for key, known in (self.unseen or {}).items():
            self._miss(key, known, self.revision)

    def _miss(self, key: str, known: int, to_revision: int) -> None:
        first = max(known + 1, self.hole_from or 0)
        if first <= to_revision:  # else the record is ahead of the list
            self.vanished.append(VanishedKey(key, known, first, to_revision))


class Joiner:
    """Joins fragments: hands on whole revisions and holds back the one still open."""

    def __init__(self, after: int) -> None:
        self._after, self._revision, self._sub = after, after, -1
        self._changes: list[Change] = []
        self._is_open = False

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing waits."""
        return not self._changes

    def add(self, message: WatchMessage, at_us: int) -> None:
        """Add a response, received at ``at_us`` microseconds since the epoch."""
        for event in message.events:
            revision = event.kv.mod_revision
            if revision <= self._after:
                continue  # handed on before
            self._sub = self._sub + 1 if revision == self._revision else 0
            self._revision = revision
            self._changes.append(_change(event, revision, self._sub, at_us))
        self._is_open = message.fragment

    def take(self) -> tuple[Change, ...]:
        """Return the changes of all revisions that are whole."""
        count = len(self._changes)
        if self._is_open:
            while count and self._changes[count - 1].revision == self._revision:
                count -= 1
        whole = tuple(self._changes[:count])
        del self._changes[:count]
        if whole:
            self._after = whole[-1].revision
        return whole


def readable_key(key: bytes) -> str:
    """Return a key as the store has it; bytes that are not UTF-8 are escaped."""
    return key.decode("utf-8", "backslashreplace")


def _pair(kv: KeyValueMessage) -> Pair:
    return Pair(
        readable_key(kv.key), kv.mod_revision, kv.version, kv.create_revision, kv.lease, kv.value
    )


def _change(event: EventMessage, revision: int, sub: int, at_us: int) -> Change:
    kv = event.kv
    return Change(
        revision,
        sub,
        readable_key(kv.key),
        event.type == _DELETE,
        kv.version,
        kv.create_revision,
        kv.lease,
        kv.value,
        event.prev_kv.value if event.HasField("prev_kv") else None,
        at_us,
    )
