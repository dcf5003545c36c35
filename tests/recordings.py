"""The big recordings, decompressed file by file when a test asks for one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard

__all__ = ["ROOT", "Recording", "Recordings", "find_recording"]

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording: ``recording / "truth/bindings.tsv"`` is that file, decompressed.

    Attributes:
        source: Folder with the files as they were handed over, most of them zstd-compressed.
        cache: Folder that keeps what was decompressed, shared by all workers and later runs.
    """

    source: Path
    cache: Path

    def __truediv__(self, name: str) -> Path:
        return self.path(name)

    def path(self, name: str) -> Path:
        """Return the plain file ``name``; a compressed one is opened on the first request."""
        plain, packed = self.source / name, self.source / f"{name}.zst"
        if plain.exists():
            return plain
        if not packed.exists():
            raise FileNotFoundError(f"no {name} in the recording {self.source.name}")
        target = self.cache / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_name(f"{target.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_copy(target, packed):
                _decompress(packed, target)
        return target

    def names(self) -> list[str]:
        """Return every file of the recording by its plain name, sorted."""
        files = (p for p in self.source.rglob("*") if p.is_file())
        return sorted(p.relative_to(self.source).as_posix().removesuffix(".zst") for p in files)


Recordings = Callable[[str], Recording]


def find_recording(name: str) -> Path | None:
    """Return the folder of a recording, or None where this machine does not have it.

    ``TRACEKIT_RECORDINGS`` is looked at first, then ``../shared/traces`` beside the checkout;
    ``seed`` also comes with the source.
    """
    given = os.environ.get("TRACEKIT_RECORDINGS")
    shelves = [Path(given)] if given else [ROOT.parent / "shared" / "traces"]
    places = [shelf / name for shelf in shelves]
    if name == "seed":
        places.append(ROOT / "sample_traces" / "seed")
    return next((place for place in places if place.is_dir()), None)


def _is_copy(target: Path, packed: Path) -> bool:
    return target.exists() and target.stat().st_mtime_ns == packed.stat().st_mtime_ns


def _decompress(packed: Path, target: Path) -> None:
    partial = target.with_name(f"{target.name}.part")
    with packed.open("rb") as source, partial.open("wb") as sink:
        zstandard.ZstdDecompressor().copy_stream(source, sink)
    stamp = packed.stat().st_mtime_ns
    os.utime(partial, ns=(stamp, stamp))
    partial.replace(target)
