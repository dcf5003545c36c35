"""The table that ``collect`` ends with, as a person reads it at 80 columns."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Tracekit

LINE = 'I1201 12:00:00.00000%d       1 kubelet.go:2407] "SyncLoop ADD" source="api" pods=[]\n'


def lines(count: int) -> str:
    return "".join(LINE % number for number in range(count))


def test_it_tells_what_a_source_was_taken_for_and_what_the_store_knew(
    run: Tracekit, tmp_path: Path
) -> None:
    (tmp_path / "kubelet-node-7.log").write_text(lines(3))
    done = run("collect", "kubelet-node-7.log", "-o", "table")
    assert done.code == 0
    assert done.out.splitlines() == [
        "source              taken for              records  stored  known",
        "kubelet-node-7.log  klog (kubelet node-7)        3       3      0",
    ]
    (tmp_path / "kubelet-node-7.log").write_text(lines(5))
    again = run("collect", "kubelet-node-7.log", "-o", "table").out.splitlines()[1]
    assert again.split()[-3:] == ["5", "2", "3"]


def test_it_tells_what_was_odd_with_the_first_of_it(run: Tracekit, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(lines(1))
    (tmp_path / "b.log").write_bytes(
        lines(2).encode() + LINE.replace("api", "\x1b").encode("latin1")[:-2] % 5 + b"\xe9]\n"
    )
    done = run("collect", "a.log", "b.log", "-o", "table")
    assert done.code == 3
    assert "    ! LOG_NOT_UTF8 × 1, data lost: bytes that are not UTF-8" in done.out
    assert "      first at 3: I1201" in done.out
    assert done.out.splitlines()[-1] == "2 sources: 3 stored, 1 known already, 1 with something odd"
    assert "\x1b" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_what_was_stored_is_told_also_where_a_later_source_is_refused(
    run: Tracekit, tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_text(lines(2))
    (tmp_path / "b.log").write_bytes(b"\x00\x01\x02" * 9)
    done = run("collect", "a.log", "b.log", "-o", "json")
    assert done.code == 1
    assert [(row["source"], row["stored"]) for row in done.rows] == [("a.log", 2)]
    assert "b.log" in done.err
