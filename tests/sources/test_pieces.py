"""Pieces of a recording, put together again."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, cast

import pytest

from tracekit.decode.etcd_watch import EtcdWatchDecoder
from tracekit.decode.klog import KlogDecoder
from tracekit.model.batches import Decoder
from tracekit.sources import PiecedStream, Pieces, SourceFile, open_source

KLOG = b"""\
I1201 16:00:00.000001       1 a.go:1] "one" k="v"
I1201 16:00:00.000002       1 a.go:2] "two" body=<
\t00000000  6b 38 73 00
\t00000010  6b 38 73 00
 > more="x"
I1201 16:00:00.000003       1 a.go:3] "three"
"""
WATCH = b"".join(
    b'{"Header":{"cluster_id":1,"revision":%d},"Events":[{"kv":{"key":"YQ=="}}]}\n' % n
    for n in range(5)
)


def _together(folder: Path, pieces: list[bytes], decoder: Decoder) -> list[bytes]:
    sources = []
    for number, piece in enumerate(pieces):
        path = folder / f"{number}"
        path.write_bytes(piece)
        sources.append(SourceFile(path=str(path), named=True))
    joined = Pieces(sources)
    read = []
    for place, source in enumerate(sources):
        with open_source(source) as opened:
            opened.drop(len(joined.taken(place)))
            ending = joined.after(place, decoder.lead)
            stream = cast(BinaryIO, PiecedStream(opened.stream, ending))
            read.append(stream.read())
    return read


@pytest.mark.parametrize("cut", range(1, len(KLOG)))
def test_a_log_cut_anywhere_reads_as_the_whole(tmp_path: Path, cut: int) -> None:
    read = _together(tmp_path, [KLOG[:cut], KLOG[cut:]], KlogDecoder())
    assert b"".join(read) == KLOG
    assert not read[1] or read[1].startswith(b"I1201")


@pytest.mark.parametrize("cut", range(1, len(WATCH), 7))
def test_a_watch_cut_anywhere_reads_as_the_whole(tmp_path: Path, cut: int) -> None:
    read = _together(tmp_path, [WATCH[:cut], WATCH[cut:]], EtcdWatchDecoder())
    assert b"".join(read) == WATCH
    assert read[1] in (b"", b"\n") or read[1].startswith(b'{"Header":')


def test_a_record_longer_than_a_piece_goes_through_all_of_them(tmp_path: Path) -> None:
    pieces = [WATCH[i : i + 20] for i in range(0, len(WATCH), 20)]
    read = _together(tmp_path, pieces, EtcdWatchDecoder())
    assert b"".join(read) == WATCH
    lines = [line for piece in read for line in piece.splitlines()]
    assert lines == WATCH.splitlines()


def test_logs_that_are_no_pieces_stay_apart(tmp_path: Path) -> None:
    other = b"Flag --x has been deprecated\n" + KLOG
    assert _together(tmp_path, [KLOG, other], KlogDecoder()) == [KLOG, other]


def test_a_watch_without_its_last_newline_is_whole(tmp_path: Path) -> None:
    pieces = [WATCH[:-1], WATCH]
    assert _together(tmp_path, pieces, EtcdWatchDecoder()) == pieces
