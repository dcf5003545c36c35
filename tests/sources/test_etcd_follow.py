"""Live etcd in quiet times: lists, transactions, leases, fragments, and servers that are wrong."""

from __future__ import annotations

import shutil
import threading
import time

import pytest

from tests.sources.conftest import StartServer
from tests.sources.etcd_server import EtcdServer, Writer
from tests.sources.follower import Follower, Record
from tests.sources.relay import Relay
from tracekit.errors import SourceError, TracekitError, UsageError
from tracekit.model.live import (
    Anchor,
    EtcdConfig,
    Idle,
    ListDone,
    Listed,
    LiveStep,
    Progress,
    ResumePoint,
)
from tracekit.sources.etcd_follow import follow_etcd


def _config(server: EtcdServer, **fields: object) -> EtcdConfig:
    return EtcdConfig(endpoints=(server.url,), **fields)  # type: ignore[arg-type]


def _fails(config: EtcdConfig, resume: ResumePoint | None = None) -> TracekitError:
    with pytest.raises(TracekitError) as caught:
        list(follow_etcd(config, resume))
    return caught.value


def test_list_is_of_one_revision_in_pages(server: EtcdServer, writer: Writer) -> None:
    writer.write([(f"/registry/{i:05}", b"x" * 50) for i in range(2600)])
    writer.put("/registry2/other", b"not under the prefix")
    changed: list[int] = []

    def change(step: LiveStep) -> None:
        if isinstance(step, Listed):
            changed.append(writer.put("/registry/00000", b"new"))
            changed.append(writer.put("/registry/99999", b"new"))

    with Follower(_config(server), before=change) as follower:
        follower.wait(lambda r: len(r.changes) == 8, "the changes during the list")
    record = follower.record
    assert [p.key for p in record.pairs] == [f"/registry/{i:05}" for i in range(2600)]
    assert [s for s in record.steps if isinstance(s, ListDone)] == [ListDone(2602, 2600, 0)]
    assert len(changed) == 8  # four pages
    assert [c.revision for c in record.changes] == changed


def test_list_goes_on_where_it_was_cut(server: EtcdServer, writer: Writer) -> None:
    writer.write([(f"/registry/{i:05}", b"x") for i in range(3000)])
    relay = Relay(server.port)

    def cut(step: LiveStep) -> None:
        if isinstance(step, Listed):
            relay.cut()
            writer.put("/registry/00000", b"new")

    config = EtcdConfig(endpoints=(relay.url,))
    with Follower(config, before=cut) as follower:
        follower.wait(lambda r: len(r.changes) >= 4, "the changes during the list")
    record = follower.record
    assert [p.key for p in record.pairs] == [f"/registry/{i:05}" for i in range(3000)]
    assert relay.connections >= 4
    relay.close()


def test_big_values_make_small_pages(server: EtcdServer, writer: Writer) -> None:
    for number in range(300):
        writer.put(f"/registry/{number:03}", b"x" * 200_000)
    sizes: list[int] = []

    def measure(step: LiveStep) -> None:
        if isinstance(step, Listed):
            sizes.append(sum(len(p.value) for p in step.pairs))

    with Follower(_config(server), before=measure) as follower:
        follower.wait(lambda r: r.resume is not None, "the list")
    assert len(follower.record.pairs) == 300
    assert max(sizes) <= 20_000_000  # the first page is of 100 keys, unseen
    assert max(sizes[1:]) <= 8 << 20


def test_fields_of_a_change(server: EtcdServer, writer: Writer) -> None:
    lease = writer.grant(600)
    writer.put("/registry/other", b"")
    made = writer.put("/registry/a", b"1", lease)
    before = time.time_ns() // 1000
    with Follower(_config(server, from_revision=made + 1)) as follower:
        changed = writer.put("/registry/a", b"")
        writer.delete("/registry/a")
        follower.wait(lambda r: len(r.changes) == 2, "both changes")
    pair, _ = follower.record.pairs
    assert (pair.revision, pair.version, pair.create_revision) == (made, 1, made)
    assert (pair.lease, pair.value) == (lease, b"1")
    put, delete = follower.record.changes
    assert (put.revision, put.version, put.create_revision, put.lease) == (changed, 2, made, 0)
    assert (put.deleted, put.value, put.prev_value) == (False, b"", b"1")
    assert (delete.deleted, delete.value, delete.prev_value) == (True, b"", b"")
    assert (delete.version, delete.create_revision) == (0, 0)
    assert before <= put.received_at_us <= delete.received_at_us <= time.time_ns() // 1000


def test_transaction_is_one_revision(server: EtcdServer, writer: Writer) -> None:
    writer.put("/registry/b", b"0")
    with Follower(_config(server, from_revision=1)) as follower:
        revision = writer.transaction(
            ("/registry/c", b"1"), ("/elsewhere", b"2"), ("/registry/a", b"3"),
            ("/registry/b", None),
        )  # fmt: skip
        follower.wait_for(revision)
    changes = [(c.revision, c.sub, c.key, c.deleted) for c in follower.record.changes[1:]]
    assert changes == [
        (revision, 0, "/registry/c", False),
        (revision, 1, "/registry/a", False),
        (revision, 2, "/registry/b", True),
    ]


def test_lease_that_expires_deletes(server: EtcdServer, writer: Writer) -> None:
    lease = writer.grant(1)
    writer.put("/registry/a", b"1", lease)
    writer.put("/registry/b", b"2", lease)
    with Follower(_config(server, from_revision=1)) as follower:
        follower.wait(lambda r: len(r.changes) == 4, "the deletes of the lease")
    gone = follower.record.changes[2:]
    assert {(c.key, c.deleted, c.prev_value) for c in gone} == {
        ("/registry/a", True, b"1"),
        ("/registry/b", True, b"2"),
    }
    assert {c.revision for c in gone} == {gone[0].revision}
    assert [c.sub for c in gone] == [0, 1]


def test_fragments_join_and_split_no_revision(
    start_server: StartServer,
) -> None:
    server = start_server(extra=("--max-request-bytes", "20000000"))
    writer = Writer(f"127.0.0.1:{server.port}")
    writer.put("/registry/first", b"")
    value = b"x" * 1_400_000
    keys = [f"/registry/{n}" for n in range(12)]
    revision = writer.transaction(*((key, value) for key in keys))
    last = writer.transaction(*((key, None) for key in keys))
    resumes: list[int | None] = []
    with Follower(_config(server, from_revision=2), before=lambda s: resumes.append(s.resume)) as f:
        f.wait_for(last)
    changes = f.record.changes[1:]
    assert [(c.revision, c.sub, c.key) for c in changes] == [
        *((revision, n, key) for n, key in enumerate(keys)),
        *((last, n, key) for n, key in enumerate(keys)),
    ]
    assert all(len(c.value or c.prev_value or b"") == len(value) for c in changes)
    writer.close()


def test_progress_moves_the_resume_point(start_server: StartServer) -> None:
    server = start_server(extra=("--experimental-watch-progress-notify-interval", "200ms"))
    writer = Writer(f"127.0.0.1:{server.port}")
    writer.put("/registry/a", b"")
    with Follower(_config(server)) as follower:
        follower.wait(lambda r: r.resume is not None, "the list")
        elsewhere = writer.put("/elsewhere", b"")
        follower.wait_for(elsewhere)
    assert Progress(elsewhere) in follower.record.steps
    assert follower.record.changes == []
    writer.close()


def test_idle_duration_and_stop(server: EtcdServer, writer: Writer) -> None:
    writer.put("/registry/a", b"")
    began = time.monotonic()
    steps = list(follow_etcd(_config(server, duration_seconds=1.0, idle_seconds=0.3)))
    assert 1.0 <= time.monotonic() - began < 2.0
    assert 1 <= sum(isinstance(s, Idle) for s in steps) <= 3
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    assert list(follow_etcd(_config(server), stop=stop))
    assert time.monotonic() - began < 1.5


def test_resume_beginning_with_a_delete(server: EtcdServer, writer: Writer) -> None:
    first = writer.put("/registry/a", b"")
    writer.put("/registry/b", b"")
    point = ResumePoint(revision=first, anchor=Anchor("/registry/a", first, 1))
    last = writer.delete("/registry/a")
    with Follower(_config(server), resume=point) as follower:
        follower.wait_for(last)
    assert [(c.key, c.deleted) for c in follower.record.changes] == [
        ("/registry/b", False),
        ("/registry/a", True),
    ]


def test_wrong_prefix_names_a_key_that_is_there(server: EtcdServer, writer: Writer) -> None:
    writer.put("/kubernetes.io/pods/a", b"")
    for resume in (None, ResumePoint(revision=1)):
        error = _fails(_config(server), resume)
        assert isinstance(error, SourceError)
        assert "no key under /registry" in str(error)
        assert server.url in str(error)
        assert "/kubernetes.io/pods/a" in str(error)
        assert "--prefix" in str(error)


def test_server_without_keys(server: EtcdServer) -> None:
    assert "Kubernetes API server" in str(_fails(_config(server, prefix="")))


def test_every_key_where_the_prefix_is_empty(server: EtcdServer, writer: Writer) -> None:
    last = writer.transaction(("a", b""), ("/registry/b", b""))
    with Follower(_config(server, prefix="", from_revision=1)) as follower:
        follower.wait_for(last)
    assert {c.key for c in follower.record.changes} == {"a", "/registry/b"}


def test_revision_in_the_future(server: EtcdServer, writer: Writer) -> None:
    writer.put("/registry/a", b"")
    error = _fails(_config(server, from_revision=99))
    assert isinstance(error, UsageError)
    assert "future" in str(error)


def test_nobody_there(server: EtcdServer) -> None:
    server.kill()
    error = _fails(_config(server))
    assert isinstance(error, SourceError)
    assert server.url in str(error)
    assert "check the address" in str(error)


def test_another_cluster_is_refused(server: EtcdServer, writer: Writer) -> None:
    writer.put("/registry/a", b"")
    error = _fails(_config(server), ResumePoint(revision=1, cluster_id="1"))
    assert "the record of 1" in str(error)
    assert "--cluster" in str(error)


def test_restored_server_is_refused_while_following(server: EtcdServer, writer: Writer) -> None:
    for number in range(20):
        writer.put("/registry/a", b"%d" % number)
    record = Record()
    with Follower(_config(server), record) as follower:
        follower.wait_for(21)
        server.kill()
        shutil.rmtree(server.folder / "data")
        server.start()  # same name and peers, so the same cluster id
        error = follower.wait_for_error()
    assert "stands at revision 1, the record at 21" in str(error)
    assert "restored from a backup" in str(error)


def test_restored_server_that_went_on_is_refused(server: EtcdServer, writer: Writer) -> None:
    revisions = [writer.put(f"/registry/{n}", b"") for n in range(10)]
    point = ResumePoint(revision=revisions[5], anchor=Anchor("/registry/6", revisions[5], 1))
    assert f"no revision {revisions[5]} of /registry/6" in str(_fails(_config(server), point))
    point = ResumePoint(revision=revisions[5], anchor=Anchor("/registry/5", revisions[5], 2))
    assert f"no revision {revisions[5]} of /registry/5" in str(_fails(_config(server), point))


def test_restored_server_that_went_on_is_refused_while_following(
    server: EtcdServer, writer: Writer
) -> None:
    writer.put("/registry/a", b"")
    relay = Relay(server.port)
    with Follower(EtcdConfig(endpoints=(relay.url,))) as follower:
        follower.wait_for(writer.put("/registry/a", b"1"))
        relay.is_refusing = True
        relay.cut()
        server.kill()
        shutil.rmtree(server.folder / "data")
        server.start()
        writer.write([(f"/registry/{n}", b"") for n in range(20)])
        relay.is_refusing = False
        error = follower.wait_for_error()
    assert "the server has no revision 3 of /registry/a" in str(error)
    relay.close()
