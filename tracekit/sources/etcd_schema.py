"""The etcd v3 messages that a collector speaks, as data.

The wire forms are tables, turned into protobuf descriptors at run time in a pool of their
own: generated ``_pb2`` modules refuse every protobuf runtime but their own generation's, and
the default pool is shared with any other package that brings etcd's messages along.

Source: etcd ``api/etcdserverpb/rpc.proto``, ``api/mvccpb/kv.proto``; only the fields used here.
An enumeration is declared int32, which is the same on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

__all__ = [
    "AUTHENTICATE",
    "MESSAGES",
    "RANGE",
    "WATCH",
    "EventMessage",
    "HeaderMessage",
    "KeyValueMessage",
    "RangeMessage",
    "WatchMessage",
    "encode",
    "message_classes",
    "parser",
]

RANGE: Final = "/etcdserverpb.KV/Range"
WATCH: Final = "/etcdserverpb.Watch/Watch"
AUTHENTICATE: Final = "/etcdserverpb.Auth/Authenticate"

# message -> "name number type"; ``*`` marks a repeated field, a capital a message.
MESSAGES: Final[Mapping[str, Sequence[str]]] = {
    "ResponseHeader": (
        "cluster_id 1 uint64", "member_id 2 uint64", "revision 3 int64", "raft_term 4 uint64",
    ),
    "KeyValue": (
        "key 1 bytes", "create_revision 2 int64", "mod_revision 3 int64", "version 4 int64",
        "value 5 bytes", "lease 6 int64",
    ),
    "Event": ("type 1 int32", "kv 2 KeyValue", "prev_kv 3 KeyValue"),
    "RangeRequest": (
        "key 1 bytes", "range_end 2 bytes", "limit 3 int64", "revision 4 int64",
        "serializable 7 bool", "keys_only 8 bool", "count_only 9 bool",
    ),
    "RangeResponse": ("header 1 ResponseHeader", "kvs 2 *KeyValue", "more 3 bool", "count 4 int64"),
    "WatchCreateRequest": (
        "key 1 bytes", "range_end 2 bytes", "start_revision 3 int64", "progress_notify 4 bool",
        "prev_kv 6 bool", "watch_id 7 int64", "fragment 8 bool",
    ),
    "WatchRequest": ("create_request 1 WatchCreateRequest",),
    "WatchResponse": (
        "header 1 ResponseHeader", "watch_id 2 int64", "created 3 bool", "canceled 4 bool",
        "compact_revision 5 int64", "cancel_reason 6 string", "fragment 7 bool", "events 11 *Event",
    ),
    "AuthenticateRequest": ("name 1 string", "password 2 string"),
    "AuthenticateResponse": ("header 1 ResponseHeader", "token 2 string"),
}  # fmt: skip


class HeaderMessage(Protocol):
    """Head of each response."""

    cluster_id: int
    revision: int


class KeyValueMessage(Protocol):
    """A key with its value at one revision."""

    key: bytes
    create_revision: int
    mod_revision: int
    version: int
    value: bytes
    lease: int


class EventMessage(Protocol):
    """A change; ``type`` 1 is a delete."""

    type: int
    kv: KeyValueMessage
    prev_kv: KeyValueMessage

    def HasField(self, name: str) -> bool:  # noqa: N802 - protobuf's name
        """Tell whether a sub-message is there."""


class RangeMessage(Protocol):
    """Answer to a list."""

    header: HeaderMessage
    kvs: Sequence[KeyValueMessage]
    more: bool
    count: int


class WatchMessage(Protocol):
    """One response of a watch; with ``fragment`` the rest of it follows."""

    header: HeaderMessage
    created: bool
    canceled: bool
    compact_revision: int
    cancel_reason: str
    fragment: bool
    events: Sequence[EventMessage]


_SCALARS: Final = {
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
}


def message_classes(messages: Mapping[str, Sequence[str]]) -> dict[str, type[Message]]:
    """Make the classes of a table of messages, in a descriptor pool of their own."""
    file = descriptor_pb2.FileDescriptorProto(
        name="tracekit/etcd.proto", package="etcdserverpb", syntax="proto3"
    )
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields:
            _add_field(message, text)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"etcdserverpb.{name}"))
        for name in messages
    }


def _add_field(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    name, number, kind = text.split()
    field = message.field.add(name=name, number=int(number))
    repeated = kind.startswith("*")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    kind = kind.removeprefix("*")
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".etcdserverpb.{kind}"


@lru_cache(maxsize=1)
def _classes() -> dict[str, type[Message]]:
    return message_classes(MESSAGES)


def encode(name: str, /, **fields: object) -> bytes:
    """Serialize a request; a sub-message is given as a dict of its fields."""
    made: Callable[..., Message] = _classes()[name]
    return made(**fields).SerializeToString()


def parser(name: str) -> Callable[[bytes], object]:
    """Return the function that parses a message of a name."""
    return cast("Callable[[bytes], object]", _classes()[name].FromString)
