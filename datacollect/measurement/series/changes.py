"""Change points of a pair's bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from datacollect.installation import is_absent
from datacollect.measurement.routes import agree, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from datacollect.measurement.routes import Hop
    from datacollect.numbers.arrays import FloatArray

# Of samples of a minute whose logarithms have autocorrelation 0.3: a third of a false alarm a day,
# and a rate that is halved, at a standard deviation of 0.15, is seen at the second sample in 85 %.
WINDOW = 60
DEVIATIONS = 3.0

# Fewer samples do not tell what is usual; two more may deviate from it.
FEWEST = 20
LEAST_SAMPLES = FEWEST + 2

# The median absolute deviation of the normal distribution is its standard deviation by this; rates
# that are written in few digits may not deviate at all, and a hundredth is no change.
NORMAL = 1.4826
LEAST_DEVIATION = 0.01

# A change that the whole series confirms: so many samples of each level, found so near, at a price
# beyond what levels differ by chance. Of samples of a minute, at standard deviation 0.15 and an
# autocorrelation up to 0.3, no flag was confirmed in 40 days without a change (0.15 a day at 0.6),
# and each of 200 halved rates was, at the fifth sample.
LEAST_LEVEL = 5
PENALTY = 8.0

# What has a logarithm, in place of 0.
NOTHING_BYTES_PER_S = 1e-9


def flag_changes(bandwidth_bytes_per_s: npt.ArrayLike) -> list[int]:
    """Return the samples at which a change is seen: the second of two in a row that deviate.

    Both deviate to the same side by more than three robust standard deviations of the logarithm
    from the median of the 60 samples before the two. Of more in a row the first two count.

    Parameters
    ----------
    bandwidth_bytes_per_s : array_like of float, shape (n,)
        In order of time; 0 where nothing came, NaN where there was no test.

    Returns
    -------
    list of int
        Indices of samples.

    Examples
    --------
    >>> flag_changes([9.0, 10.0, 11.0] * 10 + [5.0, 5.1, 5.0])
    [31]
    """
    y = np.asarray(bandwidth_bytes_per_s, dtype=float)
    tested = np.flatnonzero(~np.isnan(y))
    if len(tested) < LEAST_SAMPLES:
        return []
    log = np.log(np.maximum(y[tested], NOTHING_BYTES_PER_S))
    second = np.arange(FEWEST + 1, len(log))
    # Row k: the samples before the two of which the later one is second[k].
    padded = np.concatenate([np.full(WINDOW, np.nan), log])
    before = sliding_window_view(padded, WINDOW)[second - 1]
    off = [_side(before, log[second - back]) for back in (1, 0)]
    deviate = (off[0] == off[1]) & (off[0] != 0)
    begins = deviate & ~np.append(False, deviate[:-1])
    return [int(i) for i in tested[second[begins]]]


def confirm_changes(
    bandwidth_bytes_per_s: npt.ArrayLike, flagged: Sequence[int]
) -> list[bool] | None:
    """Tell of each flagged sample whether the samples after it confirm that the level has changed.

    The whole series is cut into levels, by their number at a price (kernel change point detection:
    Celisse, Marot, Pierre-Jean and Rigaill, "New efficient algorithms for multiple change-point
    detection with reproducing kernels", Computational Statistics & Data Analysis 128, 2018): a
    flag is confirmed where one begins. Later samples may confirm what the newest do not yet.

    Parameters
    ----------
    bandwidth_bytes_per_s : array_like of float, shape (n,)
        As for `flag_changes`.
    flagged : sequence of int
        What it returned.

    Returns
    -------
    list of bool, or None
        One for each flag; None where ruptures is not installed.

    Examples
    --------
    >>> series = [9.0, 10.0, 11.0] * 10 + [5.0, 5.1, 5.0]
    >>> confirm_changes(series, [31]), confirm_changes(series + [5.0, 5.1, 5.0], [31])
    ([False], [True])
    """
    try:
        from ruptures import KernelCPD
    except ImportError as error:
        if not is_absent(error, "ruptures"):
            raise
        return None
    y = np.asarray(bandwidth_bytes_per_s, dtype=float)
    tested = np.flatnonzero(~np.isnan(y))
    if not flagged or len(tested) < 2 * LEAST_LEVEL:
        return [False] * len(flagged)
    log = np.log(np.maximum(y[tested], NOTHING_BYTES_PER_S))
    noise = NORMAL * float(np.median(np.abs(np.diff(log)))) / np.sqrt(2)
    levels = KernelCPD(kernel="linear", min_size=LEAST_LEVEL).fit(
        (log / max(noise, LEAST_DEVIATION))[:, None]
    )
    begins = np.array(levels.predict(pen=PENALTY * np.log(len(log)))[:-1])
    first = np.searchsorted(tested, flagged) - 1
    near = np.abs(begins[:, None] - first) < LEAST_LEVEL
    return [bool(so) for so in near.any(axis=0) & (first <= len(log) - LEAST_LEVEL)]


def _side(before: FloatArray, log: FloatArray) -> FloatArray:
    """Return 1 or -1 where a sample deviates upwards or downwards from those before, else 0."""
    middle = _medians(before)
    spread = NORMAL * _medians(np.abs(before - middle[:, None]))
    off = (log - middle) / np.maximum(spread, LEAST_DEVIATION)
    return np.asarray(np.where(np.abs(off) > DEVIATIONS, np.sign(off), 0.0))


def _medians(rows: FloatArray) -> FloatArray:
    """Return the median of each row, NaN left out."""
    ordered = np.sort(rows, axis=1)  # NaN last
    n, at = (~np.isnan(rows)).sum(axis=1), np.arange(len(rows))
    return np.asarray((ordered[at, (n - 1) // 2] + ordered[at, n // 2]) / 2)


def route_changes(traces: Iterable[Sequence[Hop]]) -> Iterator[int]:
    """Yield the traces at which a new route is seen: the second of two equal ones in a row.

    A single trace that differs is a packet that went astray. A router that is silent in one of two
    traces makes them no different.

    Parameters
    ----------
    traces : iterable of sequences
        In order of time, each of one path: addresses, None where a router was silent.

    Examples
    --------
    >>> list(route_changes([["a"], ["b"], [None], ["c"], ["c"], ["c"], ["a"]]))
    [4]
    """
    route: Sequence[Hop] | None = None
    new: Sequence[Hop] | None = None
    for i, trace in enumerate(traces):
        if route is None or agree(trace, route):
            route, new = merged(trace, route or trace), None
        elif new is not None and agree(trace, new):
            route, new = merged(trace, new), None
            yield i
        else:
            new = trace
