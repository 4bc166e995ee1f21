"""New estimates of links, and the links of a problem with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.units import counted
from datacollect.problem.host_limits import LIMITS
from datacollect.problem.numbers import floats_of
from datacollect.problem.with_units import BANDWIDTH, INSTANT, PART, in_units, in_whole
from datacollect.schedule.data.tolerances import SAME_START

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem

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

    def __repr__(self) -> str:
        n_links, n_periods = len(self.link_from), len(self.periods_s)
        return f"<NewLinks: {counted(n_links, 'link')}, {counted(n_periods, 'period')}>"


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
