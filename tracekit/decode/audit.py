"""Audit logs of the API server: one request a line, at any level, its stages merged.

A request is logged when it arrives and when it is answered, a watch also when it begins.
The later stage knows all that the earlier one did, so it takes its place.

Source: apiserver ``pkg/apis/audit/v1`` types.go; kube-apiserver ``--audit-log-path``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import orjson
import polars as pl

from tracekit.decode.line_chunks import line_chunks
from tracekit.model.batches import Batch, Chunk, SourceContext
from tracekit.model.diagnostics import Diagnostic

__all__ = ["AuditDecoder", "AuditSession"]

_BOM: Final = b"\xef\xbb\xbf"
_AUDIT: Final = re.compile(
    rb'"apiVersion": ?"audit\.k8s\.io/v1|"auditID"'
    rb'|"stage": ?"(?:RequestReceived|Response\w+|Panic)"'
)
_STAGES: Final = {"RequestReceived": 0, "ResponseStarted": 1, "ResponseComplete": 2, "Panic": 2}
_SECRET: Final = frozenset({"secrets", "configmaps"})
_TOKENS: Final = frozenset({"token", "tokenreviews", "tokenrequests", "certificatesigningrequests"})
_GROUP_VERSION: Final = ("apiGroup", "apiVersion")
_BODIES: Final = ("requestObject", "responseObject")
_HELD: Final = 100_000  # requests without an answer that are kept in mind
_DETAIL: Final = 200
_SCHEMA: Final[dict[str, pl.DataType]] = {
    "audit_id": pl.String(),
    "stage": pl.String(),
    "level": pl.String(),
    "requested_at": pl.Datetime("us", "UTC"),
    "completed_at": pl.Datetime("us", "UTC"),
    "user": pl.String(),
    "agent": pl.String(),
    "verb": pl.String(),
    "resource": pl.String(),
    "subresource": pl.String(),
    "api_version": pl.String(),
    "namespace": pl.String(),
    "name": pl.String(),
    "uid": pl.String(),
    "node": pl.String(),
    "revision": pl.Int64(),
    "status": pl.Int64(),
    "status_reason": pl.String(),
    "raw": pl.String(),
    "record_no": pl.Int64(),
}
_Object = Mapping[str, Any]
_Row = dict[str, Any]


class AuditDecoder:
    """Audit events, one JSON object a line."""

    name = "audit"

    def recognises(self, head: bytes) -> bool:
        """Tell whether the first whole line is an audit event."""
        for line in head.removeprefix(_BOM).split(b"\n", 20)[:20]:
            if line.strip():
                return line.lstrip()[:1] == b"{" and _AUDIT.search(line[:20_000]) is not None
        return False

    def open(self, context: SourceContext) -> AuditSession:
        """Begin a log."""
        return AuditSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a line that was cut between two pieces."""
        return 0 if tail.endswith(b"\n") else head.find(b"\n") + 1 or None


class AuditSession:
    """One log; requests that wait for their answer are held until it comes."""

    parallel = False

    def __init__(self, context: SourceContext) -> None:
        self._redact = context.redact
        self._waiting: dict[str, _Row] = {}

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut at line ends."""
        return line_chunks(stream)

    def parse(self, chunk: Chunk) -> Batch:
        """Decode the records of a chunk; one row a request that is over, or never will be."""
        rows: list[_Row] = []
        notes: list[Diagnostic] = []
        records = 0
        data = chunk.data.removeprefix(_BOM) if chunk.record_no == 1 else chunk.data
        for number, line in enumerate(data.split(b"\n"), chunk.record_no):
            if not line.strip():
                continue
            try:
                events = _events(orjson.loads(line))
            except ValueError as error:
                cut = chunk.last and not line.rstrip().endswith(b"}")
                code = "AUDIT_LINE_CUT" if cut else "AUDIT_LINE_UNREADABLE"
                notes.append(Diagnostic(code=code, position=number, detail=str(error)[:_DETAIL]))
                continue
            records += len(events)
            for event in events:
                rows += self._merge(self._row(event, line, number))
        if chunk.last:
            rows += self._waiting.values()
            self._waiting = {}
        columns = {name: [row[name] for row in rows] for name in _SCHEMA}
        frame = pl.DataFrame(columns, schema=_SCHEMA)
        return Batch(table="api_requests", frame=frame, records=records, diagnostics=notes)

    def facts(self) -> dict[str, str | int | None]:
        """Return that the API server wrote it."""
        return {"component": "kube-apiserver"}

    def _merge(self, row: _Row) -> list[_Row]:
        """Return the rows that are complete now: a later stage takes an earlier one's place."""
        name = row["audit_id"]
        if not name:
            return [row]
        before = self._waiting.get(name)
        stages = [_STAGES.get(r["stage"], 2) if r else -1 for r in (before, row)]
        if before is not None and stages[0] >= stages[1]:
            return []
        if stages[1] == _STAGES["ResponseComplete"]:
            self._waiting.pop(name, None)
            return [row]
        self._waiting[name] = row
        if len(self._waiting) <= _HELD:
            return []
        return [self._waiting.pop(next(iter(self._waiting)))]

    def _row(self, event: _Object, line: bytes, number: int) -> _Row:
        about, status = _part(event, "objectRef"), _part(event, "responseStatus")
        asked, answered = _part(event, "requestObject"), _part(event, "responseObject")
        code = status.get("code")
        stage = _text(event, "stage")
        ended = _instant(event.get("stageTimestamp"))
        return {
            "audit_id": _text(event, "auditID"),
            "stage": stage,
            "level": _text(event, "level"),
            "requested_at": _instant(event.get("requestReceivedTimestamp")),
            "completed_at": ended if stage != "RequestReceived" else None,
            "user": _text(_part(event, "user"), "username"),
            "agent": _text(event, "userAgent"),
            "verb": _text(event, "verb"),
            "resource": _text(about, "resource"),
            "subresource": _text(about, "subresource"),
            "api_version": "/".join(_text(about, n) for n in _GROUP_VERSION if _text(about, n)),
            "namespace": _text(about, "namespace"),
            "name": _text(about, "name") or _named(answered) or _named(asked),
            "uid": _text(about, "uid") or _text(_part(answered, "metadata"), "uid")
            or _text(_part(asked, "metadata"), "uid"),
            "node": _node(about, asked, answered),
            "revision": _revision(answered),
            "status": code if type(code) is int else None,
            "status_reason": _text(status, "reason") or None,
            "raw": self._raw(event, line).decode("utf-8", "replace"),
            "record_no": number,
        }  # fmt: skip

    def _raw(self, event: _Object, line: bytes) -> bytes:
        """Return the record with the payloads of Secrets, ConfigMaps and tokens replaced."""
        bodies = [name for name in _BODIES if isinstance(event.get(name), (dict, list))]
        if self._redact is None:
            return line.strip()
        about = _part(event, "objectRef")
        secret = about.get("resource") in _SECRET
        token = about.get("subresource") in _TOKENS or about.get("resource") in _TOKENS
        if not bodies or not (secret or token or b"last-applied-configuration" in line):
            return line.strip()
        hidden = {n: self._hidden(event[n], secret=secret, token=token) for n in bodies}
        return orjson.dumps({**event, **hidden})

    def _hidden(self, body: Any, *, secret: bool, token: bool) -> Any:
        """Return a body without its payloads; one of another shape is replaced as a whole."""
        assert self._redact is not None
        kind = body.get("kind") if isinstance(body, dict) else None
        if kind == "Status":
            return body
        if token or (secret and kind not in ("Secret", "ConfigMap", "SecretList", "ConfigMapList")):
            wrapped = {"apiVersion": "v1", "kind": "Secret", "stringData": {"body": body}}
            value, _ = self._redact("Secret", orjson.dumps(wrapped), "json")
            return orjson.loads(value)["stringData"]["body"]
        if not isinstance(body, dict):
            return body
        if secret and kind and kind.endswith("List"):
            owner = {"apiVersion": body.get("apiVersion"), "kind": kind.removesuffix("List")}
            items = [{**owner, **i} for i in body.get("items") or () if isinstance(i, dict)]
            return {**body, "items": [self._hidden(i, secret=True, token=False) for i in items]}
        value, _ = self._redact(str(kind or ""), orjson.dumps(body), "json")
        return _loads(value)


def _events(value: Any) -> list[_Object]:
    """Return the audit events of a line: one, or a webhook's EventList.

    Raises:
        ValueError: If it is neither.
    """
    if isinstance(value, dict) and value.get("kind") == "EventList":
        return [item for item in value.get("items") or () if isinstance(item, dict)]
    if not isinstance(value, dict) or not ("auditID" in value or "stage" in value):
        raise ValueError("it is no audit event")
    return [value]


def _loads(value: bytes) -> Any:
    """Return redacted JSON; a body that could not be read is a marker, which is text."""
    return orjson.loads(value) if value[:1] == b"{" else value.decode("ascii", "replace")


def _node(about: _Object, asked: _Object, answered: _Object) -> str | None:
    """Return the node of a binding, else of the pod that the answer shows."""
    target = _part(asked, "target")
    if about.get("subresource") == "binding":
        return _text(target, "name") or None
    return _text(_part(answered, "spec"), "nodeName") or None


def _named(body: _Object) -> str:
    """Return the name in a body; a create with generateName has it in the answer only."""
    return _text(_part(body, "metadata"), "name")


def _revision(body: _Object) -> int | None:
    told = _text(_part(body, "metadata"), "resourceVersion")
    return int(told) if told.isascii() and told.isdecimal() and len(told) < 19 else None


def _part(value: _Object, name: str) -> _Object:
    part = value.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: _Object, name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def _instant(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
