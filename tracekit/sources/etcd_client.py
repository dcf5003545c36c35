"""One connection to one etcd server: channel, TLS, login, lists and the watch stream.

A connection is made anew for every attempt, so it reads the certificate files anew, logs in
anew and never meets the back-off of a channel before it. What fails here is either final
(``SourceError``) or worth another attempt, perhaps at another server (``ConnectionLostError``).

Back-pressure: a thread takes responses from gRPC only while the buffer has room; after that
HTTP/2 flow control stops the server, which then reads from its history instead of memory.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from tracekit.errors import SourceError, UsageError
from tracekit.model.live import EtcdConfig
from tracekit.sources.etcd_schema import (
    AUTHENTICATE,
    RANGE,
    WATCH,
    RangeMessage,
    WatchMessage,
    encode,
    parser,
)

# gRPC's core writes each failed handshake to stderr, and reads this when it is loaded. The
# failures are told by the steps and errors here.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
import grpc

__all__ = [
    "Connection",
    "ConnectionLostError",
    "Endpoint",
    "Received",
    "RevisionCompactedError",
    "StoppedError",
    "WatchStream",
    "parse_endpoint",
]

_PORT: Final = 2379
_POLL_SECONDS: Final = 0.25
_LIST_SECONDS: Final = 60.0
_FINAL: Final = {
    grpc.StatusCode.PERMISSION_DENIED: "let the account read the prefix (etcdctl role "
    "grant-permission ROLE read --prefix=true PREFIX)",
    grpc.StatusCode.INVALID_ARGUMENT: "check --user and its password",
    grpc.StatusCode.UNIMPLEMENTED: "check that the address is an etcd v3 server's client port",
}
# rpctypes.ErrGRPCAuthOldRevision is an InvalidArgument that a new login cures.
_STALE_LOGIN: Final = "revision of auth store is old"
_PLAIN: Final = "the server may speak no TLS here: try http://"
_TLS: Final = "the server may want TLS: try https://"
_HOST: Final = "check --cacert, and that the server's certificate names this host"
_CERT: Final = "the server wants another client certificate: check --cert and --key"
# What gRPC says of a failed connection, in the order to look for it, and what helps.
_HINTS: Final = (
    ("CERTIFICATE_VERIFY_FAILED", _HOST),
    ("Hostname Verification Check failed", _HOST),
    ("CERTIFICATE_REQUIRED", _CERT),
    ("BAD_CERTIFICATE", _CERT),
    ("UNKNOWN_CA", _CERT),
    ("WRONG_VERSION_NUMBER", _PLAIN),
    ("Handshake read failed", _PLAIN),
    ("Socket closed", _TLS),
    ("Connection reset", _TLS),
)


class ConnectionLostError(SourceError):
    """This attempt failed; another one may not."""


class RevisionCompactedError(SourceError):
    """A list was asked for at a revision that etcd has compacted."""


class StoppedError(SourceError):
    """The caller's stop event was set, or the time is over."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address, as given and as gRPC wants it."""

    text: str
    target: str
    secure: bool


@dataclass(frozen=True, slots=True)
class Received:
    """A response of the watch, its size, and when it arrived (microseconds since the epoch)."""

    at_us: int
    size: int
    message: WatchMessage


def parse_endpoint(text: str, *, secure: bool) -> Endpoint:
    """Read an address.

    Args:
        text: ``http://host:port``, ``https://host:port`` or ``host:port``.
        secure: Whether an address without scheme is meant to be TLS.

    Raises:
        UsageError: If it is none of these.
    """
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme not in {"", "http", "https"} or parts.path not in {"", "/"}:
        raise UsageError(
            f"{text!r} is not an etcd address", todo="give https://HOST:PORT or http://HOST:PORT"
        )
    host = f"[{host}]" if ":" in host else host
    return Endpoint(
        text, f"{host}:{port}", parts.scheme == "https" or (not parts.scheme and secure)
    )


class Connection:
    """A channel to one endpoint, logged in where the config has a user.

    Raises:
        SourceError: If the server refuses the account.
        ConnectionLostError: If the endpoint does not answer, or a certificate file is unreadable.
    """

    def __init__(self, config: EtcdConfig, endpoint: Endpoint, stop: Callable[[], bool]) -> None:
        self.endpoint = endpoint
        self._config, self._stop = config, stop
        self._files = _stamps(config) if endpoint.secure else ()
        self._channel = _open_channel(config, endpoint)
        self._range = self._unary(RANGE, "RangeResponse")
        self._metadata: tuple[tuple[str, str], ...] = (("hasleader", "true"),)
        try:
            self._log_in()
        except SourceError:
            self.close()
            raise

    def close(self) -> None:
        """End it, with every call that still runs."""
        self._channel.close()

    def is_rotated(self) -> bool:
        """Tell whether the certificate files changed and can be used as they are now."""
        if not self.endpoint.secure or _stamps(self._config) == self._files:
            return False
        try:
            _credentials(self._config, self.endpoint)
        except ConnectionLostError:
            return False  # half-way through a rotation: what is connected goes on
        return True

    def range(
        self,
        key: bytes,
        range_end: bytes = b"",
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
    ) -> RangeMessage:
        r"""List keys from ``key`` to below ``range_end``, linearizably.

        Args:
            key: First key; the only one when ``range_end`` is empty.
            range_end: Key behind the last; ``\0`` for no end.
            limit: Most keys wanted; 0 for all.
            revision: Revision to list at; 0 for now.
            keys_only: Leave the values out.

        Raises:
            RevisionCompactedError: If that revision is compacted.
            ConnectionLostError: If the connection fails.
            StoppedError: If the caller wants to end.
        """
        request = encode(
            "RangeRequest",
            key=key,
            range_end=range_end,
            limit=limit,
            revision=revision,
            keys_only=keys_only,
        )
        # One key is asked for as a sign of life, a page may take its time.
        seconds = _LIST_SECONDS if range_end else self._config.dial_seconds
        return cast("RangeMessage", self._call(self._range, request, seconds))

    def watch(self, key: bytes, range_end: bytes, start_revision: int) -> WatchStream:
        """Watch keys from a revision on, with values before, fragments and progress."""
        request = {
            "key": key,
            "range_end": range_end,
            "start_revision": start_revision,
            "progress_notify": True,
            "prev_kv": True,
            "fragment": True,
        }
        method = self._channel.stream_stream(
            WATCH, request_serializer=_as_is, response_deserializer=_receive
        )

        def start(requests: Iterator[bytes]) -> Any:
            return method(requests, metadata=self._metadata)

        first = encode("WatchRequest", create_request=request)
        return WatchStream(start, first, self._config.buffer_bytes, self._failure)

    def _log_in(self) -> None:
        if self._config.user is None:
            return
        request = encode(
            "AuthenticateRequest", name=self._config.user, password=self._config.password or ""
        )
        method = self._unary(AUTHENTICATE, "AuthenticateResponse")
        try:
            answer = self._call(method, request, self._config.dial_seconds)
        except SourceError as error:
            # As etcdctl does: an account on a server that wants none is no fault.
            if "authentication is not enabled" in error.what:
                return
            raise
        self._metadata += (("token", cast("Any", answer).token),)

    def _unary(self, path: str, answer: str) -> Any:
        return self._channel.unary_unary(
            path, request_serializer=_as_is, response_deserializer=parser(answer)
        )

    def _call(self, method: Any, request: bytes, seconds: float) -> object:
        future = method.future(request, timeout=seconds, metadata=self._metadata)
        while not self._stop():
            try:
                return future.result(timeout=_POLL_SECONDS)
            except grpc.FutureTimeoutError:
                continue
            except grpc.RpcError as error:
                raise self._failure(error) from error
        future.cancel()
        raise StoppedError("collecting was stopped", where=self.endpoint.text)

    def _failure(self, error: grpc.RpcError) -> SourceError:
        """Tell what a failed call means."""
        call = cast("grpc.Call", error)
        code, details = call.code(), call.details() or ""
        what, where = f"{details or 'no answer'} ({code.name})", self.endpoint.text
        if code is grpc.StatusCode.OUT_OF_RANGE and "compacted" in details:
            return RevisionCompactedError(what, where=where)
        if code in _FINAL and _STALE_LOGIN not in details:
            return SourceError(what, where=where, todo=_FINAL[code])
        hint = next((hint for sign, hint in _HINTS if sign in details), "")
        if hint == _CERT and self._config.cert is None:
            hint = "the server wants a client certificate: give --cert and --key"
        return ConnectionLostError(what, where=where, todo=hint)


class WatchStream:
    """The responses of one watch, read by a thread into a buffer of bounded size."""

    def __init__(
        self,
        start: Callable[[Iterator[bytes]], Any],
        request: bytes,
        buffer_bytes: int,
        failure: Callable[[grpc.RpcError], SourceError],
    ) -> None:
        self._limit, self._translate = buffer_bytes, failure
        self._changed = threading.Condition()
        self._waiting: deque[Received] = deque()
        self._bytes = 0
        self._failure: SourceError | None = None
        self._closed = threading.Event()
        self._call = start(self._requests(request))
        self._thread = threading.Thread(target=self._read, name="etcd-watch", daemon=True)
        self._thread.start()

    def take(self, seconds: float) -> list[Received]:
        """Return what has arrived, waiting up to so many seconds for the first.

        Raises:
            SourceError: If the stream has ended and all that came before is taken.
        """
        with self._changed:
            if not self._waiting and self._failure is None:
                self._changed.wait(seconds)
            taken = list(self._waiting)
            self._waiting.clear()
            self._bytes = 0
            self._changed.notify_all()
            if not taken and self._failure is not None:
                raise self._failure
            return taken

    def close(self) -> None:
        """End the stream; what was not taken is dropped."""
        self._closed.set()
        self._call.cancel()
        with self._changed:
            self._changed.notify_all()
        self._thread.join()

    def _requests(self, request: bytes) -> Iterator[bytes]:
        yield request
        self._closed.wait()  # as etcd's own clients do: the request side stays open

    def _read(self) -> None:
        failure: SourceError = ConnectionLostError("the server ended the stream")
        try:
            for received in self._call:
                if not self._put(received):
                    return
        except grpc.RpcError as error:
            failure = self._translate(error)
        finally:
            self._closed.set()
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def _put(self, received: Received) -> bool:
        with self._changed:
            while self._bytes >= self._limit and not self._closed.is_set():
                self._changed.wait()
            self._waiting.append(received)
            self._bytes += received.size
            self._changed.notify_all()
            return not self._closed.is_set()


_parse_watch = cast("Callable[[bytes], WatchMessage]", parser("WatchResponse"))


def _receive(data: bytes) -> Received:
    # Runs in gRPC's own thread, so the time is of the arrival, not of the reading.
    return Received(time.time_ns() // 1000, len(data), _parse_watch(data))


def _as_is(data: bytes) -> bytes:
    return data


def _open_channel(config: EtcdConfig, endpoint: Endpoint) -> grpc.Channel:
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", int(config.keepalive_seconds * 1000)),
        # Since 1.6x gRPC waits ping_timeout (a minute) for the answer, whatever keepalive_timeout.
        ("grpc.keepalive_timeout_ms", int(config.keepalive_seconds * 1000)),
        ("grpc.http2.ping_timeout_ms", int(config.keepalive_seconds * 1000)),
        ("grpc.http2.max_pings_without_data", 0),
        # Without it a new channel shares the sockets and the back-off of the one before.
        ("grpc.use_local_subchannel_pool", 1),
        # etcd's own clients dial past proxies, too.
        ("grpc.enable_http_proxy", 0),
    ]
    if not endpoint.secure:
        return grpc.insecure_channel(endpoint.target, options=options)
    return grpc.secure_channel(endpoint.target, _credentials(config, endpoint), options=options)


def _credentials(config: EtcdConfig, endpoint: Endpoint) -> grpc.ChannelCredentials:
    """Read the certificate files; Python's ssl says what is wrong with them, gRPC does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    cacert = config.cacert or ssl.get_default_verify_paths().cafile
    try:
        if cacert is not None:
            context.load_verify_locations(cacert)
        if config.cert is not None and config.key is not None:
            context.load_cert_chain(config.cert, config.key, password=lambda: "")
        return grpc.ssl_channel_credentials(
            root_certificates=_content(cacert),
            private_key=_content(config.key),
            certificate_chain=_content(config.cert),
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        names = ", ".join(str(p) for p in (config.cacert, config.cert, config.key) if p)
        raise ConnectionLostError(
            f"the certificates cannot be used ({error})",
            where=endpoint.text,
            todo=f"check the PEM files {names}",
        ) from error


def _content(path: Path | str | None) -> bytes | None:
    return Path(path).read_bytes() if path is not None else None


def _stamps(config: EtcdConfig) -> tuple[tuple[int, ...], ...]:
    """Return what changes when the certificate files do, also behind a symbolic link."""
    found = []
    for path in (config.cacert, config.cert, config.key):
        try:
            status = path.stat() if path is not None else None
        except OSError:
            status = None
        found.append((status.st_mtime_ns, status.st_ino, status.st_size) if status else ())
    return tuple(found)
