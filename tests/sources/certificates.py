"""A CA of the test's own, made with the openssl command."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Authority", "KeyPair"]


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A CA that issues certificates for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.cacert, self._key = folder / "ca.pem", folder / "ca.key"
        _openssl(
            "req", "-x509", *_NEW_KEY, "-keyout", str(self._key), "-out", str(self.cacert),
            "-subj", "/CN=test CA", "-days", "2",
        )  # fmt: skip

    def issue(self, name: str) -> KeyPair:
        """Make a certificate for server and client use."""
        pair = KeyPair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, extensions = self._folder / "request", self._folder / "extensions"
        extensions.write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth")
        _openssl(
            "req", *_NEW_KEY, "-keyout", str(pair.key), "-out", str(request), "-subj", f"/CN={name}"
        )
        _openssl(
            "x509", "-req", "-in", str(request), "-CA", str(self.cacert), "-CAkey", str(self._key),
            "-CAcreateserial", "-days", "2", "-extfile", str(extensions), "-out", str(pair.cert),
        )  # fmt: skip
        return pair


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
