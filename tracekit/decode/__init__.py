"""Bytes to typed rows: one file per format, tried in the order of ``DECODERS``."""

from __future__ import annotations

from tracekit.decode.audit import AuditDecoder
from tracekit.decode.etcd_get import EtcdGetDecoder
from tracekit.decode.etcd_get_plain import EtcdGetPlainDecoder
from tracekit.decode.etcd_snapshot import EtcdSnapshotDecoder
from tracekit.decode.etcd_watch import EtcdWatchDecoder
from tracekit.decode.json_shape import shape_fault
from tracekit.decode.klog import KlogDecoder
from tracekit.decode.klog_fields import parse_fields
from tracekit.decode.klog_json import JsonKlogDecoder
from tracekit.decode.kubectl_json import KubectlJsonDecoder, KubectlTextDecoder
from tracekit.decode.kubectl_yaml import KubectlYamlDecoder
from tracekit.decode.kubernetes import DecodedValue, decode_value, make_redactor
from tracekit.decode.pod_lists import named_pods
from tracekit.decode.wrapped_log import LooseLogDecoder, WrappedLogDecoder
from tracekit.errors import FormatError, UsageError
from tracekit.model.batches import Decoder

__all__ = [
    "DECODERS",
    "DecodedValue",
    "decode_value",
    "decoder_for",
    "make_redactor",
    "named_pods",
    "parse_fields",
    "shape_fault",
]

DECODERS: tuple[Decoder, ...] = (
    EtcdWatchDecoder(),
    EtcdSnapshotDecoder(),
    EtcdGetDecoder(),
    EtcdGetPlainDecoder(),
    AuditDecoder(),
    KubectlJsonDecoder(),
    KubectlYamlDecoder(),
    KubectlTextDecoder(),
    JsonKlogDecoder(),
    WrappedLogDecoder(),
    KlogDecoder(),
    LooseLogDecoder(),
)


def decoder_for(head: bytes, *, path: str, forced: str | None) -> Decoder:
    """Return the decoder of a source, told by its first bytes.

    Raises:
        UsageError: If the forced format does not exist.
        FormatError: If no decoder recognises the bytes.
    """
    known = ", ".join(d.name for d in DECODERS)
    if forced is not None:
        for decoder in DECODERS:
            if decoder.name == forced:
                return decoder
        raise UsageError(f"no format {forced!r}", todo=f"choose one of {known}")
    for decoder in DECODERS:
        if decoder.recognises(head):
            return decoder
    shown = head[:40].decode("utf-8", "backslashreplace").splitlines()
    raise FormatError(
        f"unknown format (it starts with {shown[0]!r})" if shown else "the file is empty",
        where=path,
        todo=f"known formats are {known}; force one with --format",
    )
