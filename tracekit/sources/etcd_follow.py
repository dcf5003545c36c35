"""Follows etcd for weeks: list at one revision, watch from the next, through every failure.

What it promises: between ``ListDone`` or the resume point and the end, each change under the
prefix comes exactly once, whole revision by whole revision; what cannot be had any more is a
``Compacted`` step. It goes on by itself through cut connections, dead servers, expired logins
and rotated certificates; it raises when going on would mix two histories or record nothing.

A hole is filled at the compaction's own revision, not at the newest: what etcd still has
behind that revision is then read as history. The watch goes on one behind it, because a
delete at exactly the compaction revision may be gone (etcd issues 18089 and 19179); the list
there tells it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from tracekit.errors import SourceError, UsageError
from tracekit.model.live import (
    Anchor,
    Change,
    Compacted,
    Connected,
    Disconnected,
    EtcdConfig,
    Events,
    Idle,
    ListDone,
    LiveStep,
    Progress,
    ResumePoint,
    Vanished,
)
from tracekit.sources.etcd_assembly import Joiner, Listing, readable_key
from tracekit.sources.etcd_client import (
    Connection,
    ConnectionLostError,
    Endpoint,
    Received,
    RevisionCompactedError,
    StoppedError,
    parse_endpoint,
)
from tracekit.sources.etcd_schema import HeaderMessage, KeyValueMessage, WatchMessage

__all__ = ["follow_etcd"]

_POLL_SECONDS: Final = 0.25
_ROTATION_SECONDS: Final = 2.0
_FIRST_ROUNDS: Final = 2
_LONGEST_PAUSE_SECONDS: Final = 30.0
_STEADY_SECONDS: Final = 10.0
_PAGE_BYTES: Final = 8 << 20
_VANISHED_AT_ONCE: Final = 1000
# etcd 3.5.0 to 3.5.2 can lose a committed write when killed under load, and then number what
# follows anew (etcd issue 13766); seen here with 3.5.1.
_ANOTHER_HISTORY: Final = (
    "it was restored from a backup, is another cluster, or lost writes in a crash (etcd 3.5.0 to "
    "3.5.2 do): collect it under another --cluster name, or into another store"
)


def follow_etcd(
    config: EtcdConfig,
    resume: ResumePoint | None = None,
    stop: threading.Event | None = None,
) -> Iterator[LiveStep]:
    """Follow what happens under a prefix, from where the record ends.

    Args:
        config: Servers, account and prefix.
        resume: Where the record ends; None begins one.
        stop: Ends the iteration within about a second when set.

    Yields:
        Steps in order; the record may be committed where ``resume`` is a revision.

    Raises:
        SourceError: If no server can be reached at first, the account may not read, nothing
            is under the prefix, or the server's history is not the record's.
        UsageError: If an address or the first revision makes no sense.
    """
    yield from _Follower(config, resume or ResumePoint(), stop or threading.Event()).steps()


class _Follower:
    """The state that outlives connections."""

    def __init__(self, config: EtcdConfig, resume: ResumePoint, stop: threading.Event) -> None:
        self._config, self._known, self._stop = config, resume.known, stop
        secure = config.cacert is not None or config.cert is not None
        self._endpoints = [parse_endpoint(e, secure=secure) for e in config.endpoints]
        self._first, self._end = _key_range(config.prefix)
        seconds = config.duration_seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._revision = resume.revision
        self._cluster_id, self._anchor = resume.cluster_id, resume.anchor
        self._listing: Listing | None = None
        self._has_begun = False
        self._place, self._failures = 0, 0
        self._told_at = time.monotonic()

    def steps(self) -> Iterator[LiveStep]:
        """Connect again and again until it is over."""
        while not self._is_over():
            endpoint = self._endpoints[self._place % len(self._endpoints)]
            began = time.monotonic()
            try:
                yield from self._one_connection(endpoint)
            except StoppedError:
                return
            except ConnectionLostError as loss:
                if time.monotonic() - began > _STEADY_SECONDS and self._has_begun:
                    self._failures = 0
                yield from self._after_loss(endpoint, loss)

    def _is_over(self) -> bool:
        late = self._deadline is not None and time.monotonic() >= self._deadline
        return late or self._stop.is_set()

    def _one_connection(self, endpoint: Endpoint) -> Iterator[LiveStep]:
        connection = Connection(self._config, endpoint, self._is_over)
        try:
            yield self._told(self._greet(connection))
            while True:
                if self._listing is not None:
                    yield from self._list(connection)
                yield from self._watch(connection)
        finally:
            connection.close()

    def _after_loss(self, endpoint: Endpoint, loss: ConnectionLostError) -> Iterator[LiveStep]:
        """Turn to the next endpoint, after a pause that grows while nothing is gained."""
        count = len(self._endpoints)
        rounds = self._failures // count
        self._failures += 1
        self._place += 1
        if not self._has_begun and self._failures >= _FIRST_ROUNDS * count:
            raise SourceError(
                f"no etcd server can be reached: {loss.what}",
                where=", ".join(self._config.endpoints),
                todo=loss.todo or "check the address, and that the server runs",
            ) from loss
        pause = min(_LONGEST_PAUSE_SECONDS, 0.05 * 2.0 ** min(rounds, 16)) * random.uniform(0.5, 1)
        yield self._told(Disconnected(endpoint.text, loss.what, pause))
        until = time.monotonic() + pause
        while not self._is_over() and (left := until - time.monotonic()) > 0:
            self._stop.wait(min(left, _POLL_SECONDS))
            yield from self._idle()

    def _told(self, step: LiveStep) -> LiveStep:
        self._told_at = time.monotonic()
        return step

    def _idle(self) -> Iterator[LiveStep]:
        if time.monotonic() - self._told_at >= self._config.idle_seconds:
            yield self._told(Idle())

    # Who is there: the server must hold the history of the record.

    def _greet(self, connection: Connection) -> Connected:
        header, where = connection.range(self._first).header, connection.endpoint.text
        cluster_id = self._check_cluster(header, where)
        self._check_revision(header.revision, where)
        self._check_anchor(connection)
        if not self._has_begun:
            self._begin(connection, header.revision)
        self._cluster_id, self._has_begun = cluster_id, True
        return Connected(where, cluster_id, header.revision)

    def _check_cluster(self, header: HeaderMessage, where: str) -> str:
        # Asked again with each answer that begins something: gRPC may have reconnected by
        # itself, and behind one address may stand several servers.
        cluster_id = str(header.cluster_id)
        if self._cluster_id not in {None, cluster_id}:
            raise SourceError(
                f"the server is of etcd cluster {cluster_id}, the record of {self._cluster_id}",
                where=where,
                todo="collect each cluster under its own --cluster name",
            )
        return cluster_id

    def _check_revision(self, revision: int, where: str) -> None:
        if self._revision is not None and revision < self._revision:
            raise SourceError(
                f"the server stands at revision {revision}, the record at {self._revision}",
                where=where,
                todo=_ANOTHER_HISTORY,
            )

    def _check_anchor(self, connection: Connection) -> None:
        if (anchor := self._anchor) is None:
            return
        key = anchor.key.encode()
        try:
            found = connection.range(key, revision=anchor.revision, keys_only=True).kvs
        except RevisionCompactedError:
            return  # it cannot be told any more
        mark = (anchor.revision, anchor.version)
        if not found or (found[0].mod_revision, found[0].version) != mark:
            raise SourceError(
                f"the server has no revision {anchor.revision} of {anchor.key}, the record has",
                where=connection.endpoint.text,
                todo=_ANOTHER_HISTORY,
            )

    def _fasten(self, key: str, revision: int, version: int) -> None:
        if "\\" not in key:  # it may stand for an escaped byte
            self._anchor = Anchor(key, revision, version)

    def _begin(self, connection: Connection, now: int) -> None:
        """Choose where to begin: behind the record, at the revision wanted, or now."""
        if not connection.range(self._first, self._end, limit=1, keys_only=True).kvs:
            raise self._nothing_there(connection)
        if self._revision is not None:
            return
        wanted = self._config.from_revision
        if wanted is None:
            self._listing = Listing(0, self._first)
        elif wanted > now + 1:
            raise UsageError(
                f"revision {wanted} is in the future, the server stands at {now}",
                where=connection.endpoint.text,
                todo="give a lower --from-revision",
            )
        elif wanted == 1:
            self._revision = 0
        else:
            self._listing = Listing(wanted - 1, self._first, hole_from=wanted)

    def _nothing_there(self, connection: Connection) -> SourceError:
        todo = "check that this is the etcd of a Kubernetes API server"
        try:
            others = connection.range(b"\0", b"\0", limit=1, keys_only=True).kvs
        except ConnectionLostError:
            raise
        except SourceError:
            others = ()  # the account may not look elsewhere
        if others:
            todo = (
                f"give the right --prefix; the server's first key is {readable_key(others[0].key)}"
            )
        what = f"there is no key under {self._config.prefix}" if self._config.prefix else "no keys"
        return SourceError(what, where=connection.endpoint.text, todo=todo)

    # The state: at the beginning, and where a hole must be filled.

    def _list(self, connection: Connection) -> Iterator[LiveStep]:
        while (listing := self._listing) is not None:
            if listing.is_reconciled and listing.unseen is None:
                listing.unseen = dict(self._known())
            try:
                page = connection.range(
                    listing.next_key, self._end, limit=listing.limit, revision=listing.revision
                )
            except RevisionCompactedError:
                yield from self._list_anew(connection, listing)
                continue
            self._check_cluster(page.header, connection.endpoint.text)
            listing.limit = self._next_limit(page.kvs)
            if page.kvs:
                kv = page.kvs[-1]
                self._fasten(readable_key(kv.key), kv.mod_revision, kv.version)
            yield self._told(listing.take(page, time.time_ns() // 1000))
            if not page.more:
                yield from self._end_list(listing)

    def _next_limit(self, pairs: Sequence[KeyValueMessage]) -> int:
        """Choose a page size that bounds the bytes of a page."""
        average = sum(len(p.value) for p in pairs) // max(1, len(pairs)) + 1
        return max(1, min(self._config.page_limit, _PAGE_BYTES // average))

    def _end_list(self, listing: Listing) -> Iterator[LiveStep]:
        listing.end()
        for start in range(0, len(listing.vanished), _VANISHED_AT_ONCE):
            part = listing.vanished[start : start + _VANISHED_AT_ONCE]
            yield Vanished(listing.revision, tuple(part))
        self._listing, self._revision, self._failures = None, listing.revision, 0
        yield self._told(ListDone(listing.revision, listing.keys, len(listing.vanished)))

    def _list_anew(self, connection: Connection, listing: Listing) -> Iterator[LiveStep]:
        """Begin again at a revision that etcd still has."""
        if listing.hole_from is None:
            self._listing = Listing(0, self._first)
            return
        compacted = self._find_compaction(connection, listing.revision)
        yield self._open_hole(listing.revision + 1, compacted, listing.hole_from)

    def _find_compaction(self, connection: Connection, revision: int) -> int:
        """Ask for a compacted revision; only a watch is told up to where it is compacted."""
        until = time.monotonic() + self._config.dial_seconds
        stream = connection.watch(self._first, self._end, revision)
        try:
            while time.monotonic() < until:
                self._check_over()
                for received in stream.take(_POLL_SECONDS):
                    if received.message.compact_revision:
                        return received.message.compact_revision
        finally:
            stream.close()
        raise ConnectionLostError(f"the server does not tell what it compacted above {revision}")

    def _open_hole(self, first: int, compacted: int, hole_from: int) -> LiveStep:
        """Tell of a hole; the caller's known keys are asked for once it has taken that in."""
        has_record = bool(self._revision)
        self._listing = Listing(compacted, self._first, hole_from, is_reconciled=has_record)
        return self._told(Compacted(first, compacted))

    # The changes.

    def _check_over(self) -> None:
        if self._is_over():
            raise StoppedError("collecting was stopped")

    def _watch(self, connection: Connection) -> Iterator[LiveStep]:
        after = self._revision or 0
        stream = connection.watch(self._first, self._end, after + 1)
        joiner, look_at = Joiner(after), time.monotonic() + _ROTATION_SECONDS
        try:
            while self._listing is None:
                self._check_over()
                if arrived := stream.take(_POLL_SECONDS):
                    yield from self._digest(connection, joiner, arrived)
                else:
                    yield from self._idle()
                if time.monotonic() >= look_at:
                    self._check_rotation(connection)
                    look_at = time.monotonic() + _ROTATION_SECONDS
        finally:
            stream.close()

    def _check_rotation(self, connection: Connection) -> None:
        if connection.is_rotated():
            self._place -= 1  # the same server again
            raise ConnectionLostError("the certificate files changed")

    def _digest(
        self, connection: Connection, joiner: Joiner, arrived: list[Received]
    ) -> Iterator[LiveStep]:
        """Turn responses into steps; an end of the watch comes last."""
        progress, ended = 0, None
        for received in arrived:
            message = received.message
            if message.canceled:
                ended = message
                break
            joiner.add(message, received.at_us)
            if message.created:
                self._check_created(connection, message.header)
            elif not message.events and joiner.is_empty:
                progress = message.header.revision
        yield from self._changes(joiner.take())
        if progress > (self._revision or 0):
            self._revision = progress
            yield self._told(Progress(progress))
        if ended is not None:
            yield self._canceled(ended)

    def _check_created(self, connection: Connection, header: HeaderMessage) -> None:
        """See that the watch is not of a future that never comes.

        A member that lags behind looks like a restored one until the cluster is asked.
        """
        self._check_cluster(header, connection.endpoint.text)
        if header.revision < (self._revision or 0):
            now = connection.range(self._first).header.revision
            self._check_revision(now, connection.endpoint.text)

    def _changes(self, changes: tuple[Change, ...]) -> Iterator[LiveStep]:
        if not changes:
            return
        self._revision, self._failures = changes[-1].revision, 0
        if (last := next((c for c in reversed(changes) if not c.deleted), None)) is not None:
            self._fasten(last.key, last.revision, last.version)
        yield self._told(Events(changes))

    def _canceled(self, message: WatchMessage) -> LiveStep:
        first = (self._revision or 0) + 1
        if message.compact_revision >= first:
            return self._open_hole(first, message.compact_revision, first)
        raise ConnectionLostError(message.cancel_reason or "the server canceled the watch")


def _key_range(prefix: str) -> tuple[bytes, bytes]:
    r"""Return the first key and the key behind the last; ``\0`` twice is every key."""
    if not prefix:
        return b"\0", b"\0"
    path = prefix.rstrip("/").encode()
    return path + b"/", path + b"0"  # 0 follows / in ASCII
