"""A TCP relay between a client and a server that a test can cut."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Final

__all__ = ["Relay"]

_BLOCK: Final = 1 << 16


class Relay:
    """Forwards bytes both ways; ``cut`` resets every connection that goes through it."""

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self.is_refusing = False
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Address of the relay."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> int:
        """Reset all connections; return how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                _reset(end)
        return len(pairs)

    def close(self) -> None:
        """Cut everything and listen no more."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                _reset(client)
                continue
            if self.is_refusing:
                _reset(client)
                server.close()
                continue
            self.connections += 1
            with self._lock:
                self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(_BLOCK):
                sink.sendall(data)
        except OSError:
            pass
        _reset(source)
        _reset(sink)


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    end.close()
