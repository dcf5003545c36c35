"""The one schema: every table of the store, its columns, types, units and meanings.

Types are the portable ones that Delta readers agree on: ``string``, ``int64``,
``float64``, ``bool``, ``binary`` and ``timestamp`` (microseconds, UTC).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DERIVED", "RAW", "SCHEMA_VERSION", "TABLES", "Column", "ColumnType", "Table"]

SCHEMA_VERSION = 1

ColumnType = Literal["string", "int64", "float64", "bool", "binary", "timestamp"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, type, and its unit and meaning in words."""

    name: str
    type: ColumnType
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in order and its total sort order."""

    name: str
    columns: tuple[Column, ...]
    order_by: tuple[str, ...]


def _table(name: str, order_by: str, *columns: tuple[str, ColumnType, str]) -> Table:
    cluster = Column("cluster", "string", "name given with --cluster")
    return Table(name, (cluster, *(Column(*c) for c in columns)), ("cluster", *order_by.split()))


RAW: tuple[Table, ...] = (
    _table(
        "objects", "revision sub key",
        ("revision", "int64", "etcd mod_revision of the change"),
        ("sub", "int64", "place of the change inside its revision, from 0"),
        ("key", "string", "etcd key"),
        ("operation", "string", "PUT or DELETE"),
        ("version", "int64", "etcd version of the key; 1 created it, 0 deleted it"),
        ("create_revision", "int64", "revision that created the key; 0 when not told"),
        ("lease", "int64", "etcd lease id; 0 for none"),
        ("encoding", "string", "protobuf, json, cbor, encrypted, opaque, or none for a delete"),
        ("api_version", "string", "stored apiVersion, read from the value"),
        ("kind", "string", "kind, read from the value"),
        ("namespace", "string", "namespace, read from the value"),
        ("name", "string", "name, read from the value"),
        ("uid", "string", "uid, read from the value"),
        ("value", "binary", "the value as etcd had it, payloads redacted"),
        ("prev_value", "binary", "the value before, where the watch told it (--prev-kv)"),
        ("redacted", "bool", "a payload in value was replaced by a keyed hash"),
        ("source_id", "string", "sources.source_id"),
        ("record_no", "int64", "1-based line or record inside the source"),
    ),
    _table(
        "log_lines", "source_id record_no",
        ("source_id", "string", "sources.source_id"),
        ("record_no", "int64", "1-based line on which the record starts"),
        ("stamp_us", "int64", "header time in microseconds since 2000-01-01 in the log's own yearless clock: month, day and time in year 2000 + 4 * year_step, a leap year, so that 29 February has a place; null without header or real date"),
        ("severity", "string", "I, W, E or F; null without header"),
        ("thread", "int64", "thread id of the header (klog prints the process id)"),
        ("caller", "string", "file:line of the header"),
        ("message", "string", "the quoted message of a structured record, unquoted; else the text behind the header's ]"),
        ("structured", "bool", "the record is InfoS/ErrorS with key=value pairs"),
        ("raw", "string", "the whole record as it stood, continuation lines included, without the last newline"),
    ),
    _table(
        "sources", "source_id",
        ("source_id", "string", "stable id of a source: hash of its path as given"),
        ("path", "string", "path as given"),
        ("format", "string", "decoder that read it"),
        ("component", "string", "component that wrote a log, from --component, content or file name"),
        ("node", "string", "node of a log, from --node, content or file name"),
        ("records", "int64", "records read"),
        ("stored", "int64", "records stored"),
        ("duplicates", "int64", "records that the store already had"),
        ("first_revision", "int64", "lowest revision in the source"),
        ("last_revision", "int64", "highest revision in the source: the resume point"),
        ("cluster_uid", "string", "uid of the kube-system namespace, where the source has it"),
        ("etcd_cluster_id", "string", "etcd cluster id of the watch header"),
        ("modified_at", "timestamp", "file modification time; null for a stream"),
        ("log_year", "int64", "year given with --log-year; null when not given"),
        ("created_year", "int64", "year of the log's own preamble; null without one"),
        ("log_timezone", "string", "zone given with --log-timezone; null when not given"),
    ),
    _table(
        "diagnostics", "source_id code position detail",
        ("source_id", "string", "sources.source_id; empty for replay"),
        ("code", "string", "code of the closed list in model.diagnostics"),
        ("position", "int64", "line, revision or record number in the source; 0 when unknown"),
        ("detail", "string", "raw words that show the damage, shortened"),
    ),
    _table(
        "gaps", "from_revision source_id",
        ("source_id", "string", "sources.source_id; empty for replay"),
        ("from_revision", "int64", "first revision that may be missing"),
        ("to_revision", "int64", "last revision that may be missing; null when unknown"),
        ("cause", "string", "why"),
    ),
)

DERIVED: tuple[Table, ...] = (
    _table(
        "revision_times", "revision",
        ("revision", "int64", "etcd revision"),
        ("at", "timestamp", "estimated commit time"),
        ("at_certainty", "string", "observed, estimated or unknown"),
        ("at_error_seconds", "float64", "bound on the error, seconds"),
    ),
    _table(
        "log_clocks", "source_id year_step",
        ("source_id", "string", "sources.source_id"),
        ("year_step", "int64", "New Years passed since the start of the log: (year of stamp_us - 2000) / 4; below 0 for late lines of the year before"),
        ("year", "int64", "year of the records of this step"),
        ("utc_offset_seconds", "int64", "what to subtract from the header time to get UTC"),
        ("certainty", "string", "observed (told), estimated (inferred) or unknown (assumed)"),
        ("evidence", "string", "what year and zone rest on"),
    ),
    _table(
        "pod_states", "revision sub namespace pod",
        ("namespace", "string", "namespace"),
        ("pod", "string", "pod name"),
        ("uid", "string", "pod uid"),
        ("key", "string", "etcd key"),
        ("revision", "int64", "etcd revision"),
        ("sub", "int64", "place inside the revision"),
        ("version", "int64", "etcd version; 0 for a delete"),
        ("operation", "string", "PUT or DELETE"),
        ("stage", "string", "most advanced change of the revision"),
        ("node", "string", "spec.nodeName; null when not bound"),
        ("phase", "string", "status.phase"),
        ("writer", "string", "field manager of the change; null when not known"),
        ("changed", "string", "JSON list of the JSON pointers that changed, managedFields and heartbeats left out"),
        ("heartbeats", "string", "JSON list of the changed pointers that are heartbeats"),
        ("patch", "string", "RFC 6902 patch from the previous revision without managedFields; null when the previous state is not known"),
    ),
    _table(
        "pods", "namespace pod created_revision uid",
        ("namespace", "string", "namespace"),
        ("pod", "string", "pod name"),
        ("uid", "string", "pod uid"),
        ("key", "string", "etcd key"),
        ("workload", "string", "topmost known controller as Kind/name, else Pod/name"),
        ("owner_kind", "string", "kind of the direct controller; null for a bare pod"),
        ("owner_name", "string", "name of the direct controller"),
        ("owner_uid", "string", "uid of the direct controller"),
        ("scheduler_name", "string", "spec.schedulerName"),
        ("priority", "int64", "spec.priority; null when not set"),
        ("created_revision", "int64", "first revision of this uid in the record"),
        ("created_known", "bool", "the record has the creating write (version 1)"),
        ("bound_revision", "int64", "revision that set spec.nodeName"),
        ("node", "string", "spec.nodeName"),
        ("path", "string", "scheduler, preset or static; null when not bound"),
        ("started_revision", "int64", "first revision with phase Running or with a started container"),
        ("ready_revision", "int64", "first revision with condition Ready=True"),
        ("terminating_revision", "int64", "first revision with a deletionTimestamp"),
        ("terminal_revision", "int64", "first revision with phase Succeeded or Failed"),
        ("deleted_revision", "int64", "revision of the delete"),
        ("creation_timestamp", "string", "metadata.creationTimestamp, RFC 3339"),
        ("requests", "string", "JSON object: effective requests by the scheduler's rule; cpu in millicores, memory and storage in bytes, others counts"),
    ),
    _table(
        "attempts", "namespace pod at attempt_id",
        ("attempt_id", "string", "stable hash of cluster, uid and revision or time"),
        ("namespace", "string", "namespace"),
        ("pod", "string", "pod name"),
        ("uid", "string", "pod uid; null when only a log told it"),
        ("revision", "int64", "revision that wrote the verdict; null when nothing was written"),
        ("at", "timestamp", "time of the verdict"),
        ("at_certainty", "string", "observed (event or log), estimated (revision) or unknown"),
        ("at_error_seconds", "float64", "bound on the error, seconds"),
        ("verdict", "string", "bound, unschedulable, error or gated"),
        ("node", "string", "node of a bound verdict"),
        ("nodes_total", "int64", "N of 0/N nodes; null when not told"),
        ("nodes_evaluated", "int64", "evaluatedNodes of the log; null when not told"),
        ("nodes_feasible", "int64", "feasibleNodes of the log; null when not told"),
        ("message", "string", "the scheduler's words, from condition, log or event in this order"),
        ("sources", "string", "which of condition, binding, event, log told it, joined by comma"),
    ),
    _table(
        "attempt_reasons", "attempt_id ordinal",
        ("attempt_id", "string", "attempts.attempt_id"),
        ("ordinal", "int64", "place of the reason in the message, from 0"),
        ("origin", "string", "scheduler"),
        ("plugin", "string", "filter plugin the text belongs to; unknown when not in the catalogue"),
        ("reason", "string", "reason text as the scheduler wrote it"),
        ("nodes", "int64", "count as the scheduler wrote it; null when the text has none"),
    ),
    _table(
        "pending_spells", "namespace pod uid from_revision",
        ("namespace", "string", "namespace"),
        ("pod", "string", "pod name"),
        ("uid", "string", "pod uid"),
        ("from_revision", "int64", "revision that began the stretch"),
        ("to_revision", "int64", "revision that ended it; the last revision while open"),
        ("open", "bool", "it still waits at the last revision"),
        ("kind", "string", "gated, unschedulable, error, starting or not_tried"),
        ("cause", "string", "reason that blocks most nodes, or the kind"),
        ("nodes_blocked", "int64", "count of that reason; null when not told"),
    ),
    _table(
        "node_changes", "revision sub ordinal",
        ("node", "string", "node name"),
        ("zone", "string", "zone label; null without one"),
        ("revision", "int64", "etcd revision"),
        ("sub", "int64", "place inside the revision"),
        ("ordinal", "int64", "place among the changes of one write"),
        ("change", "string", "registered, cordoned, uncordoned, taint_added, taint_removed, ready, not_ready, labels, allocatable or deleted"),
        ("detail", "string", "what changed, in words"),
    ),
    _table(
        "node_spans", "node from_revision",
        ("node", "string", "node name"),
        ("zone", "string", "zone label; null without one"),
        ("from_revision", "int64", "first revision with this state"),
        ("to_revision", "int64", "first revision with another state, or last revision + 1"),
        ("ready", "bool", "condition Ready is True"),
        ("unschedulable", "bool", "spec.unschedulable"),
        ("open", "bool", "ready, not cordoned, no NoSchedule or NoExecute taint"),
        ("taints", "string", "JSON list of taints"),
        ("allocatable", "string", "JSON object: cpu in millicores, memory and storage in bytes, others counts"),
        ("labels", "string", "JSON object"),
    ),
    _table(
        "placements", "node from_revision uid",
        ("namespace", "string", "namespace"),
        ("pod", "string", "pod name"),
        ("uid", "string", "pod uid"),
        ("node", "string", "node"),
        ("from_revision", "int64", "first revision on which it counts on the node"),
        ("to_revision", "int64", "first revision on which it no longer counts, or last revision + 1"),
        ("requests", "string", "JSON object as in pods.requests"),
    ),
    _table(
        "usage_steps", "node resource from_revision",
        ("node", "string", "node name"),
        ("zone", "string", "zone label; null without one"),
        ("resource", "string", "cpu, memory, pods, ephemeral-storage or an extended resource"),
        ("from_revision", "int64", "first revision of the step"),
        ("to_revision", "int64", "first revision of the next step, or last revision + 1"),
        ("requested", "int64", "sum of requests on the node: millicores, bytes or counts"),
        ("allocatable", "int64", "what the node offers; null when it offers none or is not known"),
        ("ready", "bool", "the node is Ready"),
        ("open", "bool", "ready, not cordoned, no NoSchedule or NoExecute taint"),
        ("roomless", "bool", "the node lacks 100 m cpu, 256 MiB or a pod slot"),
    ),
    _table(
        "node_scores", "attempt_id node plugin origin",
        ("attempt_id", "string", "attempts.attempt_id"),
        ("node", "string", "node name"),
        ("plugin", "string", "score plugin; Total for the sum"),
        ("origin", "string", "scheduler"),
        ("score", "int64", "score after normalising and weighting, as the scheduler logged it"),
        ("weight", "int64", "weight of the plugin; null where the log does not tell it"),
    ),
    _table(
        "moves", "revision uid",
        ("namespace", "string", "namespace"),
        ("pod", "string", "pod name"),
        ("uid", "string", "pod uid"),
        ("node", "string", "node it left"),
        ("revision", "int64", "revision that decided it"),
        ("cause", "string", "see contract"),
        ("detail", "string", "the evidence in words"),
        ("actor", "string", "who did it, where known"),
        ("preemptor", "string", "namespace/name or uid of the preemptor"),
        ("replacement_uid", "string", "uid of the pod that took its place"),
        ("replacement_pod", "string", "its name"),
        ("replacement_node", "string", "its node"),
        ("certainty", "string", "observed, estimated or unknown"),
        ("evidence", "string", "JSON object"),
    ),
    _table(
        "workload_replicas", "namespace workload from_revision",
        ("namespace", "string", "namespace"),
        ("workload", "string", "Kind/name"),
        ("kind", "string", "kind of the workload"),
        ("replicas", "int64", "desired replicas; null when the kind has none"),
        ("from_revision", "int64", "first revision with this count"),
        ("to_revision", "int64", "first revision with another count, or last revision + 1"),
    ),
    _table(
        "event_occurrences", "revision sub",
        ("revision", "int64", "etcd revision of the write that told it"),
        ("sub", "int64", "place inside the revision"),
        ("namespace", "string", "namespace of the object the event is about"),
        ("kind", "string", "its kind"),
        ("name", "string", "its name"),
        ("uid", "string", "its uid"),
        ("regarding_revision", "int64", "its resourceVersion when the event was written; null when not told"),
        ("reason", "string", "event reason"),
        ("type", "string", "Normal or Warning"),
        ("message", "string", "message or note"),
        ("at", "timestamp", "time of this occurrence; null when the event has none"),
        ("at_error_seconds", "float64", "0 for microsecond times, 1 for second times"),
        ("count", "int64", "occurrences so far, as the event counts"),
        ("source", "string", "reporting component"),
        ("related", "string", "JSON object of the related reference; null without one"),
        ("event_name", "string", "name of the Event object"),
        ("event_uid", "string", "uid of the Event object"),
    ),
    _table(
        "replay_state", "fingerprint",
        ("fingerprint", "string", "hash of the raw table versions the derived rows were built from"),
        ("first_revision", "int64", "lowest revision in the record"),
        ("last_revision", "int64", "highest revision in the record"),
    ),
)

TABLES: dict[str, Table] = {t.name: t for t in (*RAW, *DERIVED)}
