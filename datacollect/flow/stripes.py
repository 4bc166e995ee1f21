"""Stripes: offsets for what leaves a source that makes its data in their order.

Plans know how many bytes leave a source when, over which route. Which bytes these are is free as
long as each is made before it leaves: the earlier made leave earlier. While one route is in use, it
takes all that comes. Where several are at once each takes a stripe of what has been made so far,
then the next; the sooner bytes leave after they are made, the shorter these stripes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.flow.routes.routes import cut_at
from datacollect.numbers.arrays import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.numbers.arrays import FloatArray, IntArray

# Bytes, and parts of all bytes, that may leave early by rounding; instants that are the same.
_ROUNDING_BYTES = 0.5
_ROUNDING = 1e-9
_SAME_INSTANT = 1e-12

# Shorter stripes than this part of all the time are none: whoever plans has to let bytes wait.
_SHORTEST_PART = 1 / 5000


class NotInOrder(Exception):
    """Bytes leave over several routes about as soon as they are made: stripes have no length."""


def in_made_order(
    transfers: dict[str, Any], rate_bytes_per_s: float, release_s: float, slot_s: float | None
) -> dict[str, Any]:
    """Return transfers of one source with offsets in the order in which their bytes leave it.

    Parameters
    ----------
    transfers : dict of str to ndarray
        Columns as of `datacollect.schedule.data.transfers.Transfers`; hop 0 leaves the source.
    rate_bytes_per_s, release_s : float
        The source makes so many bytes per second from then on.
    slot_s : float or None
        Length of slots, where there are some: what leaves in one has been made before it begins.

    Raises
    ------
    NotInOrder
        Stripes would have no length.

    Examples
    --------
    Two routes take a byte a second each, of two that are made each second, one second later:

    >>> columns = {
    ...     "route": [0, 1], "hop": [0, 0], "offset_bytes": [0, 4], "n_bytes": [4, 4],
    ...     "start_s": [1.0, 1.0], "finish_s": [5.0, 5.0], "streams": [1, 1],
    ... }
    >>> columns = {key: np.array(column) for key, column in columns.items()}
    >>> found = in_made_order(columns, 2.0, 0.0, None)
    >>> found["route"].tolist(), found["offset_bytes"].tolist()
    ([0, 0, 0, 0, 1, 1, 1, 1], [0, 2, 4, 6, 1, 3, 5, 7])
    >>> found["start_s"].tolist()
    [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]
    """
    first = np.flatnonzero(transfers["hop"] == 0)
    if not len(first):
        return transfers
    order = first[np.lexsort((transfers["route"][first], transfers["start_s"][first]))]
    leaving = {key: column[order] for key, column in transfers.items()}
    old, new = [], []
    sent = 0
    for row, begin, end in _stripes(leaving, rate_bytes_per_s, release_s, slot_s):
        offset = int(leaving["offset_bytes"][row])
        old.append((offset + begin, offset + end))
        new.append(sent)
        sent += end - begin
    begins, ends = np.array(old, dtype=np.int64).T
    place = np.argsort(begins, kind="stable")
    begins, ends, moved = begins[place], ends[place], np.array(new, dtype=np.int64)[place]
    # Neighbours that stay neighbours are one.
    starts = np.ones(len(begins), dtype=bool)
    starts[1:] = (begins[1:] != ends[:-1]) | (moved[1:] - moved[:-1] != begins[1:] - begins[:-1])
    at = np.flatnonzero(starts)
    return _renumbered(
        transfers, begins[at], np.append(begins[at][1:], ends[-1]), moved[at], slot_s
    )


def _stripes(
    leaving: dict[str, Any], rate: float, release_s: float, slot_s: float | None
) -> Iterator[tuple[int, int, int]]:
    """Yield stripes in the order in which they are made: the row, and its bytes from and to."""
    start, finish, size = (leaving[key] for key in ("start_s", "finish_s", "n_bytes"))
    total = float(size.sum())
    time_s = np.unique(np.concatenate([start, finish]))
    if slot_s is not None:
        time_s = np.arange(round(time_s[0] / slot_s), round(time_s[-1] / slot_s) + 1) * slot_s
    sent = _sent(start, finish, size, time_s)
    shortest_s = (time_s[-1] - time_s[0]) * _SHORTEST_PART if slot_s is None else slot_s / 2
    may_leave_early = _ROUNDING_BYTES + _ROUNDING * total
    now, done = float(time_s[0]), np.zeros(len(size), dtype=np.int64)
    while now < time_s[-1]:
        number = int(np.searchsorted(time_s, now * (1 + _SAME_INSTANT), side="right"))
        active = (start <= now * (1 + _SAME_INSTANT)) & (finish > now * (1 + _SAME_INSTANT))
        if slot_s is None and active.sum() <= 1:
            until = float(time_s[number])
        else:
            made = rate * max(now - release_s, 0.0) + may_leave_early
            until = _latest(time_s, sent, made, slot_s)
            if until - now < shortest_s and until < time_s[-1]:
                raise NotInOrder
        taken = _bytes_by(start, finish, size, until, in_slots=slot_s is not None)
        for row in np.flatnonzero(taken > done).tolist():
            yield row, int(done[row]), int(taken[row])
        now, done = until, np.maximum(taken, done)


def _sent(start: FloatArray, finish: FloatArray, size: IntArray, time_s: FloatArray) -> FloatArray:
    """Return the bytes that have left by some instants."""
    rate = size / (finish - start)
    first, last = np.searchsorted(time_s, start), np.searchsorted(time_s, finish)
    if (time_s[np.minimum(first, len(time_s) - 1)] != start).any():  # on a grid, by rounding
        first = np.abs(time_s[:, np.newaxis] - start).argmin(axis=0)
        last = np.abs(time_s[:, np.newaxis] - finish).argmin(axis=0)
    change = np.bincount(first, rate, len(time_s)) - np.bincount(last, rate, len(time_s))
    steps = np.cumsum(change)[:-1] * np.diff(time_s)
    return np.concatenate([[0.0], np.cumsum(np.maximum(steps, 0.0))])


def _latest(time_s: FloatArray, sent: FloatArray, most: float, slot_s: float | None) -> float:
    """Return the last instant by which no more than `most` bytes have left."""
    number = int(np.searchsorted(sent, most, side="right")) - 1
    if number + 1 >= len(time_s) or slot_s is not None:
        return float(time_s[min(number, len(time_s) - 1)])
    part = (most - sent[number]) / (sent[number + 1] - sent[number])
    return float(time_s[number] + part * (time_s[number + 1] - time_s[number]))


def _bytes_by(
    start: FloatArray, finish: FloatArray, size: IntArray, at_s: float, *, in_slots: bool
) -> IntArray:
    """Return the whole bytes that each transfer has moved by an instant; all slots move as many."""
    part = np.clip((at_s - start) / (finish - start), 0.0, 1.0)
    part = np.where(at_s >= finish * (1 - _SAME_INSTANT), 1.0, part)
    moved = np.rint(size * part) if in_slots else np.floor(size * part + _ROUNDING)
    whole: IntArray = np.minimum(moved, size).astype(np.int64)
    return whole


# New offsets ----------------------------------------------------------------------------------


def _renumbered(
    transfers: dict[str, Any],
    begins: IntArray,
    ends: IntArray,
    moved: IntArray,
    slot_s: float | None,
) -> dict[str, Any]:
    """Give transfers other offsets; cut them where neighbours are none any more."""
    low = transfers["offset_bytes"]
    bounds = np.append(begins, ends[-1])
    row, stripe, begin, end = cut_at(bounds, low, low + transfers["n_bytes"])
    first = begin - low[row]
    if slot_s is not None:
        row, stripe, first, last = _cut_at_slots(
            transfers, row, stripe, first, end - low[row], slot_s
        )
    else:
        last = end - low[row]
    size = transfers["n_bytes"][row]
    start, finish = transfers["start_s"][row], transfers["finish_s"][row]

    def when(byte: IntArray) -> FloatArray:
        found: FloatArray = start + (finish - start) * (byte / size)
        return np.where(byte == size, finish, found)

    start_s, finish_s = when(first), when(last)
    if slot_s is not None:
        # Parts of a slot take it all.
        slots = np.rint((finish - start) / slot_s).astype(np.int64)
        each, begins_at = size // slots, np.rint(start / slot_s).astype(np.int64)
        start_s = (begins_at + first // each) * slot_s
        finish_s = (begins_at - (-last // each)) * slot_s
    found = {key: column[row] for key, column in transfers.items()}
    return found | {
        "offset_bytes": moved[stripe] + low[row] + first - begins[stripe],
        "n_bytes": last - first,
        "start_s": start_s,
        "finish_s": finish_s,
    }


def _cut_at_slots(
    transfers: dict[str, Any],
    row: IntArray,
    stripe: IntArray,
    first: IntArray,
    last: IntArray,
    slot_s: float,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut parts so that what begins or ends amid a slot is by itself: all slots carry as many."""
    slots = np.rint((transfers["finish_s"] - transfers["start_s"]) / slot_s).astype(np.int64)
    each = (transfers["n_bytes"] // slots)[row]
    full, after = np.minimum(-(-first // each) * each, last), np.maximum(last // each * each, first)
    after = np.maximum(after, full)
    edges = np.stack([first, full, after, last], axis=1)
    number = np.repeat(np.arange(len(row)), 3)
    part = ranges(np.zeros(len(row), dtype=np.int64), np.full(len(row), 3))
    low, high = edges[number, part], edges[number, part + 1]
    some = high > low
    at = number[some]
    return row[at], stripe[at], low[some], high[some]
