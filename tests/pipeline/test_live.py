"""The live recorder: what it commits may never claim more than it has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracekit
from tracekit.errors import SourceError
from tracekit.model import live
from tracekit.model.options import CollectOptions
from tracekit.store import Store, StoreReader

CONFIG = live.EtcdConfig(endpoints=("localhost:1",))


def _pair(key: str, revision: int) -> live.Pair:
    return live.Pair(key, revision, 1, revision, 0, b"{}")


def _record(
    store: Path, monkeypatch: pytest.MonkeyPatch, steps: list[live.LiveStep], *, fails: bool
) -> live.ResumePoint:
    """Record given steps, flushing at each; return where the recorder began."""
    began: list[live.ResumePoint] = []

    def follow(
        _config: live.EtcdConfig, resume: live.ResumePoint, _stop: threading.Event
    ) -> Iterator[live.LiveStep]:
        began.append(resume)
        yield from steps
        if fails:
            raise SourceError("the connection is gone")

    monkeypatch.setattr("tracekit.sources.etcd_follow.follow_etcd", follow)
    trace = tracekit.open(store)
    options = CollectOptions(flush_seconds=0)
    if fails:
        with pytest.raises(SourceError):
            trace.collect_etcd(CONFIG, options=options)
    else:
        trace.collect_etcd(CONFIG, options=options)
    return began[0]


def test_a_list_that_broke_off_is_no_resume_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = live.Listed(100, (_pair("/registry/a", 90),), True, 0)
    rest = live.Listed(100, (_pair("/registry/b", 20),), True, 0)
    _record(tmp_path / "s", monkeypatch, [page], fails=True)
    assert StoreReader(Store(tmp_path / "s")).rows("objects").height == 1
    done = live.ListDone(100, 2, 0)
    again = _record(tmp_path / "s", monkeypatch, [page, rest, done], fails=False)
    assert again.revision is None, "the first list was not whole"
    assert StoreReader(Store(tmp_path / "s")).rows("objects")["key"].to_list() == [
        "/registry/b", "/registry/a",
    ]  # fmt: skip


def test_a_whole_list_and_events_are_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = live.Listed(100, (_pair("/registry/a", 90),), True, 0)
    change = live.Change(101, 0, "/registry/a", False, 2, 90, 0, b"{}", None, 1)
    steps: list[live.LiveStep] = [page, live.ListDone(100, 1, 0), live.Events((change,))]
    _record(tmp_path / "s", monkeypatch, steps, fails=True)
    again = _record(tmp_path / "s", monkeypatch, [], fails=False)
    assert again.revision == 101
