"""Growth of a path's rate with the number of connections: b(n) = C n / (n + m).

`datacollect.problem.connection_rates` says where that is from. Rates scatter by tens of per cent
from test to test; fitted together from so few, C and m are off by half. So C comes from packet
pairs, and m alone is fitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray

# The rate still grows by the connection where the most of them get this part of that.
GROWN = 0.8


def competitors(
    capacity_bytes_per_s: float, n: npt.ArrayLike, rate_bytes_per_s: npt.ArrayLike
) -> float:
    """Return m, the number of others' connections that explains the rates best.

    The least sum of squares of what each rate is off the curve's, as a part of the curve's: rates
    scatter by about the same part of what they should be. By parts of the rates themselves one
    that is low by chance would count most, and m come out a fifth too large. With b (n + m)/(C n)
    linear in m, it is m = Σ a (1 - b/C) / Σ a², with a = b/(C n).

    Parameters
    ----------
    capacity_bytes_per_s : float
        C, from packet pairs.
    n : array_like of int
        Numbers of connections, one for each test.
    rate_bytes_per_s : array_like of float
        What all connections of the test got together.

    Raises
    ------
    ProblemError
        The tests are none.

    Examples
    --------
    >>> round(competitors(12.0, [1, 2, 4], [4.0, 6.0, 8.0]), 6)
    2.0
    """
    count, rate = _tests(n, rate_bytes_per_s)
    if not capacity_bytes_per_s > 0:
        raise ProblemError(f"capacity_bytes_per_s must be > 0, got {capacity_bytes_per_s!r}")
    part = rate / capacity_bytes_per_s
    a = part / count
    return max(float((a * (1 - part)).sum() / (a * a).sum()), 0.0)


def per_connection_bytes_per_s(n: npt.ArrayLike, rate_bytes_per_s: npt.ArrayLike) -> float:
    """Return what one connection gets, where pairs cannot tell C: no m follows then.

    The mean of the tests with one connection, or of those with the fewest, by connection.

    Parameters
    ----------
    n, rate_bytes_per_s : array_like
        As in `competitors`.

    Raises
    ------
    ProblemError
        The tests are none.

    Examples
    --------
    >>> per_connection_bytes_per_s([1, 2, 4, 8], [40e6, 75e6, 110e6, 115e6])
    40000000.0
    """
    count, rate = _tests(n, rate_bytes_per_s)
    fewest = count == count.min()
    return float((rate[fewest] / count[fewest]).mean())


def link_rates(
    n: npt.ArrayLike, rate_bytes_per_s: npt.ArrayLike, known: tuple[float, float] | None
) -> dict[str, float]:
    """Return what problem files say of a link with these rates: their keys, and numbers that agree.

    Parameters
    ----------
    n, rate_bytes_per_s : array_like
        As in `competitors`.
    known : (float, float) or None
        C and m. Without, the rate grows by the connection as far as has been seen; where it stopped
        growing before, no link gets more than the most that was seen.

    Examples
    --------
    >>> link_rates([1, 2, 4], [4.0, 6.0, 8.0], (12.0, 2.0))
    {'bandwidth_bytes_per_s': 4.0, 'capacity_bytes_per_s': 12.0, 'competitors': 2.0}
    >>> link_rates([1, 2, 4], [4.0, 8.0, 16.0], None)
    {'bandwidth_bytes_per_s': 4.0, 'per_connection_bytes_per_s': 4.0}
    """
    if known is not None:
        c, m = known
        b = c / (1 + m)
        return {"bandwidth_bytes_per_s": b, "capacity_bytes_per_s": c, "competitors": m}
    count, rate = _tests(n, rate_bytes_per_s)
    r, most = per_connection_bytes_per_s(count, rate), float(rate.max())
    grown = {"bandwidth_bytes_per_s": r, "per_connection_bytes_per_s": r}
    if most >= GROWN * r * float(count.max()):
        return grown
    return grown | {"capacity_bytes_per_s": max(most, r), "competitors": 0.0}


def mathis_bytes_per_s(rtt_s: float, loss: float, mss_bytes: int = 1448) -> float:
    """Return the most that one connection gets at a loss: 1.22 MSS / (RTT √p).

    A cross-check of tests: who gets much more was not limited by this loss. Infinite without any
    (Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance
    algorithm", Computer Communication Review 27, 1997).

    Parameters
    ----------
    rtt_s : float
        > 0.
    loss : float
        The part p of the packets that is lost, from 0 to 1.
    mss_bytes : int

    Raises
    ------
    ProblemError
        A number is out of range.

    Examples
    --------
    >>> round(mathis_bytes_per_s(0.122, 8e-4, 1460))
    516188
    """
    if not rtt_s > 0:
        raise ProblemError(f"rtt_s must be > 0, got {rtt_s!r}")
    if not 0 <= loss <= 1:
        raise ProblemError(f"loss must be a part from 0 to 1, got {loss!r}")
    return float("inf") if loss == 0 else 1.22 * mss_bytes / (rtt_s * loss**0.5)


def _tests(n: npt.ArrayLike, rate_bytes_per_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    count, rate = np.asarray(n, dtype=float), np.asarray(rate_bytes_per_s, dtype=float)
    if count.ndim != 1 or count.shape != rate.shape or not len(count):
        raise ProblemError(
            f"n and rate_bytes_per_s must be lists of the same tests, at least one, got shapes "
            f"{count.shape} and {rate.shape}"
        )
    if not ((count >= 1).all() and (rate > 0).all() and np.isfinite(rate).all()):
        raise ProblemError(
            "tests must have at least one connection and a rate > 0, got "
            f"{count.tolist()} and {rate.tolist()}; leave out those that failed"
        )
    return count, rate
