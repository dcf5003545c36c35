"""The fixtures keep their promises: recordings open file by file, the browser is real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from tests.recordings import Recording, Recordings

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def _recording(folder: Path) -> Recording:
    source = folder / "source"
    (source / "truth").mkdir(parents=True)
    (source / "plain.yaml").write_text("a: 1\n")
    (source / "truth" / "rows.tsv.zst").write_bytes(zstandard.compress(b"one\ttwo\n"))
    return Recording(source, folder / "cache")


def test_recording_opens_a_compressed_file_when_asked(tmp_path: Path) -> None:
    recording = _recording(tmp_path)
    assert not (tmp_path / "cache").exists()
    assert (recording / "truth/rows.tsv").read_bytes() == b"one\ttwo\n"


def test_recording_hands_a_plain_file_over_as_it_is(tmp_path: Path) -> None:
    recording = _recording(tmp_path)
    assert recording.path("plain.yaml") == tmp_path / "source" / "plain.yaml"


def test_recording_follows_a_changed_source(tmp_path: Path) -> None:
    recording = _recording(tmp_path)
    first = recording / "truth/rows.tsv"
    packed = tmp_path / "source" / "truth" / "rows.tsv.zst"
    packed.write_bytes(zstandard.compress(b"three\n"))
    assert (recording / "truth/rows.tsv") == first
    assert first.read_bytes() == b"three\n"


def test_recording_names_its_files_without_the_suffix(tmp_path: Path) -> None:
    assert _recording(tmp_path).names() == ["plain.yaml", "truth/rows.tsv"]


def test_recording_refuses_an_unknown_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no audit\.log in the recording source"):
        _recording(tmp_path).path("audit.log")


def test_seed_has_its_stream(recordings: Recordings) -> None:
    with (recordings("seed") / "etcd-watch.json").open("rb") as stream:
        assert stream.readline().startswith(b'{"Header"')


def test_browser_shows_a_page(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("<title>here</title>")
    assert page.title() == "here"
    page.close()
