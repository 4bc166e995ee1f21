"""Draws of bandwidths: what links may carry next, from whole cycles of tests or from intervals.

Of cycles, whole ones are drawn: links that are slow together stay so. Each leads equally often; a
link that it has not tested is as in the next cycle of a random order that has. Of intervals, which
say nothing of what goes together, each link is drawn by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.clock_times import is_clock_time
from datacollect.files.units import counted, format_duration, format_rate
from datacollect.measurement.daily import periods_of_day
from datacollect.measurement.outcomes import listed
from datacollect.problem.bandwidth_intervals import HIGH, LOW
from datacollect.problem.link_table import SINCE_1970_S
from datacollect.problem.within_intervals import WITHIN, ends_of_intervals

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.measurement.cycles import Cycles
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem

Origin: TypeAlias = Literal["cycles", "intervals"]

# Means of tests that differ by more from what the problem says are told.
UNLIKE = 1.25


@dataclass(frozen=True, eq=False)
class Draws:
    """Bandwidths of links in some scenarios; those of other links do not matter.

    Attributes
    ----------
    links : ndarray of int, shape (n_links,)
        Indices of the problem's links.
    factors : ndarray of float, shape (n_scenarios, n_links)
        What a link carries there, over its bandwidth in the problem, in all periods.
    origin : {"cycles", "intervals"}
    n_cycles : int
        How many cycles were drawn from; 0 for intervals.
    varies : ndarray of bool, shape (n_links,)
        Of which links something is known; the others carry what the problem says.
    notes : tuple of str
        What was left out, and what is to be known of the rest.
    """

    links: IntArray
    factors: FloatArray
    origin: Origin
    n_cycles: int
    varies: BoolArray
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Return how many scenarios there are."""
        return len(self.factors)


def draws_from(
    problem: Problem, links: IntArray, cycles: Cycles | None, n: int, seed: int
) -> Draws:
    """Return scenarios: from cycles, or, where there are none, from the problem's intervals.

    Links of which cycles say nothing vary within their intervals, where the problem has some.

    Raises
    ------
    ProblemError
        Cycles have no link of the problem, or there are neither cycles nor intervals.
    """
    random = np.random.default_rng(seed)
    low, high = ends_of_intervals(problem, links)
    has_interval = (low != 1.0) | (high != 1.0)
    if cycles is None:
        if not problem.bandwidth_intervals:
            raise ProblemError(
                f"no link of the problem has an interval ({LOW}, {HIGH}), from which scenarios "
                "could be drawn; give --samples DIR (samples, in Python), a folder of measurements"
            )
        drawn = _within(low, high, n, random)
        notes = [_fixed(problem, links[~has_interval])]
        return Draws(links, drawn, "intervals", 0, has_interval, _said(notes))
    link = _links_of(problem, cycles)
    table, n_cycles = _table(problem, links, cycles, link)
    is_tested = ~np.isnan(table).all(axis=0)
    drawn = np.where(is_tested, _by_cycles(table, n, random), _within(low, high, n, random))
    varies = is_tested | has_interval
    notes = [
        *cycles.notes,
        _other_links(cycles, link),
        _older(problem, cycles),
        _unlike(problem, links, table),
        _fixed(problem, links[~varies]),
    ]
    return Draws(links, drawn, "cycles", n_cycles, varies, _said(notes))


# Of intervals ---------------------------------------------------------------------------------


def _within(low: FloatArray, high: FloatArray, n: int, random: np.random.Generator) -> FloatArray:
    """Draw between the ends, which lie at 5 % and at 95 %, with 1 in the middle of all."""
    z = np.clip(random.standard_normal((n, len(low))) / WITHIN, -1.0, 1.0)
    found: FloatArray = 1.0 + np.where(z < 0, (1.0 - low) * z, (high - 1.0) * z)
    return found


# Of cycles ------------------------------------------------------------------------------------


def _by_cycles(table: FloatArray, n: int, random: np.random.Generator) -> FloatArray:
    """Draw whole cycles; `table` has a row for each, NaN where a link was not tested."""
    n_cycles, n_links = table.shape
    is_known, each = ~np.isnan(table), np.arange(n_links)
    leads = random.permutation(n_cycles)
    factors = np.empty((n, n_links))
    for i in range(n):
        order = random.permutation(n_cycles)
        order = np.concatenate([leads[[i % n_cycles]], order[order != leads[i % n_cycles]]])
        factors[i] = table[order[is_known[order].argmax(axis=0)], each]
    return factors


def _table(
    problem: Problem, links: IntArray, cycles: Cycles, link: IntArray
) -> tuple[FloatArray, int]:
    """Return each cycle's factors of links, shape (n_cycles, n_links), and how many cycles.

    `link` is that of each sample, -1 where the problem has no such.
    """
    samples = cycles.samples
    if not (link >= 0).any():
        hosts = sorted({*samples["from"], *samples["to"]})
        raise ProblemError(
            "no sample is of a link of the problem: the samples are of the hosts "
            f"{listed(hosts)}, the problem's hosts are {listed(problem.names)}; name a folder "
            "with samples of the problem's hosts, or rename hosts"
        )
    numbers, cycle = np.unique(samples["cycle"].to_numpy()[link >= 0], return_inverse=True)
    place = np.full(problem.n_links, -1, dtype=np.int64)
    place[links] = np.arange(len(links))
    counts = place[link[link >= 0]] >= 0
    used = np.flatnonzero(link >= 0)[counts]
    at = cycle[counts] * len(links) + place[link[used]]
    shape = len(numbers), len(links)
    factor = _factors(problem, link[used], samples.iloc[used])
    total = np.bincount(at, factor, shape[0] * shape[1]).reshape(shape)
    times = np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape)
    return np.where(times > 0, total / np.maximum(times, 1), np.nan), len(numbers)


def _links_of(problem: Problem, cycles: Cycles) -> IntArray:
    """Return the link of each sample; -1 where the problem has no such."""
    import pandas as pd

    ends = []
    for end in ("from", "to"):
        number, names = pd.factorize(cycles.samples[end])
        known_as = [problem.host_index.get(str(name), -1) for name in names]
        ends.append(np.array(known_as, dtype=np.int64)[number])
    tail, head = ends
    found = np.full(len(tail), -1, dtype=np.int64)
    known = (tail >= 0) & (head >= 0)
    found[known] = problem.link_indices(tail[known], head[known])
    return found


def _factors(problem: Problem, link: IntArray, samples: pd.DataFrame) -> FloatArray:
    """Return each sample's rate over what the problem says of its link.

    Where bandwidths change with time, over the mean of the link's samples in the same hours: what
    each hour brings, the problem says.
    """
    rate = samples["bandwidth_bytes_per_s"].to_numpy(dtype=float)
    if problem.n_periods == 1:
        said = problem.bandwidth_bytes_per_s[0, link]
        # What is closed for the plan stays so.
        over: FloatArray = np.divide(rate, said, out=np.ones(len(rate)), where=said > 0)
        return over
    period = np.zeros(len(link), dtype=np.int64)
    hours = () if problem.daily is None else problem.daily.hours
    zone = None if problem.clock is None else getattr(problem.clock.zone, "key", None)
    if hours and zone is not None and all(map(is_clock_time, hours)):
        period = periods_of_day(samples, hours, zone)
    _, group = np.unique(np.stack([link, period]), axis=1, return_inverse=True)
    group = group.ravel()
    found: FloatArray = rate / (np.bincount(group, rate) / np.bincount(group))[group]
    return found


# What is to be known of them ------------------------------------------------------------------


def _said(notes: list[str | None]) -> tuple[str, ...]:
    return tuple(text for text in notes if text is not None)


def _other_links(cycles: Cycles, link: IntArray) -> str | None:
    others = cycles.samples[link < 0]
    if others.empty:
        return None
    pairs = sorted({f"{a} -> {b}" for a, b in zip(others["from"], others["to"], strict=True)})
    return f"left out, as the problem has no such links: samples of {listed(pairs, 3)}"


def _older(problem: Problem, cycles: Cycles) -> str | None:
    measured_s = problem.measured_s
    if measured_s is None or not SINCE_1970_S < cycles.newest_s < measured_s:
        return None
    older = format_duration(measured_s - cycles.newest_s)
    return (
        f"the newest sample is {older} older than the problem's bandwidths: what has changed since "
        "is not in the scenarios; measure a cycle"
    )


def _unlike(problem: Problem, links: IntArray, table: FloatArray) -> str | None:
    """Say where tests have found other bandwidths than the problem says."""
    times = np.sum(~np.isnan(table), axis=0)
    mean = np.divide(np.nansum(table, axis=0), times, out=np.ones(len(links)), where=times > 0)
    beyond = np.flatnonzero((mean > UNLIKE) | (mean < 1 / UNLIKE))
    if not len(beyond):
        return None
    worst = links[beyond[np.argmax(np.abs(np.log(np.maximum(mean[beyond], 1e-9))))]]
    said = float(problem.bandwidth_bytes_per_s[:, worst].mean())
    found = said * float(mean[np.flatnonzero(links == worst)[0]])
    return (
        f"tests have found other bandwidths than the problem says, by more than a quarter, of "
        f"{counted(len(beyond), 'link')}, such as {_name(problem, int(worst))}: "
        f"{format_rate(found)}, in the problem {format_rate(said)}; scenarios have what tests found"
    )


def _name(problem: Problem, link: int) -> str:
    names = problem.names
    return f"{names[problem.link_from[link]]} -> {names[problem.link_to[link]]}"


def _fixed(problem: Problem, links: IntArray) -> str | None:
    """Say of which links nothing is known."""
    pairs = [_name(problem, link) for link in links.tolist()]
    if not pairs:
        return None
    have, carry = ("has", "carries") if len(pairs) == 1 else ("have", "carry")
    return (
        f"{counted(len(pairs), 'link')} that the plan uses {have} neither samples nor an interval, "
        f"and {carry} in all scenarios what the problem says: {listed(pairs, 3)}"
    )
