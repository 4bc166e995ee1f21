"""One whole cycle of a calendar: what can ever happen, without listing years.

Windows and daily hours recur: every week, and where clocks of several zones change, or slots
begin at other hours each day, every year. What is open at once in one cycle is all that ever is.
So data can pass for ever, or never: a source waits for hours in which its links are open, a relay
with storage for hours in which it can pass on, and a relay without storage passes on at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from datacollect.problem.calendar import YEAR_S, listed
from datacollect.problem.host_limits import LIMITS, is_constant
from datacollect.problem.open_links import alike, limited_links, open_at
from datacollect.problem.windows import DAY_S, RECURRING_DAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.files.clock import Clock
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.hosts import DailyPeriods
    from datacollect.problem.open_links import OpenLinks
    from datacollect.problem.problem import Problem

FORTNIGHT_S = 14 * DAY_S
_WEEK_S = 7 * 86_400

# A whole byte in a slot, but for rounding.
_A_BYTE = 1 - 1e-9


@dataclass(frozen=True)
class Pattern:
    """Set of links that are open at once for a while.

    Attributes
    ----------
    hours : frozenset of int
        Rows of the day's, or the week's, hours that it touches: one, or several in a slot.
    is_open : tuple of bool
        Whether each of the differing windows is open.
    """

    hours: frozenset[int]
    is_open: tuple[bool, ...]


def has_windows(problem: Problem) -> bool:
    """Return whether links or hosts of a problem are open for some hours only."""
    return problem.daily is not None and bool(problem.daily.windows)


def cycle_s(problem: Problem) -> float:
    """Return a time in which all that ever happens on a calendar happens once.

    Two weeks, or a year where clocks of several zones change on other days.
    """
    daily, clock = _calendar(problem)
    zones = {window.zone or str(clock.zone) for limit in daily.windows for window in limit.windows}
    return FORTNIGHT_S if len(zones) == 1 else YEAR_S


def lists_a_cycle(problem: Problem) -> bool:
    """Return whether a whole cycle of the calendar is listed."""
    assert problem.daily is not None
    return problem.daily.until_s >= cycle_s(problem)


def stranded_hosts(problem: Problem, slot_s: float | None = None) -> list[int]:
    """Return the hosts whose data can never arrive, as one whole cycle shows.

    Parameters
    ----------
    problem : Problem
        With windows.
    slot_s : float, optional
        Store and forward in slots of this many seconds: data pass one hop in each, over links that
        are open all the while.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_hosts(
    ...     [dc.Host("S", 10), dc.Host("K", storage_bytes=0), dc.Host("D")],
    ...     [dc.Link("S", "K", 1.0, open="08:00-20:00"), dc.Link("K", "D", 1.0, open="20:00-8:00")],
    ...     "D", start="2026-06-01T12:00", timezone="UTC",
    ... )
    >>> stranded_hosts(problem), stranded_hosts(problem.replace(storage_bytes=10.0))
    ([0], [])
    """
    return _shortest_proof(problem, slot_s, _stranded)


def slots_fit_soon(problem: Problem, slot_s: float) -> bool:
    """Return whether all data can arrive in slots of this many seconds, as the first days show."""
    return not _stranded(problem, patterns_until(problem, RECURRING_DAYS * DAY_S, slot_s), slot_s)


def stranded_if_open(problem: Problem) -> list[int]:
    """Return the hosts whose data could not arrive even if all were open at all hours."""
    daily, _ = _calendar(problem)
    hours = range(max(len(daily.hours), 1))
    every = [Pattern(frozenset((i,)), (True,) * len(alike(daily.windows))) for i in hours]
    return _stranded(problem, every, None)


def windows_without_slot(problem: Problem, slot_s: float) -> list[list[OpenLinks]]:
    """Return the windows, alike together, in whose hours no whole slot ever lies."""
    daily, _ = _calendar(problem)
    groups = list(alike(daily.windows).values())

    def never(patterns: list[Pattern]) -> list[int]:
        return [i for i in range(len(groups)) if not any(each.is_open[i] for each in patterns)]

    found = _shortest_proof(problem, slot_s, lambda _, patterns, __: never(patterns))
    return [groups[i] for i in found]


def _shortest_proof(
    problem: Problem,
    slot_s: float | None,
    missing: Callable[[Problem, list[Pattern], float | None], list[int]],
) -> list[int]:
    """Return what is missing in a whole cycle; where a part has it all, look no further."""
    found: list[int] = []
    for until_s in sorted({RECURRING_DAYS * DAY_S, _whole_s(problem, slot_s)}):
        found = missing(problem, patterns_until(problem, until_s, slot_s), slot_s)
        if not found:
            break
    return found


def _whole_s(problem: Problem, slot_s: float | None) -> float:
    """Return a whole cycle; of slots one in which they begin at all hours of the week."""
    least_s = max(RECURRING_DAYS * DAY_S, cycle_s(problem))
    if slot_s is None:
        return least_s
    slot = Fraction(slot_s).limit_denominator(10**6)
    common_s = math.inf if not slot else float(slot * _WEEK_S / _common(slot))
    clock = _calendar(problem)[1]
    moves = len({clock.moment(day * DAY_S).utcoffset() for day in range(0, 371, 7)}) > 1
    return YEAR_S if moves else min(YEAR_S, max(least_s, common_s + DAY_S))


def _common(slot: Fraction) -> Fraction:
    """Return the longest time of which a slot and a week are multiples."""
    return Fraction(math.gcd(slot.numerator, _WEEK_S * slot.denominator), slot.denominator)


def patterns_until(problem: Problem, until_s: float, slot_s: float | None = None) -> list[Pattern]:
    """Return what is open at once, until an instant: each pattern once.

    In slots: what is open for a whole slot.
    """
    daily, clock = _calendar(problem)
    starts, which = listed(replace(daily, until_s=until_s), clock)
    starts, which = starts[:-1], which[:-1]  # the last begins when the listing ends
    rows = [open_at(windows, clock, starts, until_s) for windows in alike(daily.windows)]
    flags = np.array(rows, dtype=bool).T.reshape(len(starts), -1)
    if slot_s is None:
        both = np.unique(np.column_stack([which, flags]), axis=0)
        return [Pattern(frozenset((row[0],)), tuple(map(bool, row[1:]))) for row in both.tolist()]
    found: dict[Pattern, None] = {}
    for first, last in _slots(starts, until_s, slot_s):
        hours = frozenset(which[first:last].tolist())
        throughout: BoolArray = np.logical_and.reduce(flags[first:last], axis=0)
        found.setdefault(Pattern(hours, tuple(throughout.tolist())))
    return list(found)


def _slots(starts_s: FloatArray, until_s: float, slot_s: float) -> Iterator[tuple[int, int]]:
    """Yield the periods, from the first to before the last, of slots: of those alike one.

    In each period the first slot that lies within it, and each slot in which another begins.
    """
    ends = np.append(starts_s[1:], until_s)
    # A boundary that is a multiple of the slot in decimals is one.
    first = np.ceil(starts_s / slot_s * (1 - 1e-12))
    within = np.flatnonzero((first + 1) * slot_s <= ends * (1 + 1e-12))
    yield from ((i, i + 1) for i in within.tolist())
    before = np.unique(np.floor(starts_s[1:] / slot_s * (1 + 1e-12)))
    before = before[(before + 1) * slot_s <= until_s]
    begin = np.searchsorted(starts_s, before * slot_s * (1 + 1e-12), side="right") - 1
    end = np.searchsorted(starts_s, (before + 1) * slot_s * (1 - 1e-12), side="left")
    yield from zip(begin.tolist(), end.tolist(), strict=True)


def _stranded(problem: Problem, patterns: list[Pattern], slot_s: float | None) -> list[int]:
    """Return the hosts from which no open links lead to the destination, waiting where they can."""
    enough = 0.0 if slot_s is None else _A_BYTE
    waits: BoolArray = problem.storage_bytes > 0 if slot_s is None else problem.storage_bytes >= 1
    arriving = np.zeros(problem.n_hosts, dtype=bool)  # what waits there arrives some day
    arriving[problem.destination_index] = True
    leaving = arriving.copy()  # the same of a host's own data, which wait without storage
    usable = [_usable(problem, pattern, slot_s or 1.0, enough) for pattern in patterns]
    while True:
        before = arriving.copy(), leaving.copy()
        for links in usable:
            reached = _reaching(problem, links, arriving, at_once=slot_s is None)
            leaving |= reached
            arriving |= reached & waits
        if all(map(np.array_equal, before, (arriving, leaving))):
            break
    return sorted(
        {
            parcel.host
            for parcel in problem.parcels
            if not (leaving if parcel.host == parcel.source else arriving | leaving)[parcel.host]
        }
    )


def _reaching(problem: Problem, links: IntArray, ends: BoolArray, *, at_once: bool) -> BoolArray:
    """Mark the hosts from which links lead to `ends`: over any number of hops, or over one."""
    reached = ends.copy()
    tail, head = problem.link_from[links], problem.link_to[links]
    while True:
        more = tail[reached[head] & ~reached[tail]]
        reached[more] = True
        if not len(more) or not at_once:
            return reached


def _usable(problem: Problem, pattern: Pattern, seconds: float, enough: float) -> IntArray:
    """Return the links that carry something, or `enough` bytes in some seconds."""
    daily, _ = _calendar(problem)
    assert daily.nominal is not None
    hours = sorted(pattern.hours)
    rate = daily.nominal.of_links(problem)[hours].min(axis=0)
    for key, ends in zip(LIMITS, (problem.link_from, problem.link_to), strict=True):
        rate = np.minimum(rate, _limit_of(problem, key, hours)[ends])
    for shared, links in zip(problem.shared, problem.shared_links, strict=True):
        rate[links] = np.minimum(rate[links], shared.bandwidth_bytes_per_s)
    carries = rate * seconds >= enough if enough else rate > 0
    for is_open, limits in zip(pattern.is_open, alike(daily.windows).values(), strict=True):
        if not is_open:
            carries &= ~limited_links(limits, problem)
    carries &= problem.link_from != problem.destination_index
    return np.flatnonzero(carries)


def _limit_of(problem: Problem, key: str, hours: list[int]) -> FloatArray:
    """Return the least of hosts' limits in some hours of the day or week."""
    limit: FloatArray = getattr(problem, key)
    daily, clock = _calendar(problem)
    if is_constant(limit) or len(daily.hours) < 2:
        limit = limit[:1]
    else:
        limit = limit[np.isin(listed(daily, clock)[1], hours)]
    least: FloatArray = limit.min(axis=0)
    return least


def _calendar(problem: Problem) -> tuple[DailyPeriods, Clock]:
    daily, clock = problem.daily, problem.clock
    assert daily is not None
    assert clock is not None
    return daily, clock
