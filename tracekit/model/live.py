"""What a live source hands on: typed steps, each saying how far the record is complete.

A consumer writes the rows of the steps in order. A step whose ``resume`` is a revision ends
a stretch that is complete: everything up to that revision has been handed on, so it may be
committed as the resume point, in one commit with all rows since the one before. Between two
such steps rows may be committed, the resume point may not move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tracekit.errors import UsageError

__all__ = [
    "Anchor",
    "Change",
    "Compacted",
    "Connected",
    "Disconnected",
    "EtcdConfig",
    "Events",
    "Idle",
    "ListDone",
    "Listed",
    "LiveStep",
    "Pair",
    "Progress",
    "ResumePoint",
    "Vanished",
    "VanishedKey",
]

_REFUSED: Final = {
    "ETCDCTL_INSECURE_SKIP_TLS_VERIFY": (
        "tracekit always verifies the server's certificate",
        "unset the variable and name the server's CA with --cacert",
    ),
    "ETCDCTL_DISCOVERY_SRV": (
        "tracekit does not look endpoints up in DNS SRV records",
        "unset the variable and name the endpoints with --etcd",
    ),
}
_FALSE: Final = frozenset(("", "0", "f", "false"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdConfig:
    """How to reach an etcd cluster and what to record of it.

    Attributes:
        endpoints: ``http://host:port``, ``https://host:port`` or ``host:port`` (TLS when
            ``cacert`` or ``cert`` is given), tried in turn; port 2379 where none is named.
        prefix: Path that the keys lie under: ``/registry`` means ``/registry/…``; empty
            means every key.
        cacert: PEM file of the CA that signed the servers' certificates; None takes the
            system's CAs.
        cert, key: PEM files of the client certificate and its key.
        user, password: Account for servers with authentication by password.
        from_revision: First revision wanted; None begins with the state of now. A resume
            point wins over it.
        duration_seconds: End after so long; None goes on until stopped.
        dial_seconds: How long one endpoint may take to answer.
        keepalive_seconds: Silence after which a connection is tested.
        idle_seconds: How often ``Idle`` tells that nothing came.
        page_limit: Most keys in a page of a list.
        buffer_bytes: Received bytes that may wait for a slow consumer.
    """

    endpoints: tuple[str, ...]
    prefix: str = "/registry"
    cacert: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    from_revision: int | None = None
    duration_seconds: float | None = None
    dial_seconds: float = 5.0
    keepalive_seconds: float = 10.0
    idle_seconds: float = 1.0
    page_limit: int = 1000
    buffer_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise UsageError("no etcd endpoint is named", todo="name one with --etcd URL")
        if (self.cert is None) != (self.key is None):
            raise UsageError(
                "a client certificate needs its key, and a key its certificate",
                todo="give both --cert and --key",
            )
        if self.user is not None and self.password is None:
            raise UsageError(
                f"the password of etcd user {self.user!r} is missing",
                todo="give --user NAME:PASSWORD or set ETCDCTL_PASSWORD",
            )
        if self.from_revision is not None and self.from_revision < 1:
            raise UsageError(
                f"there is no revision {self.from_revision}", todo="etcd counts revisions from 1"
            )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **given: object) -> EtcdConfig:
        """Fill what is not given from etcdctl's variables.

        Args:
            environ: ``os.environ`` or the like.
            **given: Fields of the config by name; None stands for not given. ``user`` may be
                ``NAME:PASSWORD``. A password in it wins over ``ETCDCTL_PASSWORD``.

        Raises:
            UsageError: If a variable asks for what tracekit does not do, or what is given
                does not go together.

        Source: etcd ``etcdctl/README.md``, flags and their ``ETCDCTL_`` variables.
        """
        for variable, (what, todo) in _REFUSED.items():
            if environ.get(variable, "").lower() not in _FALSE:
                raise UsageError(what, where=variable, todo=todo)
        fields = _from_etcdctl(environ) | {k: v for k, v in given.items() if v is not None}
        user = fields.get("user")
        if isinstance(user, str) and ":" in user:
            name, _, password = user.partition(":")
            fields |= {"user": name, "password": password}
        return cls(**fields)  # type: ignore[arg-type] # the caller's names, checked by Python


def _from_etcdctl(environ: Mapping[str, str]) -> dict[str, object]:
    fields: dict[str, object] = {"endpoints": ()}
    if endpoints := environ.get("ETCDCTL_ENDPOINTS"):
        fields["endpoints"] = tuple(e.strip() for e in endpoints.split(",") if e.strip())
    for name in ("cacert", "cert", "key"):
        if path := environ.get(f"ETCDCTL_{name.upper()}"):
            fields[name] = Path(path)
    for name in ("user", "password"):
        if text := environ.get(f"ETCDCTL_{name.upper()}"):
            fields[name] = text
    return fields


@dataclass(frozen=True, slots=True)
class Anchor:
    """One stored change that a server of the same history must still know.

    Attributes:
        key: A key as stored.
        revision: Revision of a PUT of that key, not above the resume revision.
        version: Version that the PUT gave it.
    """

    key: str
    revision: int
    version: int


def _knows_nothing() -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where a record ends.

    Attributes:
        revision: Last revision that is stored whole; None when nothing is stored.
        cluster_id: etcd cluster id that the record is of, in decimal; None when not known.
        anchor: A stored change to compare with the server, the newest PUT at best. It tells
            a server that was restored from a backup, or lost writes in a crash, and has
            since gone on; None leaves that out.
        known: Gives the mod revision of each key that is in the record and not deleted
            there. Asked only when a hole must be filled; rows of all steps handed on until
            then must be in what it gives.
    """

    revision: int | None = None
    cluster_id: str | None = None
    anchor: Anchor | None = None
    known: Callable[[], Mapping[str, int]] = _knows_nothing


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch.

    Attributes:
        sub: Place of the change inside its revision, from 0, among the keys watched.
        version, create_revision: 0 for a delete.
        value: Empty for a delete.
        prev_value: Value before; None where there was none or etcd no longer had it.
        received_at_us: When it arrived here, microseconds since the epoch.
    """

    revision: int
    sub: int
    key: str
    deleted: bool
    version: int
    create_revision: int
    lease: int
    value: bytes
    prev_value: bytes | None
    received_at_us: int


@dataclass(frozen=True, slots=True)
class Pair:
    """One key of a list; ``revision`` is its last change (mod revision)."""

    key: str
    revision: int
    version: int
    create_revision: int
    lease: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Connected:
    """A server answered; ``revision`` is the one it stands at."""

    endpoint: str
    cluster_id: str
    revision: int

    @property
    def resume(self) -> None:
        """Nothing is complete by this."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A connection ended or none came about; the next attempt follows by itself."""

    endpoint: str
    reason: str
    retry_in_seconds: float

    @property
    def resume(self) -> None:
        """Nothing is complete by this."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing came for ``EtcdConfig.idle_seconds``: a moment to flush."""

    @property
    def resume(self) -> None:
        """Nothing is complete by this."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of the state at one revision.

    Attributes:
        revision: Revision that the whole list is of.
        pairs: Keys in byte order. After a hole only those that changed in it.
        initial: The list begins a record; False fills a hole.
        received_at_us: When the page arrived here, microseconds since the epoch.
    """

    revision: int
    pairs: tuple[Pair, ...]
    initial: bool
    received_at_us: int

    @property
    def resume(self) -> None:
        """A list is complete only when ``ListDone`` follows."""


@dataclass(frozen=True, slots=True)
class VanishedKey:
    """A key whose delete was not seen: it lies somewhere in the revisions named.

    Attributes:
        last_revision: Revision of the last change on record.
        from_revision, to_revision: First and last revision at which it can have been deleted.
    """

    key: str
    last_revision: int
    from_revision: int
    to_revision: int


@dataclass(frozen=True, slots=True)
class Vanished:
    """Keys deleted inside a hole; synthetic, for no server told of them."""

    revision: int
    keys: tuple[VanishedKey, ...]

    @property
    def resume(self) -> None:
        """A list is complete only when ``ListDone`` follows."""


@dataclass(frozen=True, slots=True)
class ListDone:
    """All pages of a list came, at one revision.

    Attributes:
        revision: That revision; the watch goes on from the next.
        keys: Keys there are at that revision.
        vanished: Keys that ``Vanished`` steps named.
    """

    revision: int
    keys: int
    vanished: int

    @property
    def resume(self) -> int:
        """The record is whole up to the list's revision, but for gaps told before."""
        return self.revision


@dataclass(frozen=True, slots=True)
class Events:
    """Changes in (revision, sub) order; no revision is ever split over two steps."""

    changes: tuple[Change, ...]

    @property
    def resume(self) -> int:
        """The record is whole up to the last change."""
        return self.changes[-1].revision


@dataclass(frozen=True, slots=True)
class Progress:
    """The server says that nothing under the prefix changed up to a revision."""

    revision: int

    @property
    def resume(self) -> int:
        """The record is whole up to that revision."""
        return self.revision


@dataclass(frozen=True, slots=True)
class Compacted:
    """A true hole: etcd had compacted these revisions before they were read.

    A list of the state at ``to_revision`` follows, then the keys that vanished. Should etcd
    compact again meanwhile, another ``Compacted`` begins where this one ends and the list
    begins anew.
    """

    from_revision: int
    to_revision: int

    @property
    def resume(self) -> None:
        """A hole is filled only when ``ListDone`` follows."""


LiveStep = (
    Connected | Disconnected | Idle | Listed | Vanished | ListDone | Events | Progress | Compacted
)
