"""Damage as data: the closed list of diagnostic codes and the row that carries one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CODES", "Code", "Diagnostic", "Severity"]


class Severity(StrEnum):
    """How much a diagnostic costs the reader."""

    INFO = "INFO"
    DATA_LOSS = "DATA_LOSS"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One member of the closed list: what it means and what helps."""

    code: str
    severity: Severity
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One piece of damage found in one source.

    Attributes:
        code: A key of ``CODES``.
        position: 1-based line, revision or record number inside the source; 0 when unknown.
        detail: The raw words or bytes (shortened) that show the damage.
    """

    code: str
    position: int
    detail: str


def _codes(*codes: Code) -> dict[str, Code]:
    return {c.code: c for c in codes}


_I, _L, _E = Severity.INFO, Severity.DATA_LOSS, Severity.ERROR

CODES: dict[str, Code] = _codes(
    Code(code="UNKNOWN_FORMAT", severity=_E, meaning="a file in a folder is in no format tracekit reads",
         remedy="name its format with --format, or leave it out"),
    Code(code="WATCH_LINE_CUT", severity=_L, meaning="a watch line ends in the middle",
         remedy="collect the rest of the recording; the line is read when its other half arrives whole"),
    Code(code="WATCH_LINE_UNREADABLE", severity=_L, meaning="a watch line is not JSON of the expected shape",
         remedy="look at the line; record again with etcdctl watch -w json"),
    Code(code="WATCH_CANCELED", severity=_L, meaning="etcd ended the watch",
         remedy="record again from the last revision in the store"),
    Code(code="WATCH_COMPACTED", severity=_L, meaning="etcd had compacted revisions before they were read",
         remedy="nothing brings them back; collect a snapshot of before, if there is one"),
    Code(code="VALUE_ENCRYPTED", severity=_L, meaning="values are encrypted at rest and kept opaque",
         remedy="collect from the Kubernetes API instead, which decrypts them"),
    Code(code="VALUE_CBOR", severity=_L, meaning="values are CBOR and kept opaque",
         remedy="collect from the Kubernetes API instead"),
    Code(code="VALUE_UNREADABLE", severity=_L, meaning="a stored value is damaged, misshapen, or of no known encoding",
         remedy="the raw bytes are kept; look at them with tracekit get"),
    Code(code="VALUE_UNKNOWN_KIND", severity=_I, meaning="a protobuf value of a kind without a schema; only its metadata is read",
         remedy="the raw bytes are kept and are read once tracekit knows the kind"),
    Code(code="VALUE_UNKNOWN_FIELD", severity=_I, meaning="a protobuf value has fields of a newer Kubernetes than tracekit knows",
         remedy="the raw bytes are kept; update tracekit to see them"),
    Code(code="SNAPSHOT_CHECKSUM", severity=_L, meaning="the SHA-256 at the end of an etcd snapshot is not that of its bytes",
         remedy="copy the snapshot again; what was read may lack rows or have wrong ones"),
    Code(code="SNAPSHOT_PAGE_DAMAGED", severity=_L, meaning="a page of an etcd snapshot is broken or missing, the others are read",
         remedy="copy the snapshot again, or save a new one"),
    Code(code="SNAPSHOT_RECORD_UNREADABLE", severity=_L, meaning="a record of an etcd snapshot is not a key with its value",
         remedy="copy the snapshot again, or save a new one"),
    Code(code="GET_CUT", severity=_L, meaning="an etcdctl get ends in the middle",
         remedy="copy the file again; the keys before the cut are read"),
    Code(code="GET_RECORD_UNREADABLE", severity=_L, meaning="a part of an etcdctl get is not JSON of the expected shape",
         remedy="look at it; get again with etcdctl get --prefix -w json"),
    Code(code="GET_WITHOUT_VALUES", severity=_L, meaning="an etcdctl get has keys without values, which are left out",
         remedy="get again without --keys-only"),
    Code(code="GET_LIMITED", severity=_L, meaning="an etcdctl get stopped before the last key",
         remedy="get again without --limit"),
    Code(code="DELETE_WITHOUT_STATE", severity=_I, meaning="an object was deleted whose earlier state is not in the record",
         remedy="record from an earlier revision, or with --prev-kv"),
    Code(code="DELETE_UNSEEN", severity=_I, meaning="an object vanished in a hole of the record; its delete has no true revision or time",
         remedy="nothing to do; its row stands at the end of the hole"),
    Code(code="LOG_LINE_UNSTRUCTURED", severity=_I, meaning="text that is not klog, kept as it is",
         remedy="nothing to do; it is queryable as raw"),
    Code(code="LOG_RECORD_ORPHAN", severity=_L, meaning="a log starts in the middle of a record",
         remedy="collect the piece before it in the same command"),
    Code(code="LOG_RECORD_CUT", severity=_L, meaning="a log ends in the middle of a record",
         remedy="collect the piece after it in the same command"),
    Code(code="LOG_WRAPPER_DAMAGED", severity=_L, meaning="the wrapping of a log line is cut or broken; its text is kept",
         remedy="compare with the original file"),
    Code(code="EVENT_LOST", severity=_I, meaning="the API server refused an event, only the log has it",
         remedy="nothing to do; what the event said is in events"),
    Code(code="LOG_NOT_UTF8", severity=_L, meaning="bytes that are not UTF-8, replaced by U+FFFD",
         remedy="compare with the original file"),
    Code(code="LOG_CLOCK_ASSUMED", severity=_I, meaning="the year or zone of a log is assumed, not evidenced",
         remedy="give --log-year and --log-timezone"),
    Code(code="SOURCE_CUT", severity=_L, meaning="a compressed source ends early or is corrupt; what came before is kept",
         remedy="copy the file again"),
    Code(code="GET_WITHOUT_REVISIONS", severity=_I, meaning="an etcdctl get without -w json tells no revisions, so its states have no place in time",
         remedy="get again with etcdctl get --prefix -w json"),
    Code(code="OBJECT_CUT", severity=_L, meaning="an object or list that kubectl printed ends in the middle",
         remedy="copy the file again; what stands whole before the cut is read"),
    Code(code="OBJECT_UNREADABLE", severity=_L, meaning="an object that kubectl printed is not JSON or YAML of the expected shape",
         remedy="look at it; get it again with kubectl get -o json"),
    Code(code="OBJECT_UNKNOWN", severity=_I, meaning="JSON or YAML that is no Kubernetes object with a name, and tells no condition",
         remedy="nothing to do, or collect the whole object"),
    Code(code="API_REFUSED", severity=_L, meaning="the API server ended a list or watch with an error",
         remedy="record again from the last revision in the store"),
    Code(code="TEXT_UNKNOWN", severity=_I, meaning="text that is neither table, event nor known message",
         remedy="nothing to do; the words are in the diagnostic"),
    Code(code="AUDIT_LINE_CUT", severity=_L, meaning="an audit log ends in the middle of a record",
         remedy="collect the piece after it in the same command"),
    Code(code="AUDIT_LINE_UNREADABLE", severity=_L, meaning="a line of an audit log is not an audit event",
         remedy="look at the line in the original file"),
    Code(code="ARCHIVE_LIMIT", severity=_L, meaning="an archive holds more than tracekit unpacks, as a bomb would; the rest is left out",
         remedy="unpack it yourself and collect the folder"),
    Code(code="ARCHIVE_MEMBER_REFUSED", severity=_I, meaning="a member of an archive is no file: links are not followed, devices not opened",
         remedy="nothing to do; what a link points to is collected where the archive has it"),
    Code(code="ARCHIVE_CUT", severity=_L, meaning="an archive ends early or is broken; the members before are read",
         remedy="copy the archive again"),
    Code(code="MESSAGE_UNKNOWN", severity=_I, meaning="a scheduler message with a reason tracekit does not know, kept as unknown",
         remedy="nothing to do; the raw words are in attempt_reasons"),
)
