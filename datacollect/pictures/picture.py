"""Contents of a picture of a schedule: rates of each host by source and peer, words, layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.pictures.colours import MAX_SERIES
from datacollect.schedule.data.belonging import require_belonging
from datacollect.schedule.data.tolerances import RATE_ROUNDING, TIME_TOLERANCE
from datacollect.schedule.data.use import legs

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.use import Legs
    from datacollect.schedule.schedule import Schedule

# Nobody reads more bands.
MAX_BANDS = 25
# Of more sources areas are thin: cutting them up by peers would hide more than it shows.
MAX_CUT_BY_PEER = 10
# Up to this many instants rates are exact; beyond, means over equal stretches, half a pixel wide.
MAX_INSTANTS = 1500
# Where a plan waits for long, the wait is shown as this part of what follows.
IDLE = 0.05


@dataclass(frozen=True, eq=False)
class Area:
    """Data of one source, or of several together, that a host sends to or receives from others.

    Attributes
    ----------
    series : int
        Index into `Picture.sources`.
    peer : str or None
        The host at the other end; None where peers are not shown apart.
    bytes_per_s : ndarray, shape (n_stretches,)
    """

    series: int
    peer: str | None
    bytes_per_s: FloatArray


@dataclass(frozen=True, eq=False)
class Band:
    """Activity of one host over time.

    Attributes
    ----------
    name : str
    sends, receives : tuple of Area
    stored_s, stored_bytes : ndarray, shape (n_points,)
        Others' data that it stores; linear between points.
    shows_storage : bool
        Whether these need a curve; the chunks of a pipeline do not.
    """

    name: str
    sends: tuple[Area, ...]
    receives: tuple[Area, ...]
    stored_s: FloatArray
    stored_bytes: FloatArray
    shows_storage: bool


@dataclass(frozen=True, eq=False)
class Picture:
    """Contents of a picture.

    Attributes
    ----------
    edges_s : ndarray, shape (n_stretches + 1,)
        Instants up to the makespan; rates are constant between them. The first is 0, or, where
        nothing moves in the first half, shortly before something does.
    mean_over_s : float or None
        Length of the stretches where rates are means over them; None where rates are exact.
    sources : tuple of str
        Names of sources by their series; where there are many, the last stands for all others.
    n_sources : int
        How many there are.
    bands : tuple of Band
        The busiest hosts from top to bottom: sources, sources that relay, relays, destination.
    n_hosts : int
        How many hosts take part.
    """

    edges_s: FloatArray
    mean_over_s: float | None
    sources: tuple[str, ...]
    n_sources: int
    bands: tuple[Band, ...]
    n_hosts: int

    @property
    def begin_s(self) -> float:
        """Return where the picture begins."""
        return float(self.edges_s[0])

    @property
    def end_s(self) -> float:
        """Return where it ends: at the makespan."""
        return float(self.edges_s[-1])


def picture_of(problem: Problem, schedule: Schedule, most_instants: int = MAX_INSTANTS) -> Picture:
    """Compute what a picture of a schedule shows; with more instants than `most`, mean rates.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> picture = picture_of(problem, dc.direct(problem))
    >>> [(band.name, len(band.sends), len(band.receives)) for band in picture.bands]
    [('S', 1, 0), ('D', 0, 1)]
    >>> picture.edges_s.tolist(), picture.bands[0].sends[0].bytes_per_s.tolist()
    ([0.0, 2.0], [5.0])
    """
    require_belonging(problem, schedule)
    where, n_bytes, n = legs(schedule, problem.names), schedule.columns.n_bytes, problem.n_hosts
    handled = np.bincount(where.tail, n_bytes, n) + np.bincount(where.head, n_bytes, n)
    handled[problem.destination_index] *= 2  # so that it is always among the busiest
    n_hosts = int(np.count_nonzero(handled))
    busiest = np.argsort(-handled, kind="stable")[: min(n_hosts, MAX_BANDS)]
    hosts = _from_top_to_bottom(problem, where, busiest)
    series_of_source, sources, n_sources = _series_of(problem, where, hosts)
    series = series_of_source[where.source]
    edges, mean_over_s = _edges(schedule, most_instants)
    sends = _areas(problem, schedule, edges, hosts, where.tail, where.head, series)
    receives = _areas(problem, schedule, edges, hosts, where.head, where.tail, series)
    passes_on = np.bincount(where.tail, np.where(where.tail == where.source, 0, n_bytes), n)
    table = schedule.storage()
    bands = []
    for host in hosts.tolist():
        curve = table[table["host"] == problem.names[host]]
        stored = curve["stored_bytes"].to_numpy(dtype=float)
        chunks_only = schedule.slot_s is None and stored.max(initial=0) <= 0.02 * passes_on[host]
        bands.append(
            Band(
                problem.names[host],
                tuple(sends[host]),
                tuple(receives[host]),
                curve["time_s"].to_numpy(dtype=float),
                stored,
                len(stored) > 0 and not chunks_only,
            )
        )
    return Picture(edges, mean_over_s, sources, n_sources, tuple(bands), n_hosts)


def _from_top_to_bottom(problem: Problem, where: Legs, hosts: IntArray) -> IntArray:
    has_data, relays = np.zeros(problem.n_hosts, bool), np.zeros(problem.n_hosts, bool)
    has_data[where.source] = True
    relays[where.tail[where.tail != where.source]] = True
    rank = np.where(has_data, np.where(relays, 1, 0), 2)
    rank[problem.destination_index] = 3
    return hosts[np.lexsort((hosts, rank[hosts]))]


def _series_of(
    problem: Problem, where: Legs, hosts: IntArray
) -> tuple[IntArray, tuple[str, ...], int]:
    """Return each host's series as a source, the names of the series, and how many sources."""
    is_source = np.zeros(problem.n_hosts, bool)
    is_source[where.source] = True
    shown = [host for host in hosts.tolist() if is_source[host]]
    others = sorted(set(np.flatnonzero(is_source).tolist()) - set(shown))
    if len(shown) + len(others) <= MAX_SERIES:
        # In the problem's order: they look the same in pictures of different methods.
        shown, others = sorted(shown + others), []
    series = np.full(problem.n_hosts, len(shown))
    series[shown] = np.arange(len(shown))
    names = [problem.names[host] for host in shown]
    if others:
        names.append(f"{len(others)} other sources")
    return series, tuple(names), len(shown) + len(others)


def _edges(schedule: Schedule, most: int) -> tuple[FloatArray, float | None]:
    columns, end_s = schedule.columns, schedule.makespan_s
    begin_s = float(columns.start_s.min(initial=end_s))
    begin_s = begin_s - IDLE * (end_s - begin_s) if begin_s > end_s / 2 else 0.0
    instants = np.unique(np.concatenate([[begin_s, end_s], columns.start_s, columns.finish_s]))
    apart = np.diff(instants, prepend=-math.inf) > TIME_TOLERANCE * end_s
    if np.count_nonzero(apart) <= most:
        first = instants[apart][: max(np.count_nonzero(apart) - 1, 1)]
        return np.append(first, end_s), None
    return np.linspace(begin_s, end_s, most), (end_s - begin_s) / (most - 1)


def _areas(
    problem: Problem,
    schedule: Schedule,
    edges_s: FloatArray,
    hosts: IntArray,
    host: IntArray,
    peer: IntArray,
    series: IntArray,
) -> dict[int, list[Area]]:
    """Return each shown host's areas, by series, then peer."""
    n = problem.n_hosts
    shown = np.isin(host, hosts)
    several = int(series.max(initial=0)) >= MAX_CUT_BY_PEER
    tell_apart = np.zeros_like(peer) if several else peer
    key = ((host * (series.max(initial=0) + 1) + series) * n + tell_apart)[shown]
    keys, row = np.unique(key, return_inverse=True)
    columns = schedule.columns
    start_s, finish_s = columns.start_s[shown], columns.finish_s[shown]
    rates = mean_rates(columns.n_bytes[shown], start_s, finish_s, row, len(keys), edges_s)
    areas: dict[int, list[Area]] = {int(i): [] for i in hosts}
    for j, (at, other) in enumerate(zip((keys // n).tolist(), (keys % n).tolist(), strict=True)):
        i, c = divmod(at, int(series.max()) + 1)
        areas[i].append(Area(c, None if several else problem.names[other], rates[j]))
    return areas


def mean_rates(
    n_bytes: IntArray,
    start_s: FloatArray,
    finish_s: FloatArray,
    row: IntArray,
    n_rows: int,
    edges_s: FloatArray,
) -> FloatArray:
    """Add up transfers at constant rate into mean rates between instants.

    Parameters
    ----------
    n_bytes, start_s, finish_s : ndarray, shape (n_transfers,)
    row : ndarray of int64, shape (n_transfers,)
        Where each transfer counts.
    n_rows : int
    edges_s : ndarray, shape (n_stretches + 1,)
        Increasing; from before the first start to after the last finish.

    Returns
    -------
    ndarray of float, shape (n_rows, n_stretches)
        Bytes per second; times the stretches' lengths these are exactly the bytes.

    Examples
    --------
    >>> mean_rates(
    ...     np.array([6]), np.array([1.0]), np.array([4.0]), np.array([0]), 1, np.array([0, 2, 4])
    ... ).tolist()
    [[1.0, 2.0]]
    """
    n_stretches = len(edges_s) - 1
    ends_s = np.append(edges_s[1:], edges_s[-1] + 1.0)
    length_s = ends_s - edges_s
    rate = n_bytes / (finish_s - start_s)
    steps = np.zeros((n_rows, n_stretches + 2))
    # A rate that sets in within a stretch counts there by its share, and fully in all later ones.
    for when_s, change in ((start_s, rate), (finish_s, -rate)):
        k = np.clip(np.searchsorted(edges_s, when_s, side="right") - 1, 0, n_stretches)
        share = np.clip((ends_s[k] - when_s) / length_s[k], 0.0, 1.0)
        np.add.at(steps, (row, k), change * share)
        np.add.at(steps, (row, k + 1), change * (1.0 - share))
    rates = np.cumsum(steps[:, :n_stretches], axis=1)
    # What subtraction leaves of a rate that has ended is rounding.
    rates[rates < RATE_ROUNDING * rates.max(axis=1, initial=0.0, keepdims=True)] = 0.0
    return rates
