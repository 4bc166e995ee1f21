"""The rules that make a problem valid, and the messages when one is broken.

Everything here works on names and arrays; `Problem` calls it on construction.
"""

from __future__ import annotations

import math
from collections import Counter
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.host_names import fault_of
from datacollect.files.kinds import shown
from datacollect.problem.connection_rates import RATE_COLUMNS, completed_links
from datacollect.problem.host_limits import LIMITS, by_period, is_constant, reject_partly_unlimited
from datacollect.problem.numbers import floats_of, one_per_host

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from datacollect.numbers.arrays import FloatArray, IndexArray, IntArray
    from datacollect.problem.contents import ProblemContents
    from datacollect.problem.hosts import Held, HeldColumns, SharedBottleneck


# Half of int64: sums of bytes, and bytes plus one link's capacity, still fit.
MAX_TOTAL_BYTES = 2**62

# Floats beyond this lie more than an eighth of a second apart.
LATEST_S = 1e15

# Per-host columns of a problem, and whether infinite ("unlimited") is allowed; backlog is apart.
_MAY_BE_INFINITE = {
    "release_s": False,
    "storage_bytes": True,
    "uplink_bytes_per_s": True,
    "downlink_bytes_per_s": True,
}
HOST_COLUMNS = ("backlog_bytes", *_MAY_BE_INFINITE)
_FOLLOWS = {key: {"periods_s"} for key in LIMITS}  # these have a row for each period
LINK_COLUMNS = ("link_from", "link_to", "bandwidth_bytes_per_s", "price_per_gb", *RATE_COLUMNS)


def index_of_names(names: Sequence[str]) -> dict[str, int]:
    """Return the index of each name, or raise `ProblemError`."""
    for name in names:
        if not isinstance(name, str) or not name:
            raise ProblemError(f"a host's name must be text and not empty, got {name!r}")
        if fault := fault_of(name):
            raise ProblemError(f"host {name!r}: its name {fault}")
    index = {name: i for i, name in enumerate(names)}
    if len(index) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise ProblemError(f"host {twice!r}: name given twice; names must be unique")
    return index


def require_hosts(names: Sequence[str], destination: str) -> None:
    """Raise `ProblemError` unless names are unique and the destination is one of them."""
    if destination not in index_of_names(names):
        raise ProblemError(
            f"destination must be one of the hosts, got {destination!r}"
            + nearest_hint(str(destination), names)
        )


def changed_columns(problem: ProblemContents, changed: Set[str]) -> dict[str, npt.NDArray[Any]]:
    """Check the arrays that have changed; return them as they are to be, and read-only.

    What has not changed needs no second look: there may be millions of links.

    Raises
    ------
    ProblemError
        A number breaks a rule, or arrays do not fit together.
    """
    names, starts = problem.names, problem.periods_s
    columns: dict[str, npt.NDArray[Any]] = {}
    if "periods_s" in changed:
        starts = columns["periods_s"] = period_starts(starts)
    of_hosts = [
        key for key in HOST_COLUMNS if changed & ({key, "names"} | _FOLLOWS.get(key, set()))
    ]
    columns |= host_arrays(names, len(starts), {key: getattr(problem, key) for key in of_hosts})
    if changed & {"names", "most_connections"} and problem.most_connections is not None:
        columns["most_connections"] = _connections_of_hosts(names, problem.most_connections)
    if changed & {"names", "periods_s", *LINK_COLUMNS}:
        of_links = {key: getattr(problem, key) for key in LINK_COLUMNS}
        columns |= link_arrays(names, len(starts), **of_links)
    return {key: _frozen(array) for key, array in columns.items()}


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Whoever passed a writeable array may still write to it.
    frozen = array.copy() if array.flags.writeable else array.view()
    frozen.flags.writeable = False
    return frozen


def host_arrays(
    names: Sequence[str], n_periods: int, columns: Mapping[str, npt.ArrayLike]
) -> dict[str, npt.NDArray[Any]]:
    """Return per-host columns as arrays of the right type, or raise `ProblemError`."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for key, values in columns.items():
        if key == "backlog_bytes":
            arrays[key] = whole_backlogs(names, values)
        elif key in LIMITS:
            arrays[key] = rows = by_period(key, values, n_periods, len(names))
            varying = not is_constant(rows)
            for period, row in enumerate(rows if varying else rows[:1]):
                _limits(names, key, row, f" in period {period}" if varying else "")
            reject_partly_unlimited(names, key, rows)
        else:
            arrays[key] = _limits(names, key, one_per_host(key, values, len(names)))
    return arrays


def _limits(names: Sequence[str], key: str, values: FloatArray, when: str = "") -> FloatArray:
    """Refuse numbers below 0, and infinite or split ones where these mean nothing."""
    may_be_infinite = _MAY_BE_INFINITE[key]
    bad = np.isnan(values) | (values < 0)
    if not may_be_infinite:
        bad |= np.isinf(values)
    if bad.any():
        i = int(np.argmax(bad))
        rule = ">= 0" if may_be_infinite else ">= 0 and finite"
        remedy = "; leave it out for unlimited" if may_be_infinite else ""
        raise ProblemError(
            f"host {names[i]!r}: {key} must be {rule}, got {values[i]:g}{when}{remedy}"
        )
    if key == "release_s" and (values > LATEST_S).any():
        i = int(np.argmax(values))
        raise ProblemError(
            f"host {names[i]!r}: release_s must be at most {LATEST_S:g}, got {values[i]:g}; count "
            "seconds from a later instant"
        )
    if key == "storage_bytes":
        _reject_split_bytes(names, values)
    return values


def _reject_split_bytes(names: Sequence[str], storage_bytes: FloatArray) -> None:
    split = np.isfinite(storage_bytes) & (storage_bytes != np.floor(storage_bytes))
    if split.any():
        i = int(np.argmax(split))
        raise ProblemError(
            f"host {names[i]!r}: storage_bytes must be whole, got {storage_bytes[i]}; round it"
        )


def _connections_of_hosts(names: Sequence[str], values: npt.ArrayLike) -> FloatArray:
    counts = one_per_host("most_connections", values, len(names))
    bad = ~((counts >= 0) & (np.isinf(counts) | (counts == np.floor(counts))))
    if bad.any():
        i = int(np.argmax(bad))
        raise ProblemError(
            f"host {names[i]!r}: most_connections must be a whole number >= 0, got {counts[i]:g}; "
            "leave it out for unlimited"
        )
    return counts


def period_starts(periods_s: npt.ArrayLike) -> FloatArray:
    """Return the starts of the forecast's periods, or raise `ProblemError`."""
    starts = floats_of("periods_s", periods_s)
    if starts.ndim != 1 or len(starts) == 0 or starts[0] != 0:
        raise ProblemError(
            f"periods_s must list the starts of periods, the first 0, got {starts.tolist()}"
        )
    if not np.isfinite(starts).all() or (np.diff(starts) <= 0).any():
        i = int(np.argmax(~(np.diff(starts) > 0)))
        raise ProblemError(
            f"periods_s must be finite and increase, got {starts[i]:g} then {starts[i + 1]:g}"
        )
    if starts[-1] > LATEST_S:
        raise ProblemError(
            f"periods_s must be at most {LATEST_S:g}, got {starts[-1]:g}; count seconds from a "
            "later instant"
        )
    return starts


def link_arrays(
    names: Sequence[str],
    n_periods: int,
    link_from: IndexArray,
    link_to: IndexArray,
    bandwidth_bytes_per_s: npt.ArrayLike,
    price_per_gb: npt.ArrayLike | None,
    **rates: npt.ArrayLike | None,
) -> dict[str, npt.NDArray[Any]]:
    """Return the links' columns sorted by (from, to), or raise `ProblemError`."""
    tail, head = (
        _indices(key, ends) for key, ends in (("link_from", link_from), ("link_to", link_to))
    )
    bandwidth = np.atleast_2d(floats_of("bandwidth_bytes_per_s", bandwidth_bytes_per_s))
    if len(head) != len(tail):
        raise ProblemError(
            f"link_from and link_to must have one entry per link, got {len(tail)} and {len(head)}"
        )
    if bandwidth.shape != (n_periods, len(tail)):
        raise ProblemError(
            f"bandwidth_bytes_per_s must have shape ({n_periods} periods, {len(tail)} "
            f"links), got {bandwidth.shape}"
        )
    _require_indices(tail, head, len(names))
    price = None if price_per_gb is None else floats_of("price_per_gb", price_per_gb)
    if price is not None and price.shape != tail.shape:
        raise ProblemError(
            f"price_per_gb must have one number per link ({len(tail)}), got shape {price.shape}"
        )
    key = tail.astype(np.int64) * len(names) + head
    order: IntArray | None = None
    if not (key[1:] > key[:-1]).all():
        order = np.argsort(key, kind="stable")
        key, tail, head, bandwidth = key[order], tail[order], head[order], bandwidth[:, order]
        price = None if price is None else price[order]
    _reject_bad_links(names, key, tail, head, bandwidth, price)
    arrays: dict[str, npt.NDArray[Any]] = {
        "link_from": tail.astype(np.int32, copy=False),
        "link_to": head.astype(np.int32, copy=False),
        "bandwidth_bytes_per_s": bandwidth,
    }
    arrays |= completed_links(names, tail, head, bandwidth, rates, order)
    return arrays if price is None else arrays | {"price_per_gb": price}


def _indices(key: str, ends: npt.ArrayLike) -> IndexArray:
    array = np.asarray(ends)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ProblemError(
            f"{key} must list a host's index, from 0, for each link, got {shown(array.tolist())}"
        )
    return array if array.size else array.astype(np.int32)


def _reject_bad_links(
    names: Sequence[str],
    key: IntArray,
    tail: IndexArray,
    head: IndexArray,
    bandwidth: FloatArray,
    price: FloatArray | None,
) -> None:
    def pair(i: int) -> str:
        return f"link {names[tail[i]]!r} -> {names[head[i]]!r}"

    twice = key[1:] == key[:-1]
    if twice.any():
        i = int(np.argmax(twice))
        raise ProblemError(f"{pair(i)}: given twice; keep one")
    if (tail == head).any():
        i = int(np.argmax(tail == head))
        raise ProblemError(f"{pair(i)}: a link must join two different hosts; remove it")
    # min and max see NaN too, and need no large temporary arrays
    if bandwidth.size and not (bandwidth.min() >= 0 and bandwidth.max() < np.inf):
        bad = ~((bandwidth >= 0) & np.isfinite(bandwidth))
        period, i = (int(x) for x in np.argwhere(bad)[0])
        when = f" in period {period}" if len(bandwidth) > 1 else ""
        raise ProblemError(
            f"{pair(i)}: bandwidth_bytes_per_s must be >= 0 and finite, "
            f"got {bandwidth[period, i]:g}{when}; use 0 for no capacity"
        )
    if price is not None:
        wrong = ~((price >= 0) & np.isfinite(price))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ProblemError(f"{pair(i)}: price_per_gb must be >= 0 and finite, got {price[i]:g}")


class _Links(Protocol):
    """Links that shared bottlenecks are checked against."""

    @property
    def host_index(self) -> Mapping[str, int]: ...
    def link_indices(self, link_from: npt.ArrayLike, link_to: npt.ArrayLike) -> IntArray: ...


def reject_bad_shared(shared: Sequence[SharedBottleneck], links: _Links) -> None:
    """Raise `ProblemError` unless names are unique and all links exist."""
    for name, times in Counter(s.name for s in shared).items():
        if times > 1:
            raise ProblemError(f"shared bottleneck {name!r}: name given {times} times")
    for bottleneck in shared:
        where = f"shared bottleneck {bottleneck.name!r}"
        rate = bottleneck.bandwidth_bytes_per_s
        if not isinstance(rate, Real):
            raise ProblemError(f"{where}: bandwidth_bytes_per_s must be a number, got {rate!r}")
        if not (rate >= 0 and math.isfinite(rate)):
            raise ProblemError(
                f"{where}: bandwidth_bytes_per_s must be >= 0 and finite, got {rate:g}"
            )
        pairs = [(a, b) for a, b in bottleneck.links]
        if not pairs:
            raise ProblemError(f"{where}: links must not be empty")
        index = links.host_index
        hosts = np.array([(index.get(a, -1), index.get(b, -1)) for a, b in pairs])
        found = np.where((hosts >= 0).all(axis=1), links.link_indices(*hosts.T), -1)
        # There may be many thousands: only where something is wrong they are looked at one by one.
        if found.min() < 0 or len(np.unique(found)) < len(found):
            _reject_bad_members(where, pairs, found.tolist(), index)


def _reject_bad_members(
    where: str, pairs: Sequence[tuple[str, str]], found: list[int], index: Mapping[str, int]
) -> None:
    times = Counter(pairs)
    for (a, b), link in zip(pairs, found, strict=True):
        for name in (a, b):
            if name not in index:
                raise ProblemError(f"{where}: unknown host {name!r}" + nearest_hint(name, index))
        if link < 0:
            raise ProblemError(f"{where}: there is no link {a!r} -> {b!r}; add it to links")
        if times[a, b] > 1:
            raise ProblemError(f"{where}: link {a!r} -> {b!r} given {times[a, b]} times")


class _Hosts(Protocol):
    """Hosts that held data are checked against."""

    @property
    def host_index(self) -> Mapping[str, int]: ...
    @property
    def destination(self) -> str: ...
    @property
    def backlog_bytes(self) -> IntArray: ...
    @property
    def storage_bytes(self) -> FloatArray: ...
    @property
    def held_columns(self) -> HeldColumns: ...


def reject_bad_held(held_data: Sequence[Held], hosts: _Hosts) -> None:
    """Raise `ProblemError` unless ranges lie in backlogs, once, and fit where they lie."""
    if not held_data:
        return
    # There may be many thousands of ranges: only when one is bad they are looked at one by one.
    if not _all_in_range(held_data, hosts):
        for held in held_data:
            _reject_bad_range(held, hosts)
    columns = hosts.held_columns
    _reject_overlapping_held(held_data, columns)
    _reject_held_beyond_storage(columns, hosts)


def _all_in_range(held_data: Sequence[Held], hosts: _Hosts) -> bool:
    kinds = {type(number) for h in held_data for number in (h.offset_bytes, h.n_bytes)}
    if kinds != {int}:
        return False
    host, source, start, size = hosts.held_columns
    known = min(host.min(), source.min()) >= 0
    positive = min(start.min(), size.min()) >= 0
    return bool(known and positive and (size <= hosts.backlog_bytes[source] - start).all())


def _reject_bad_range(held: Held, hosts: _Hosts) -> None:
    where = f"held data of {held.source!r} at {held.host!r}"
    for name in (held.host, held.source):
        if name not in hosts.host_index:
            raise ProblemError(
                f"{where}: unknown host {name!r}" + nearest_hint(name, hosts.host_index)
            )
    backlog = int(hosts.backlog_bytes[hosts.host_index[held.source]])
    start, size = held.offset_bytes, held.n_bytes
    if not (_is_whole(start) and _is_whole(size)):
        raise ProblemError(
            f"{where}: offset_bytes and bytes must be whole numbers, got {start!r} and {size!r}"
        )
    if start < 0 or size < 0 or start + size > backlog:
        raise ProblemError(
            f"{where}: the range must lie within the backlog of {backlog} bytes, "
            f"got offset_bytes = {start}, bytes = {size}"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _reject_overlapping_held(held_data: Sequence[Held], columns: HeldColumns) -> None:
    order = np.lexsort((columns.offset_bytes, columns.source))
    order = order[columns.n_bytes[order] > 0]
    source, start = columns.source[order], columns.offset_bytes[order]
    end = start + columns.n_bytes[order]
    overlap = np.flatnonzero((source[1:] == source[:-1]) & (start[1:] < end[:-1]))
    if len(overlap):
        one, two = (held_data[i] for i in order[overlap[0] : overlap[0] + 2])
        raise ProblemError(
            f"held data of {one.source!r}: byte {two.offset_bytes} lies at "
            f"{one.host!r} and at {two.host!r}; name one holder per byte"
        )


def _reject_held_beyond_storage(columns: HeldColumns, hosts: _Hosts) -> None:
    names = list(hosts.host_index)
    stored = columns.stored_bytes(len(names))
    stored[hosts.host_index[hosts.destination]] = 0
    beyond = np.flatnonzero(stored > hosts.storage_bytes)
    if len(beyond):
        i = int(beyond[0])
        raise ProblemError(
            f"host {names[i]!r}: it holds {stored[i]} bytes of others' data, storage_bytes is "
            f"{hosts.storage_bytes[i]:.0f}; raise storage_bytes or correct held"
        )


def whole_backlogs(names: Sequence[str], backlog_bytes: npt.ArrayLike) -> IntArray:
    """Return backlogs as whole numbers of bytes, or raise `ProblemError`."""
    values = (
        backlog_bytes
        if isinstance(backlog_bytes, np.ndarray)
        # As objects: among floats, whole numbers would lose digits.
        else np.array([*backlog_bytes, None], dtype=object)[:-1]
        if isinstance(backlog_bytes, list | tuple)
        else np.asarray(backlog_bytes)
    )
    if values.shape != (len(names),):
        raise ProblemError(
            f"backlog_bytes must have one number per host ({len(names)}), got shape {values.shape}"
        )
    for i, value in enumerate(values.tolist()):
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise ProblemError(f"host {names[i]!r}: backlog_bytes must be a number, got {value!r}")
        if value < 0 or value == math.inf:
            raise ProblemError(
                f"host {names[i]!r}: backlog_bytes must be >= 0 and finite, got {value}"
            )
        if value != int(value):
            raise ProblemError(
                f"host {names[i]!r}: backlog_bytes must be whole, got {value}; round it"
            )
    total = sum(int(value) for value in values.tolist())
    if total >= MAX_TOTAL_BYTES:
        raise ProblemError(
            f"all backlogs together must be below 2**62 bytes, got {total}; "
            "plan in parts, or count blocks instead of bytes"
        )
    return values.astype(np.int64)


def _require_indices(tail: IndexArray, head: IndexArray, n_hosts: int) -> None:
    for ends in (tail, head):
        if len(ends) and (ends.min() < 0 or ends.max() >= n_hosts):
            bad = ends.min() if ends.min() < 0 else ends.max()
            raise ProblemError(f"links must join hosts 0 ... {n_hosts - 1}, got index {bad}")
