"""Holes that versions betray."""

from __future__ import annotations

from tests.replay.objects import pod
from tests.replay.stream import Recorder
from tracekit.replay.holes import HoleFold


def _gaps(*changes: tuple[str, int, int]) -> list[tuple[int, int | None]]:
    """Fold (key, revision, version); version 0 is a delete."""
    recorder = Recorder()
    for key, revision, version in changes:
        if version:
            recorder.put(key, pod(key), revision=revision, version=version)
        else:
            recorder.delete(key, revision=revision)
    fold = HoleFold()
    for change in recorder.revisions:
        fold.add(change)
    return [(gap.from_revision, gap.to_revision) for gap in fold.gaps()]


def test_a_version_that_jumps_over_missing_revisions_is_a_hole() -> None:
    assert _gaps(("a", 1, 1), ("b", 2, 1), ("a", 10, 5)) == [(3, 9)]


def test_missing_revisions_alone_prove_nothing() -> None:
    assert _gaps(("a", 1, 1), ("a", 10, 2), ("b", 20, 1)) == []


def test_a_recreated_key_begins_anew() -> None:
    assert _gaps(("a", 1, 7), ("a", 2, 0), ("a", 5, 1)) == []


def test_a_hole_told_by_several_keys_is_one() -> None:
    assert _gaps(("a", 1, 1), ("b", 2, 1), ("a", 9, 3), ("b", 10, 4)) == [(3, 8)]


def test_a_record_that_begins_late_has_no_hole_before_it() -> None:
    assert _gaps(("a", 50, 12), ("a", 51, 13)) == []
