"""FailedScheduling messages of every Kubernetes version, taken apart into reasons.

The same text stands in a pod's PodScheduled condition, in the event and in the scheduler's log.
Its frame changed over the years (``Shape``); the reasons keep the scheduler's own words, order
and counts. What a text belongs to stands in ``reason_catalogue.tsv``; a text without an entry
there keeps its words and gets the plugin ``unknown``. Nothing here raises on any text.

A count says on how many nodes a reason stood, but counts of one message may exceed the number
of nodes (one node can lack several resources) or fall short of it (nodes never looked at).

Source: FitError.Error() in pkg/scheduler/core/generic_scheduler.go (to 1.18) and
pkg/scheduler/framework/types.go (1.19 on); truncateMessage in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import accumulate
from typing import Literal

__all__ = [
    "FILTER_ORDER",
    "ParsedReason",
    "ParsedVerdict",
    "Shape",
    "parse_verdict",
    "plugin_of",
]

Shape = Literal[
    "counted",  # 0/N nodes are available: C REASON, ... (1.9 on)
    "predicates",  # No nodes are available that match ... predicates:: REASON (C), ... (1.7, 1.8)
    "fit-summary",  # ... fit failure summary on nodes : REASON (C), ... (1.5, 1.6)
    "fit-failure",  # one line per node: fit failure on node (N): REASON (1.4)
    "no-nodes",  # no nodes available to schedule pods
    "plugin-error",  # running PreBind plugin "P": ...; the cycle failed, no node was refused
    "autoscaler",  # pod didn't trigger scale-up: C REASON, ...; C counts node groups, not nodes
    "bare",  # any other text
    "empty",
]

UNKNOWN = "unknown"

FILTER_ORDER: tuple[str, ...] = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
)
"""Filter plugins in the order the default profile runs them; a node stops at the first refusal."""

_POINTS = {p.lower(): p for p in ("PreFilter", "Filter", "PostFilter", "PreScore", "Score")} | {
    p.lower(): p for p in ("Reserve", "Permit", "WaitOnPermit", "PreBind", "Bind", "PostBind")
}

# Nine digits at most: a longer run of digits in hostile text is no count of nodes.
_FRAME = re.compile(r"0/([0-9]{1,9}) nodes are available:")
_COUNT = re.compile(r"([0-9]{1,9}) (.+)", re.DOTALL)
_NEXT_REASON = re.compile(r", (?=[0-9]{1,9} )")
_SENTENCE_END = re.compile(r"\. ")
_BRACKET = re.compile(r"[(){}\[\]]")
_OPENER = {")": "(", "}": "{", "]": "["}
_PREEMPTION = re.compile(r"(?:^|(?<=[\s.,]))preemption:\s*")
_AFTER_PREEMPTION = re.compile(r"\.,\s+(?=\D)")
_PREDICATES = re.compile(
    r"No nodes are available that match all of the (?:following )?predicates:+"
)
_FIT_SUMMARY = re.compile(r"fit failure summary on nodes\s*:")
_FIT_FAILURE = re.compile(r"fit failure on node \(([^)]*)\): *([^\r\n]*)")
_COUNT_LAST = re.compile(r"(.+) \(([0-9]{1,9})\)", re.DOTALL)
_AUTOSCALER = re.compile(r"didn't trigger scale-up(?: \([^)]*\))?:")


@dataclass(frozen=True, slots=True)
class ParsedReason:
    """One reason of a message.

    Args:
        plugin: Plugin the text belongs to, by the catalogue; ``unknown`` when it is in no entry.
        reason: The scheduler's own words.
        nodes: Count as written; None where the text has none.
    """

    plugin: str
    reason: str
    nodes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedVerdict:
    """One FailedScheduling message, taken apart.

    Args:
        shape: Family of the frame the text stands in.
        nodes_total: N of ``0/N nodes``; the nodes listed in ``fit-failure``; None when not told.
        reasons: Reasons of the first half, in the order of the message.
        prefilter: PreFilter refused the pod: one text without a count, true of all nodes.
        preemption: Raw words after ``preemption:``; empty when there are none.
        preemption_nodes: N of the nested ``0/N nodes``; may differ from ``nodes_total`` (to 1.31).
        preemption_reasons: Reasons of the preemption half; never part of ``reasons``.
        postfilter: Words of other PostFilter plugins; empty when there are none.
        truncated: The text was cut, so counts are lower bounds; a reason cut in two is left out.
        per_node: (node, reason) pairs, where the text names nodes (``fit-failure``).
        point: Extension point that failed (``plugin-error``); else empty.
    """

    shape: Shape
    nodes_total: int | None = None
    reasons: tuple[ParsedReason, ...] = ()
    prefilter: bool = False
    preemption: str = ""
    preemption_nodes: int | None = None
    preemption_reasons: tuple[ParsedReason, ...] = ()
    postfilter: str = ""
    truncated: bool = False
    per_node: tuple[tuple[str, str], ...] = ()
    point: str = ""


@dataclass(frozen=True, slots=True)
class _Owner:
    plugin: str
    point: str
    failed_at: str = ""


def parse_verdict(message: str) -> ParsedVerdict:
    """Take a FailedScheduling message apart.

    Args:
        message: The text as condition, event or ``err=`` field has it; words around the frame (a
            table row, a log line) are skipped.

    Returns:
        The verdict; a text in no known frame gives one reason with its raw words.

    Source: facts/formats.md §3.1; FitError.Error() of 1.4 to 1.36.
    """
    text = message.strip()
    for parse in (_parse_counted, _parse_summaries, _parse_fit_failures, _parse_autoscaler):
        verdict = parse(text)
        if verdict is not None:
            return verdict
    return _parse_bare(text)


def plugin_of(reason: str) -> str:
    """Name the plugin a reason belongs to; ``unknown`` when the catalogue does not have the text.

    Source: reason_catalogue.tsv beside this module.
    """
    owner = _owner_of(reason)
    if owner is not None:
        return owner.plugin
    # 1.16 joined the statuses of one node into one reason before it counted them.
    first, *others = reason.split(", ")
    owner = _owner_of(first)
    joined = owner is not None and all(_owner_of(other) is not None for other in others)
    return owner.plugin if owner is not None and joined else UNKNOWN


def _parse_counted(text: str) -> ParsedVerdict | None:
    frame = _FRAME.search(text)
    if frame is None:
        return None
    body, truncated = _frame_body(text[frame.end() :])
    head, preemption = _split_preemption(body)
    first, before = _split_postfilter(head)
    nested, after = _split_after_preemption(preemption)
    cut_in_first = truncated and not (preemption or before)
    preemption_nodes, preemption_reasons = _preemption_half(nested, truncated)
    return ParsedVerdict(
        shape="counted",
        nodes_total=int(frame[1]),
        reasons=_counted_reasons(first, drop_last=cut_in_first),
        prefilter=bool(first) and _COUNT.match(first) is None,
        preemption=preemption,
        preemption_nodes=preemption_nodes,
        preemption_reasons=preemption_reasons,
        postfilter=", ".join(part for part in (before, after) if part),
        truncated=truncated,
    )


def _parse_summaries(text: str) -> ParsedVerdict | None:
    shape: Shape = "predicates"
    frame = _PREDICATES.search(text)
    if frame is None:
        shape, frame = "fit-summary", _FIT_SUMMARY.search(text)
    if frame is None:
        return None
    body, truncated = _frame_body(text[frame.end() :])
    pieces = [p for p in re.split(r"(?<=[0-9]\)), ", _without_full_stop(body)) if p]
    if truncated and len(pieces) > 1:
        pieces.pop()
    return ParsedVerdict(
        shape=shape, reasons=tuple(_count_last(piece) for piece in pieces), truncated=truncated
    )


def _count_last(piece: str) -> ParsedReason:
    match = _COUNT_LAST.fullmatch(piece)
    if match is None:
        return ParsedReason(plugin_of(piece), piece, None)
    return ParsedReason(plugin_of(match[1]), match[1], int(match[2]))


def _parse_fit_failures(text: str) -> ParsedVerdict | None:
    found = ((m[1], m[2].strip()) for m in _FIT_FAILURE.finditer(text))
    per_node = tuple((node, reason) for node, reason in found if reason)
    if not per_node:
        return None
    counts: dict[str, int] = {}
    for _, reason in per_node:
        counts[reason] = counts.get(reason, 0) + 1
    return ParsedVerdict(
        shape="fit-failure",
        nodes_total=len({node for node, _ in per_node}),
        reasons=tuple(ParsedReason(plugin_of(r), r, n) for r, n in counts.items()),
        per_node=per_node,
    )


def _parse_autoscaler(text: str) -> ParsedVerdict | None:
    frame = _AUTOSCALER.search(text)
    if frame is None:
        return None
    body, truncated = _frame_body(text[frame.end() :])
    reasons = _counted_reasons(_without_full_stop(body), drop_last=truncated)
    return ParsedVerdict(shape="autoscaler", reasons=reasons, truncated=truncated)


def _parse_bare(text: str) -> ParsedVerdict:
    if not text:
        return ParsedVerdict(shape="empty")
    owner = _owner_of(text) or _owner_of(text.removesuffix("."))
    plugin = plugin_of(text) if owner is None else owner.plugin
    shape: Shape = "bare"
    if owner is not None and owner.point == "error":
        shape = "plugin-error"
    elif text.startswith("no nodes available to schedule pods"):
        shape = "no-nodes"
    return ParsedVerdict(
        shape=shape,
        reasons=(ParsedReason(plugin, text, None),),
        truncated=text.endswith(" ..."),
        point=owner.failed_at if owner is not None else "",
    )


def _frame_body(rest: str) -> tuple[str, bool]:
    """Unfold what follows a frame and take off what the place it was quoted in put behind it."""
    body = " ".join(line.strip() for line in rest.split("\n")).strip()
    # Event texts are cut at 1024 bytes; the suffix is all that tells.
    truncated = body.endswith(" ...")
    if truncated:
        return body.removesuffix("...").rstrip(), True
    for log_tail in ("; waiting", "; retrying", ";"):
        body = body.removesuffix(log_tail)
    if body.count('"') % 2:
        body = body.removesuffix('"')
    if body.count(")") > body.count("("):
        body = body.removesuffix(")")
    return body, False


def _split_preemption(body: str) -> tuple[str, str]:
    match = _PREEMPTION.search(body)
    if match is None:
        return body, ""
    return body[: match.start()].rstrip(), body[match.end() :]


def _split_postfilter(head: str) -> tuple[str, str]:
    """Split the first half from PostFilter texts behind it (1.24 on: ``REASONS. TEXT``).

    A free-text reason may itself hold ``. ``, so a cut needs a ground: what follows is a known
    PostFilter text, or a comma joins it to ``preemption:``, or a known reason stands before it.
    """
    joined = head.endswith(",")
    head = head.removesuffix(",")
    start = _last_reason_start(head)
    cuts = [m for m in _outside_brackets(_SENTENCE_END, head) if m.start() >= start]
    if len(cuts) > 8:  # a text of many sentences: the boundary is one of the outer ones
        cuts = cuts[:4] + cuts[-4:]
    for cut in cuts:
        if _is_postfilter(head[cut.end() :]):
            return _cut_postfilter(head, cut)
    if joined and cuts:
        return _cut_postfilter(head, cuts[-1])
    for cut in cuts:
        if plugin_of(_words(head[start : cut.start()])) != UNKNOWN:
            return _cut_postfilter(head, cut)
    return ("", head) if joined and _is_postfilter(head) else (_without_full_stop(head), "")


def _cut_postfilter(head: str, cut: re.Match[str]) -> tuple[str, str]:
    return head[: cut.start()], _without_full_stop(head[cut.end() :])


def _is_postfilter(text: str) -> bool:
    owners = (_owner_of(part) for part in _without_full_stop(text).split(", "))
    return all(owner is not None and owner.point == "postfilter" for owner in owners)


def _split_after_preemption(tail: str) -> tuple[str, str]:
    """Split PostFilter texts joined behind the preemption sentence from it."""
    match = _AFTER_PREEMPTION.search(tail)
    if match is None:
        return tail, ""
    return tail[: match.start()], _without_full_stop(tail[match.end() :])


def _preemption_half(text: str, truncated: bool) -> tuple[int | None, tuple[ParsedReason, ...]]:
    frame = _FRAME.match(text)
    # 1.26 to 1.28 put a full stop of their own behind the one of the nested sentence.
    words = text[frame.end() if frame else 0 :].strip().removesuffix(".").removesuffix(".")
    if frame is None:
        return None, _counted_reasons(words, drop_last=False)
    return int(frame[1]), _counted_reasons(words, drop_last=truncated)


def _counted_reasons(text: str, *, drop_last: bool) -> tuple[ParsedReason, ...]:
    if not text:
        return ()
    if _COUNT.match(text) is None:
        return (ParsedReason(plugin_of(text), text, None),)
    pieces = list(_split_counted(text))
    if drop_last:
        pieces.pop()
    return tuple(_count_first(piece) for piece in pieces)


def _count_first(piece: str) -> ParsedReason:
    match = _COUNT.fullmatch(piece)
    if match is None:
        return ParsedReason(plugin_of(piece), piece, None)
    return ParsedReason(plugin_of(match[2]), match[2], int(match[1]))


def _split_counted(text: str) -> Iterator[str]:
    """Split at commas that a count follows; a comma inside braces belongs to a taint."""
    start = 0
    for match in _outside_brackets(_NEXT_REASON, text):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:]


def _last_reason_start(text: str) -> int:
    ends = [match.end() for match in _outside_brackets(_NEXT_REASON, text)]
    return ends[-1] if ends and _COUNT.match(text) else 0


def _words(piece: str) -> str:
    match = _COUNT.fullmatch(piece)
    return piece if match is None else match[2]


def _outside_brackets(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    matches = list(pattern.finditer(text))
    spans = sorted(_bracketed(text)) if matches else []
    if not spans:
        return matches
    starts = [start for start, _ in spans]
    furthest = list(accumulate((end for _, end in spans), max))

    def is_outside(at: int) -> bool:
        before = bisect_left(starts, at)
        return before == 0 or furthest[before - 1] < at

    return [match for match in matches if is_outside(match.start())]


def _bracketed(text: str) -> list[tuple[int, int]]:
    """List the spans of closed brackets; one that never closes (a cut text) encloses nothing."""
    open_at: dict[str, list[int]] = {"(": [], "{": [], "[": []}
    spans = []
    for match in _BRACKET.finditer(text):
        bracket, at = match[0], match.start()
        if bracket in open_at:
            open_at[bracket].append(at)
        elif starts := open_at[_OPENER[bracket]]:
            start = starts.pop()
            if at - start > 2:  # "(s)" is too short to hold a separator
                spans.append((start, at))
    return spans


def _without_full_stop(text: str) -> str:
    return text.strip().removesuffix(".")


def _owner_of(reason: str) -> _Owner | None:
    # Reasons repeat; a huge text is hostile or broken and must not stay in memory.
    return _looked_up(reason) if len(reason) > 1024 else _remembered(reason)


def _looked_up(reason: str) -> _Owner | None:
    texts, patterns = _catalogue()
    owner = texts.get(reason)
    if owner is not None:
        return owner
    for pattern, entry in patterns:
        match = pattern.fullmatch(reason)
        if match is not None:
            return _named_owner(match, entry)
    return None


_remembered = lru_cache(maxsize=8192)(_looked_up)


def _named_owner(match: re.Match[str], entry: _Owner) -> _Owner:
    named = match.groupdict()
    point = named.get("point", "")
    plugin = named.get("plugin", entry.plugin)
    return _Owner(plugin, entry.point, _POINTS.get(point.lower(), point))


@lru_cache(maxsize=1)
def _catalogue() -> tuple[dict[str, _Owner], tuple[tuple[re.Pattern[str], _Owner], ...]]:
    path = resources.files("tracekit.replay").joinpath("reason_catalogue.tsv")
    lines = [ln for ln in path.read_text("utf-8").splitlines() if ln and not ln.startswith("#")]
    texts: dict[str, _Owner] = {}
    patterns = []
    for line in lines[1:]:
        plugin, point, form, reason, _versions, _source = line.split("\t")
        if form == "text":
            texts.setdefault(reason, _Owner(plugin, point))
        else:
            patterns.append((re.compile(reason, re.DOTALL), _Owner(plugin, point)))
    return texts, tuple(patterns)
