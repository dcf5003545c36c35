"""Live etcd behind TLS, passwords and several endpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.sources.certificates import Authority, KeyPair
from tests.sources.conftest import StartServer, StartTls
from tests.sources.etcd_server import EtcdServer, Writer, start_cluster
from tests.sources.follower import Follower
from tracekit.errors import SourceError, UsageError
from tracekit.model.live import Connected, Disconnected, EtcdConfig
from tracekit.sources.etcd_client import parse_endpoint
from tracekit.sources.etcd_follow import follow_etcd


def _error(config: EtcdConfig) -> str:
    with pytest.raises(SourceError) as caught:
        list(follow_etcd(config))
    return str(caught.value)


def test_client_certificate(
    start_tls: StartTls, authority: Authority, pair: KeyPair, each_binary: Path
) -> None:
    server, writer = start_tls(each_binary)
    writer.put("/registry/a", b"1")
    environ = {
        "ETCDCTL_ENDPOINTS": f"127.0.0.1:{server.port}",
        "ETCDCTL_CACERT": str(authority.cacert),
        "ETCDCTL_CERT": str(pair.cert),
        "ETCDCTL_KEY": str(pair.key),
    }
    with Follower(EtcdConfig.from_environment(environ, from_revision=1)) as follower:
        follower.wait_for(writer.put("/registry/b", b"2"))
    assert [c.value for c in follower.record.changes] == [b"1", b"2"]


def test_certificates_are_verified(
    start_tls: StartTls, authority: Authority, pair: KeyPair, tmp_path: Path
) -> None:
    server, writer = start_tls()
    writer.put("/registry/a", b"1")
    stranger = Authority(tmp_path / "stranger")
    good = {"endpoints": (server.url,), "cert": pair.cert, "key": pair.key}
    assert "check --cacert" in _error(EtcdConfig(**good, cacert=stranger.cacert))  # type: ignore[arg-type]
    assert "check --cacert" in _error(EtcdConfig(**good))  # type: ignore[arg-type]
    nameless = f"https://localhost:{server.port}"
    config = EtcdConfig(
        endpoints=(nameless,), cacert=authority.cacert, cert=pair.cert, key=pair.key
    )
    assert "names this host" in _error(config)
    writer.close()


def test_missing_and_wrong_client_certificates(
    start_tls: StartTls, authority: Authority, pair: KeyPair, tmp_path: Path
) -> None:
    server, writer = start_tls()
    writer.put("/registry/a", b"1")
    stranger = Authority(tmp_path / "stranger").issue("collector")
    good = {"endpoints": (server.url,), "cacert": authority.cacert}
    assert "give --cert and --key" in _error(EtcdConfig(**good))  # type: ignore[arg-type]
    wrong = _error(EtcdConfig(**good, cert=stranger.cert, key=stranger.key))  # type: ignore[arg-type]
    assert "check --cert" in wrong
    mixed = _error(EtcdConfig(**good, cert=pair.cert, key=stranger.key))  # type: ignore[arg-type]
    assert "KEY_VALUES_MISMATCH" in mixed
    absent = _error(EtcdConfig(**good, cert=tmp_path / "none", key=pair.key))  # type: ignore[arg-type]
    assert "No such file" in absent
    plain = _error(EtcdConfig(endpoints=(f"http://127.0.0.1:{server.port}",)))
    assert "https://" in plain


def test_tls_to_a_plain_server(server: EtcdServer) -> None:
    assert "http://" in _error(EtcdConfig(endpoints=(f"https://127.0.0.1:{server.port}",)))


def test_rotated_certificates_are_read_again(
    start_tls: StartTls, authority: Authority, pair: KeyPair, tmp_path: Path
) -> None:
    server, writer = start_tls()
    writer.put("/registry/a", b"1")
    cert, key = tmp_path / "client.pem", tmp_path / "client.key"
    shutil.copy(pair.cert, cert)
    shutil.copy(pair.key, key)
    renewed = authority.issue("renewed")
    config = EtcdConfig(endpoints=(server.url,), cacert=authority.cacert, cert=cert, key=key)
    with Follower(config) as follower:
        follower.wait_for(writer.put("/registry/b", b"2"))
        shutil.copy(renewed.cert, cert)  # half-way: certificate and key do not match
        follower.wait_for(writer.put("/registry/c", b"3"))
        shutil.copy(renewed.key, key)
        follower.wait(lambda r: r.count(Connected) == 2, "a connection with the new files")
        follower.wait_for(writer.put("/registry/d", b"4"))
    lost = [s for s in follower.record.steps if isinstance(s, Disconnected)]
    assert [s.reason for s in lost] == ["the certificate files changed"]
    assert {c.key for c in follower.record.changes} | {p.key for p in follower.record.pairs} == {
        f"/registry/{letter}" for letter in "abcd"
    }


def _with_users(server: EtcdServer) -> None:
    for command in (
        "user add root:secret", "user grant-role root root", "user add reader:word",
        "role add read", "role grant-permission read read --prefix=true /registry/",
        "user grant-role reader read", "user add nobody:word", "auth enable",
    ):  # fmt: skip
        server.ctl(*command.split())


def test_password_login_survives_a_restart(start_server: StartServer, each_binary: Path) -> None:
    server = start_server(each_binary)
    server.ctl("put", "/registry/a", "1")
    _with_users(server)
    put = ("--user", "root:secret", "put", "/registry/a")
    config = EtcdConfig.from_environment({}, endpoints=(server.url,), user="reader:word")
    with Follower(config) as follower:
        follower.wait(lambda r: r.resume is not None, "the list")
        server.ctl(*put, "2")
        follower.wait(lambda r: len(r.changes) == 1, "a change")
        server.kill()
        server.start()  # its tokens are gone with it
        server.ctl(*put, "3")
        follower.wait(lambda r: len(r.changes) == 2, "a change after a new login")
    assert [c.value for c in follower.record.changes] == [b"2", b"3"]
    url = (server.url,)
    assert "check --user" in _error(EtcdConfig(endpoints=url, user="reader", password="no"))
    assert "check --user" in _error(EtcdConfig(endpoints=url))
    assert "role grant-permission" in _error(
        EtcdConfig(endpoints=url, user="nobody", password="word")
    )


def test_password_for_a_server_that_wants_none(server: EtcdServer, writer: Writer) -> None:
    last = writer.put("/registry/a", b"1")
    config = EtcdConfig(endpoints=(server.url,), user="reader", password="word")
    with Follower(config) as follower:
        follower.wait_for(last)


def test_failover_to_the_next_endpoint(etcd_binary: Path, tmp_path: Path) -> None:
    members = start_cluster(etcd_binary, tmp_path, 3)
    try:
        first, second, third = members
        writer = Writer(f"127.0.0.1:{third.port}")
        writer.put("/registry/a", b"0")
        urls = (first.url, second.url)
        config = EtcdConfig(endpoints=urls, from_revision=1, keepalive_seconds=0.5, dial_seconds=2)
        with Follower(config) as follower:
            follower.wait_for(writer.put("/registry/a", b"1"))
            first.kill()
            follower.wait_for(writer.put("/registry/a", b"2"))
            first.start()
            second.pause()  # hangs: only keepalive can tell
            last = writer.put("/registry/a", b"3")
            follower.wait_for(last)
        endpoints = {s.endpoint for s in follower.record.steps if isinstance(s, Connected)}
        assert endpoints == {first.url, second.url}
        assert follower.record.truth() == third.history(last)
        writer.close()
    finally:
        for member in members:
            member.kill()


def test_environment_fills_what_is_not_given() -> None:
    environ = {
        "ETCDCTL_ENDPOINTS": "https://a:1, https://b:2",
        "ETCDCTL_USER": "root",
        "ETCDCTL_PASSWORD": "secret",
        "ETCDCTL_CACERT": "/ca.pem",
    }
    config = EtcdConfig.from_environment(environ, prefix="/openshift.io", cert=None)
    assert config.endpoints == ("https://a:1", "https://b:2")
    assert (config.user, config.password) == ("root", "secret")
    assert (config.cacert, config.cert, config.prefix) == (Path("/ca.pem"), None, "/openshift.io")
    assert "secret" not in repr(config)
    given = EtcdConfig.from_environment(environ, endpoints=("c:3",), user="other:word")
    assert (given.endpoints, given.user, given.password) == (("c:3",), "other", "word")


@pytest.mark.parametrize(
    ("environ", "fields", "says"),
    [
        ({}, {}, "--etcd"),
        ({"ETCDCTL_ENDPOINTS": "a", "ETCDCTL_INSECURE_SKIP_TLS_VERIFY": "true"}, {}, "--cacert"),
        ({"ETCDCTL_ENDPOINTS": "a", "ETCDCTL_DISCOVERY_SRV": "x"}, {}, "--etcd"),
        ({"ETCDCTL_ENDPOINTS": "a"}, {"cert": Path("c")}, "--key"),
        ({"ETCDCTL_ENDPOINTS": "a", "ETCDCTL_USER": "root"}, {}, "ETCDCTL_PASSWORD"),
        ({"ETCDCTL_ENDPOINTS": "a"}, {"from_revision": 0}, "from 1"),
    ],
)
def test_environment_that_makes_no_sense(
    environ: dict[str, str], fields: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        EtcdConfig.from_environment(environ, **fields)


@pytest.mark.parametrize(
    ("text", "secure", "target", "is_secure"),
    [
        ("https://etcd.local:2379", False, "etcd.local:2379", True),
        ("http://10.0.0.1", True, "10.0.0.1:2379", False),
        ("10.0.0.1:4001", True, "10.0.0.1:4001", True),
        ("localhost:1", False, "localhost:1", False),
        ("https://[::1]:2379/", False, "[::1]:2379", True),
    ],
)
def test_endpoint(text: str, secure: bool, target: str, is_secure: bool) -> None:
    endpoint = parse_endpoint(text, secure=secure)
    assert (endpoint.target, endpoint.secure) == (target, is_secure)


@pytest.mark.parametrize(
    "text", ["", "unix:///run/etcd", "https://a:b", "https://a/path", "ftp://a"]
)
def test_endpoint_that_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_endpoint(text, secure=False)
