"""New estimates of links, and the links of a problem with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.units import counted
from datacollect.files.with_units import BANDWIDTH, INSTANT, PART, in_units, in_whole
from datacollect.problem.host_limits import LIMITS
from datacollect.problem.numbers import floats_of
from datacollect.schedule.data.tolerances import SAME_START

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.files.quantities import Seconds
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.named_links import LinksByName

# Of a problem: what has a row for each period.
PERIOD_COLUMNS = ("bandwidth_bytes_per_s", *LIMITS)


@dataclass(frozen=True, eq=False)
class NewLinks:
    """New estimates: they replace the problem's for these links, or add links.

    Attributes
    ----------
    link_from, link_to : ndarray of int64, shape (n_links,)
        Indices of hosts in the problem, no pair twice.
    bandwidth_bytes_per_s : ndarray of float, shape (n_periods, n_links)
    price_per_gb : ndarray of float, shape (n_links,)
        NaN keeps the problem's price; a new link without one is free.
    periods_s : ndarray of float, shape (n_periods,)
        Starts of their forecast's periods, in seconds from the progress' instant; the first 0.
    """

    link_from: IntArray
    link_to: IntArray
    bandwidth_bytes_per_s: FloatArray
    price_per_gb: FloatArray
    periods_s: FloatArray

    def __post_init__(self) -> None:
        for name in ("link_from", "link_to"):
            ends = np.asarray(in_whole(getattr(self, name), name), dtype=np.int64)
            object.__setattr__(self, name, ends)
        for name, kind in (
            ("bandwidth_bytes_per_s", BANDWIDTH),
            ("price_per_gb", PART),
            ("periods_s", INSTANT),
        ):
            numbers = floats_of(name, in_units(getattr(self, name), kind, name))
            object.__setattr__(self, name, numbers)

    @classmethod
    def from_names(
        cls, problem: Problem, links: LinksByName, *, periods_s: Sequence[Seconds] | None = None
    ) -> NewLinks:
        """Say new estimates by the hosts' names.

        Parameters
        ----------
        problem : Problem
            Whose hosts they are.
        links : mapping, Series or DataFrame
            Bandwidths in bytes per second, or texts with units: by (from, to); by from and then by
            to, as JSON has it; or a long table with columns ``from``, ``to`` and a bandwidth, such
            as `estimate` returns. In mappings a list has one number per period. Links that are not
            given stay as they are; 0 is no capacity.
        periods_s : sequence of float or str, optional
            Starts of the forecast's periods, in seconds from the progress' instant; the first 0.

        Returns
        -------
        NewLinks
            Prices stay the problem's, unless a table has a column ``price_per_gb``.

        Raises
        ------
        ProblemError
            A host is unknown, a link is from a host to itself, or a bandwidth is none.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.NewLinks.from_names(problem, {("S", "D"): "20 bit/s"}).bandwidth_bytes_per_s
        array([[2.5]])
        >>> dc.NewLinks.from_names(problem, {"S": {"D": [2.5, 5.0]}}, periods_s=[0, "1 h"])
        <NewLinks: 1 link, 2 periods>
        >>> dc.NewLinks.from_names(problem, {("S", "E"): 2.5})
        Traceback (most recent call last):
        datacollect.errors.ProblemError: links: unknown host 'E'; hosts are 'S', 'D'
        """
        from datacollect.schedule.data.named_links import columns_by_name

        return cls(**columns_by_name(problem, links, periods_s))

    def __repr__(self) -> str:
        n_links, n_periods = len(self.link_from), len(self.periods_s)
        return f"<NewLinks: {counted(n_links, 'link')}, {counted(n_periods, 'period')}>"


def both_links(earlier: NewLinks, later: NewLinks, n_hosts: int) -> NewLinks:
    """Return later estimates, and earlier ones of links that they do not name.

    Parameters
    ----------
    earlier, later : NewLinks
        Both from the same instant on.
    n_hosts : int
        How many hosts the problem has.

    Returns
    -------
    NewLinks
        In the periods of both.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "T", "D"], [[0, 0, 5.0], [0, 0, 5.0], [0, 0, 0]], [10, 10, 0], "D"
    ... )
    >>> earlier = dc.NewLinks.from_names(problem, {("S", "D"): 1.0, ("T", "D"): 2.0})
    >>> later = dc.NewLinks.from_names(problem, {("S", "D"): 3.0})
    >>> both_links(earlier, later, problem.n_hosts).bandwidth_bytes_per_s
    array([[2., 3.]])
    """
    number = [links.link_from * n_hosts + links.link_to for links in (earlier, later)]
    stays = ~np.isin(number[0], number[1])
    periods = np.union1d(earlier.periods_s, later.periods_s)
    rates = [
        _on_periods(links.bandwidth_bytes_per_s, links.periods_s, periods)
        for links in (earlier, later)
    ]
    return NewLinks(
        link_from=np.append(earlier.link_from[stays], later.link_from),
        link_to=np.append(earlier.link_to[stays], later.link_to),
        bandwidth_bytes_per_s=np.concatenate([rates[0][:, stays], rates[1]], axis=1),
        price_per_gb=np.append(earlier.price_per_gb[stays], later.price_per_gb),
        periods_s=periods,
    )


def with_new_links(problem: Problem, columns: dict[str, Any], new: NewLinks) -> dict[str, Any]:
    """Bring new estimates into a problem's columns of links.

    Parameters
    ----------
    problem : Problem
    columns : dict
        Its ``link_from``, ``link_to``, ``price_per_gb``, those of `PERIOD_COLUMNS`, and
        ``periods_s``, counted from the instant of the new estimates.
    new : NewLinks

    Returns
    -------
    dict
        The columns, with those that the new estimates change replaced.

    Raises
    ------
    ProblemError
        A link is given twice.
    """
    index = problem.link_indices(new.link_from, new.link_to)
    known, added = index >= 0, np.flatnonzero(index < 0)
    _reject_twice(problem, new, index)
    periods = np.union1d(columns["periods_s"], new.periods_s)
    periods = periods[np.diff(periods, prepend=-math.inf) > SAME_START * periods[-1]]
    finer = {
        key: _on_periods(columns[key], columns["periods_s"], periods) for key in PERIOD_COLUMNS
    }
    bandwidth = finer["bandwidth_bytes_per_s"]
    changed = _on_periods(new.bandwidth_bytes_per_s, new.periods_s, periods)
    bandwidth[:, index[known]] = changed[:, known]
    columns = columns | {
        **finer,
        "periods_s": periods,
        "price_per_gb": _prices_now(problem, new, index),
    }
    if len(added):
        columns = columns | {
            "bandwidth_bytes_per_s": np.concatenate([bandwidth, changed[:, added]], axis=1),
            "link_from": np.append(problem.link_from, new.link_from[added]),
            "link_to": np.append(problem.link_to, new.link_to[added]),
        }
    return columns


def _prices_now(problem: Problem, new: NewLinks, index: IntArray) -> FloatArray | None:
    """Prices of the problem's links, those given replaced, and of the added ones behind them."""
    prices, given, added = problem.price_per_gb, ~np.isnan(new.price_per_gb), index < 0
    if not given.any() and (prices is None or not added.any()):
        return prices
    prices = np.zeros(problem.n_links) if prices is None else prices.copy()
    prices[index[given & ~added]] = new.price_per_gb[given & ~added]
    return np.append(prices, np.nan_to_num(new.price_per_gb[added]))


def _on_periods(rates: FloatArray, starts_s: FloatArray, periods_s: FloatArray) -> FloatArray:
    """Repeat rows of rates for finer periods."""
    middle = periods_s + SAME_START * periods_s[-1]
    rows: FloatArray = rates[np.searchsorted(starts_s, middle, side="right") - 1]
    return rows


def _reject_twice(problem: Problem, new: NewLinks, index: IntArray) -> None:
    named = np.zeros(problem.n_links, dtype=bool)
    named[index[index >= 0]] = True
    key = new.link_from * problem.n_hosts + new.link_to
    if np.count_nonzero(named) + len(np.unique(key[index < 0])) == len(key):
        return
    key.sort()
    tail, head = divmod(int(key[np.flatnonzero(np.diff(key) == 0)[0]]), problem.n_hosts)
    raise ProblemError(
        f"progress: links: {problem.names[tail]!r} -> {problem.names[head]!r} given twice; keep one"
    )
