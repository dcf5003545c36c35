"""Estimate when each etcd revision was committed, from the times inside objects.

The API server's clock is the reference: it stamps every request it handles in whole
seconds, so a stamp bounds a commit from both sides. Finer times come from other clocks
(leases, events); each such clock is first compared with those stamps, so that one that
runs ahead or behind is shifted, or left out. What remains are lower and upper bounds per
revision. Commits are ordered by revision, so a lower bound holds for all later revisions
and an upper bound for all earlier ones; the estimate lies between the two and the stated
error reaches to the farther one.

What whole-second stamps cannot show stays open: a clock within some 0.1 s of the API
server's is taken as equal to it, and the stated error does not include such a skew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracekit.replay.anchors import API_SERVER, BOUND, SECOND_US, SEEN, Anchor

__all__ = ["RevisionTime", "estimate_times"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Beyond any time, yet far enough from the int64 limits to be subtracted.
_NEVER = 1 << 61
# From the API server's stamp to the commit: admission and the etcd write.
_STAMP_SLACK_US = 50_000
# A prompt time and its commit are this far apart, unless the record shows more.
_PROMPT_LEAST_US = 100_000
# A clock is not called late before its times are off by more than a slow request.
_PATIENCE_US = 1_000_000
# Usual distance of a commit from a prompt time. Source: facts/replay.md section 5 (bias).
_USUAL_US = 4_000
# Share of a clock's times that must agree on its offset.
_QUORUM = 0.97
# What is left of skew between clocks that agree.
_SKEW_US = 10_000
# Least bound where the record ends and nothing later bounds it.
_OPEN_END_US = 10 * SECOND_US


@dataclass(frozen=True, slots=True)
class RevisionTime:
    """When one revision was committed.

    Attributes:
        at_us: Microseconds since the epoch; None when nothing is known.
        certainty: ``observed`` is kept for receive times of live recordings.
        error_us: Bound on the distance to the true time; None when ``at_us`` is.
    """

    revision: int
    at_us: int | None
    certainty: Literal["observed", "estimated", "unknown"]
    error_us: int | None


@dataclass(frozen=True, slots=True)
class _Claims:
    """Claims of one sort as columns: row of the revision, time, clock, and its doubt."""

    row: Ints
    at: Ints
    clock: Ints
    prompt: Bools
    doubt: Ints

    def take(self, rows: Bools | Ints) -> _Claims:
        return _Claims(
            self.row[rows], self.at[rows], self.clock[rows], self.prompt[rows], self.doubt[rows]
        )


def estimate_times(revisions: Sequence[int], anchors: Sequence[Anchor]) -> list[RevisionTime]:
    """Estimate the commit time of every revision.

    Args:
        revisions: Revisions present in the record, in any order, repeats allowed.
        anchors: Anchors of their changes, in any order.

    Returns:
        One row per distinct revision, ascending; ``at_us`` never decreases.

    Source: facts/replay.md section 5; etcd mod_revision order.
    """
    revs = np.unique(np.asarray(revisions, dtype=np.int64))
    if not revs.size:
        return []
    low, high, knots = _evidence(revs, anchors)
    if not (low > -_NEVER).any() and not (high < _NEVER).any():
        return [RevisionTime(r, None, "unknown", None) for r in revs.tolist()]
    low, high = _close_ends(low, high)
    at = _between(revs, low, high, knots)
    error = np.maximum(np.abs(at - low), np.abs(high - at)) + _SKEW_US
    return [
        RevisionTime(r, a, "estimated", e)
        for r, a, e in zip(revs.tolist(), at.tolist(), error.tolist(), strict=True)
    ]


def _evidence(revs: Ints, anchors: Sequence[Anchor]) -> tuple[Ints, Ints, Ints]:
    """Weigh the anchors; give each row's lower and upper bound and the rows known closely."""
    within, after, before = _place(revs, anchors)
    within = _consistent(within)
    floor = _running_max(revs.size, within.row, within.at)
    ceiling = _running_min(revs.size, within.row, within.at + SECOND_US + _STAMP_SLACK_US)
    after, before = _agreeing(after, before, floor, ceiling)
    # Where such stamps are rare, the prompt times that most clocks agree on tell as much.
    peers = _consistent(after.take(after.prompt))
    floor = np.maximum(floor, _running_max(revs.size, peers.row, peers.at))
    ceiling = np.minimum(ceiling, _running_min(revs.size, peers.row, peers.at + _PATIENCE_US))
    after, before = _agreeing(after, before, floor, ceiling)
    low, high = _bounds(revs.size, within, after, before)
    return low, high, _knots(revs.size, low, after, before)


# --- placing claims on revisions ----------------------------------------------------------


def _place(revs: Ints, anchors: Sequence[Anchor]) -> tuple[_Claims, _Claims, _Claims]:
    """Turn anchors into claims ``within``, ``after`` and ``before``, sorted by revision.

    A revision that is not in the record passes its lower bound on to the next one that
    is, and its upper bound to the one before.
    """
    clocks = {API_SERVER: 0}
    sorts: dict[str, list[tuple[int, int, int, bool]]] = {"within": [], "after": [], "before": []}
    for a in _resolved(anchors):
        clock = clocks.setdefault(a.clock, len(clocks))
        sorts[a.claim].append((a.revision, a.at_us, clock, a.prompt))
    within, after, before = (_claims(revs, s, rows) for s, rows in sorts.items())
    return within, after, before


def _claims(revs: Ints, claim: str, rows: list[tuple[int, int, int, bool]]) -> _Claims:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    revision, at, clock, prompt = table.T
    if claim == "before":
        row = np.searchsorted(revs, revision, side="right") - 1
    else:
        row = np.searchsorted(revs, revision, side="left")
    known = (row >= 0) & (row < revs.size)
    exact = np.zeros(row.size, dtype=np.bool_)
    exact[known] = revs[row[known]] == revision[known]
    # A whole-second stamp and promptness say something of their own revision only.
    keep = known & exact if claim == "within" else known
    claims = _Claims(row, at, clock, (prompt == 1) & exact, np.zeros_like(at)).take(keep)
    return claims.take(np.argsort(claims.row, kind="stable"))


def _resolved(anchors: Iterable[Anchor]) -> Iterator[Anchor]:
    """Yield the anchors with what events say about an object moved to its revisions."""
    anchors = list(anchors)
    states: dict[str, list[tuple[int, str]]] = {}
    for a in anchors:
        if a.claim == "names":
            states.setdefault(a.uid, []).append((a.revision, a.word))
    for named in states.values():
        named.sort()
    for a in anchors:
        if a.claim == "names":
            continue
        revision = _meant(states.get(a.uid, []), a) if a.uid else a.revision
        if revision is not None:
            yield replace(a, revision=revision) if revision != a.revision else a


def _meant(states: list[tuple[int, str]], a: Anchor) -> int | None:
    """Find the revision an event is about; None when the record does not show it.

    A revision that its object never had belongs to another etcd (events may have their
    own), a verdict that is not the very next state was not written by this attempt.
    """
    if a.word == BOUND:
        return next((revision for revision, word in states if word == BOUND), None)
    i = bisect_right(states, a.revision, key=lambda s: s[0])
    if i == 0 or states[i - 1][0] != a.revision:
        return None
    if a.word == SEEN:
        return a.revision
    return states[i][0] if a.word and i < len(states) and states[i][1] == a.word else None


# --- weighing clocks against each other ---------------------------------------------------


def _consistent(within: _Claims) -> _Claims:
    """Keep the longest run of API server stamps that never decreases.

    Drops stamps of a client's own making, requests that were slow to commit, and the
    lesser part of a record whose clock was set back.
    """
    ends: list[int] = []
    places: list[int] = []
    back: list[int] = []
    for i, at in enumerate(within.at.tolist()):
        k = bisect_right(ends, at)
        back.append(places[k - 1] if k else -1)
        ends[k : k + 1], places[k : k + 1] = [at], [i]
    keep = np.zeros(within.at.size, dtype=np.bool_)
    i = places[-1] if places else -1
    while i >= 0:
        keep[i] = True
        i = back[i]
    return within.take(keep)


def _agreeing(
    after: _Claims, before: _Claims, floor: Ints, ceiling: Ints
) -> tuple[_Claims, _Claims]:
    """Shift clocks that run ahead or behind onto the API server's; drop what contradicts it.

    ``floor`` and ``ceiling`` bound each row by what is trusted. The doubt of the claims
    that come back is what their shift leaves open.
    """
    least = after.at - ceiling[after.row]
    most = np.where(after.prompt, after.at - floor[after.row] + _PATIENCE_US, _NEVER)
    least_b = np.where(before.prompt, before.at - ceiling[before.row] - _PATIENCE_US, -_NEVER)
    most_b = before.at - floor[before.row]
    clocks = np.concatenate([after.clock, before.clock])
    offsets = _offsets(clocks, np.concatenate([least, least_b]), np.concatenate([most, most_b]))
    after, before = _shifted(after, offsets, 1), _shifted(before, offsets, 0)
    return (
        after.take(after.at <= ceiling[after.row]),
        before.take(before.at >= floor[before.row]),
    )


def _offsets(clocks: Ints, least: Ints, most: Ints) -> Ints:
    """Bound how far each clock is ahead of the API server's.

    Args:
        clocks: Clock of each claim.
        least: Least offset of its clock that each claim allows, microseconds.
        most: Most offset that it allows.

    Returns:
        Per clock the least and the most offset; (0, 0) where zero fits nearly all its
        claims, (_NEVER, -_NEVER) where no offset does: it was set during the record.
    """
    offsets = np.zeros((int(clocks.max(initial=0)) + 1, 2), dtype=np.int64)
    order = np.argsort(clocks, kind="stable")
    names, starts = np.unique(clocks[order], return_index=True)
    for clock, mine in zip(names.tolist(), np.split(order, starts[1:]), strict=False):
        # Claims that say nothing about one side stay at +-_NEVER and sort to its far end.
        low = int(np.quantile(least[mine], _QUORUM, method="lower"))
        high = int(np.quantile(most[mine], 1 - _QUORUM, method="higher"))
        if low > high:
            offsets[clock] = (_NEVER, -_NEVER)
        elif clock and not low <= 0 <= high:
            offsets[clock] = (low, high)
    return offsets


def _shifted(claims: _Claims, offsets: Ints, side: int) -> _Claims:
    """Move claims into the API server's time, by the offset that keeps them true."""
    low, high = offsets[claims.clock].T
    usable = (low <= high) & (offsets[claims.clock, side] < _NEVER)
    usable &= offsets[claims.clock, side] > -_NEVER
    kept = claims.take(usable)
    low, high = offsets[kept.clock].T
    known = (low > -_NEVER) & (high < _NEVER)
    doubt = np.where(known, high - low, _NEVER)
    doubt = np.minimum(kept.doubt + doubt, _NEVER)
    return replace(
        kept, at=kept.at - offsets[kept.clock, side], doubt=doubt, prompt=kept.prompt & known
    )


# --- bounds -------------------------------------------------------------------------------


def _running_max(size: int, row: Ints, at: Ints) -> Ints:
    low = np.full(size, -_NEVER, dtype=np.int64)
    np.maximum.at(low, row, at)
    return np.maximum.accumulate(low)


def _running_min(size: int, row: Ints, at: Ints) -> Ints:
    high = np.full(size, _NEVER, dtype=np.int64)
    np.minimum.at(high, row, at)
    return np.minimum.accumulate(high[::-1])[::-1]


def _bounds(size: int, within: _Claims, after: _Claims, before: _Claims) -> tuple[Ints, Ints]:
    """Give each row its lower and upper bound.

    A prompt time bounds from the other side too, at a distance learned from the record:
    how far its commits are seen to be from it when other claims tell.
    """
    low_row, low_at = np.concatenate([within.row, after.row]), np.concatenate([within.at, after.at])
    high_row = np.concatenate([within.row, before.row])
    high_at = np.concatenate([within.at + SECOND_US + _STAMP_SLACK_US, before.at])
    low, high = _running_max(size, low_row, low_at), _running_min(size, high_row, high_at)
    a, b = after.take(after.prompt), before.take(before.prompt)
    late = a.at + _promptness(low[a.row] - a.at - a.doubt) + a.doubt
    early = b.at - _promptness(b.at - high[b.row] - b.doubt) - b.doubt
    return (
        np.maximum(low, _running_max(size, b.row, early)),
        np.minimum(high, _running_min(size, a.row, late)),
    )


def _promptness(seen: Ints) -> int:
    """Bound the distance of commits from prompt times by what the record shows of it."""
    if not seen.size:
        return _PROMPT_LEAST_US
    return max(_PROMPT_LEAST_US, 2 * int(np.quantile(seen, 0.998)))


def _close_ends(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Bound the rows before the first lower and after the last upper bound.

    Nothing in the record does; the longest silence it shows is taken as the measure.
    """
    known = np.concatenate([low[low > -_NEVER], high[high < _NEVER]])
    silence = max(int(np.diff(np.sort(known)).max(initial=0)), _OPEN_END_US)
    low = np.where(low > -_NEVER, low, np.minimum(high, known.min()) - silence)
    return low, np.where(high < _NEVER, high, np.maximum(low, known.max()) + silence)


# --- the estimate -------------------------------------------------------------------------


def _knots(size: int, low: Ints, after: _Claims, before: _Claims) -> Ints:
    """Give the rows whose time is known closely; ``_NEVER`` elsewhere.

    These are the rows where the lower bound rises, and those with a prompt upper bound.
    """
    knots = np.full(size, _NEVER, dtype=np.int64)
    rises = np.ones(size, dtype=np.bool_)
    rises[1:] = low[1:] > low[:-1]
    rises &= low > -_NEVER
    knots[rises] = low[rises] + _USUAL_US
    b = before.take(before.prompt)
    knots[b.row] = b.at - _USUAL_US
    return knots


def _between(revs: Ints, low: Ints, high: Ints, knots: Ints) -> Ints:
    """Interpolate the knots over revision numbers and keep inside the bounds."""
    known = np.flatnonzero(knots < _NEVER)
    if not known.size:
        return (low + high) // 2
    at = knots[known]
    rising = np.maximum.accumulate(at)
    falling = np.minimum.accumulate(at[::-1])[::-1]
    level = rising + (falling - rising) // 2
    base = int(level[0])
    line: Ints = np.interp(revs, revs[known], level - base).astype(np.int64) + base
    # Bounds that cross contradict each other: stay between them.
    inside: Ints = np.clip(line, np.minimum(low, high), np.maximum(low, high))
    return inside
