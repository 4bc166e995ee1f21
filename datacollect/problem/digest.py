"""Hashes of what a problem says: equal for equal problems, however they were built."""

from __future__ import annotations

import hashlib
from datetime import UTC
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.host_limits import LIMITS, is_constant
from datacollect.problem.rules import HOST_COLUMNS
from datacollect.problem.windows import DAY_S, RECURRING_DAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from datacollect.numbers.arrays import IntArray
    from datacollect.problem.contents import ProblemContents
    from datacollect.problem.hosts import DailyPeriods, HeldColumns
    from datacollect.problem.open_links import OpenLinks


def of_links(problem: ProblemContents) -> bytes:
    """Hash which links there are."""
    return _sha256(problem.link_from, problem.link_to)


def of_bandwidth(problem: ProblemContents) -> bytes:
    """Hash the links' bandwidths and when they change."""
    if problem.daily is not None and problem.daily.windows:
        return _of_calendar(problem, problem.daily)
    return _sha256(problem.periods_s, problem.bandwidth_bytes_per_s)


def _of_calendar(problem: ProblemContents, daily: DailyPeriods) -> bytes:
    """Hash hours that recur for ever, however far they are listed.

    In one time zone the days among which all recurs tell the rest. Where clocks of several zones
    change on other days, the windows as they are written tell it.
    """
    clock = problem.clock
    assert clock is not None
    assert daily.nominal is not None
    recur = _rows_that_recur(problem)
    zones = {window.zone or str(clock.zone) for limit in daily.windows for window in limit.windows}
    written = sorted(map(repr, map(_spelled, daily.windows))) if len(zones) > 1 else []
    return _sha256(
        repr((clock.start.astimezone(UTC).isoformat(), sorted(zones), daily.hours)).encode(),
        repr(written).encode(),
        problem.periods_s[recur],
        problem.bandwidth_bytes_per_s[recur],
        daily.nominal.of_links(problem),
    )


def _spelled(limit: OpenLinks) -> tuple[Any, ...]:
    """Return whose windows they are, and what they say, in one order."""
    windows = [
        (window.opens, window.closes, sorted(window.days), window.zone or "")
        for window in limit.windows
    ]
    return limit.from_host or "", limit.to_host or "", sorted(windows)


def _rows_that_recur(problem: ProblemContents) -> slice:
    """Return the periods of the days among which all recurs; where nothing does, all of them."""
    if problem.daily is None or not problem.daily.windows:
        return slice(None)
    return slice(int(np.searchsorted(problem.periods_s, RECURRING_DAYS * DAY_S)))


def of_shared(problem: ProblemContents, shared_links: Sequence[IntArray]) -> bytes:
    """Hash shared bottlenecks, given the indices of each one's links."""
    # One type each: the hash reads 5, 5.0 and np.float64(5) as they are written.
    rates = [(str(s.name), float(s.bandwidth_bytes_per_s)) for s in problem.shared]
    wires = [_numbers(s.capacity_bytes_per_s, s.competitors) for s in problem.shared]
    more = [repr(wires).encode()] if any(any(wire) for wire in wires) else []
    return _sha256(repr(rates).encode(), *(np.sort(members) for members in shared_links), *more)


def _numbers(*values: float | None) -> tuple[str, ...]:
    return tuple("" if value is None else repr(float(value)) for value in values)


def of_all(
    problem: ProblemContents, held: HeldColumns, links: bytes, bandwidth: bytes, shared: bytes
) -> str:
    """Hash a problem, given the hashes of its larger parts: a hash of hashes.

    What a copy has in common with the original need not be hashed again.
    """
    order = np.lexsort(held[::-1])
    return _sha256(
        repr((problem.names, problem.destination)).encode(),
        *(column[order] for column in held),
        *(_of_hosts(problem, key) for key in HOST_COLUMNS),
        links,
        bandwidth,
        b"" if problem.price_per_gb is None else problem.price_per_gb,
        shared,
        *_parts_of_connections(problem),
        *_parts_of_production(problem),
    ).hex()


def _of_hosts(problem: ProblemContents, key: str) -> npt.NDArray[Any]:
    """Return a column of hosts; of a constant limit one row, as before limits could vary."""
    column: npt.NDArray[Any] = getattr(problem, key)
    if key not in LIMITS:
        return column.ravel()
    return column[0] if is_constant(column) else column[_rows_that_recur(problem)].ravel()


def _parts_of_connections(problem: ProblemContents) -> list[bytes | npt.NDArray[Any]]:
    """Return what is known of connections: nothing where nothing is, lest older hashes change."""
    columns = [getattr(problem, key) for key in (*RATE_COLUMNS, "most_connections")]
    if all(column is None for column in columns):
        return []
    return [b"" if column is None else column for column in columns]


def _parts_of_production(problem: ProblemContents) -> list[bytes | npt.NDArray[Any]]:
    """Return what sources make; nothing where all is there, lest older hashes change."""
    if problem.produces_bytes_per_s is None or problem.made_bytes is None:
        return []
    return [b"production", problem.produces_bytes_per_s, problem.made_bytes]


def _sha256(*parts: bytes | npt.NDArray[Any]) -> bytes:
    """Hash parts, each with its length: no two sequences of parts look alike."""
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else np.ascontiguousarray(part).data
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()
