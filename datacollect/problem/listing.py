"""Horizon of a calendar: listed further until a plan ends within it, or no further."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from datacollect.errors import InfeasibleError
from datacollect.files.units import counted
from datacollect.problem.cycles import (
    cycle_s,
    has_windows,
    lists_a_cycle,
    slots_fit_soon,
    stranded_hosts,
    stranded_if_open,
    windows_without_slot,
)
from datacollect.problem.windows import DAY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.problem.open_links import OpenLinks
    from datacollect.problem.problem import Problem

_Found = TypeVar("_Found")

# Hosts and links that messages name.
_MOST_NAMED = 3

# Into so many parts slots are cut to find some that lie in windows.
_MOST_PARTS = 60


class ListingEnds(InfeasibleError):
    """Some data have not arrived when what is listed of a calendar ends, but may later."""


def listed_far_enough(
    problem: Problem,
    find: Callable[[Problem], _Found],
    end_s: Callable[[_Found], float],
    at_least_s: float | None = None,
) -> tuple[Problem, _Found]:
    """Find something on a calendar; where what is listed of it ends too soon, list more.

    Parameters
    ----------
    problem : Problem
        One without windows is listed as it is.
    find : callable
        From a problem to what is looked for; raises `ListingEnds` where more time may help.
    end_s : callable
        When what was found ends.
    at_least_s : float, optional
        What is looked for may take as long, such as until a deadline.

    Returns
    -------
    (Problem, found)
        The problem, listed as far as what was found needs; equal to the one that was given.

    Raises
    ------
    InfeasibleError
        As `find` does; or nothing is found as far as can be listed, which the message says.
    """
    if not has_windows(problem):
        return problem, find(problem)
    if at_least_s is not None and math.isfinite(at_least_s):
        problem = problem.until(at_least_s)
    while True:
        try:
            found = find(problem)
        except ListingEnds as ends:
            problem = _further(problem, ends)
            continue
        longer = problem.until(end_s(found))
        if longer is problem:
            return problem, found
        problem = longer


def _further(problem: Problem, ends: ListingEnds) -> Problem:
    daily, clock = problem.daily, problem.clock
    assert daily is not None
    assert clock is not None
    longer = problem.until(2 * daily.until_s)
    if longer is not problem:
        return longer
    days = round(daily.until_s / DAY_S)
    raise InfeasibleError(
        f"{ends}: searched until {clock.text(daily.until_s)}, {counted(days, 'day')} after the "
        "start, which is as far as these hours can be listed; move fewer bytes, or keep links "
        "open for longer",
        ends.hosts,
    ) from None


def not_in_time(problem: Problem, names: Sequence[str], never: InfeasibleError) -> InfeasibleError:
    """Return the error where data do not arrive: `never`, or not within what is listed.

    Parameters
    ----------
    names : sequence of str
        Hosts where they lie.
    never : InfeasibleError
        What is to be said where no hours are to blame.
    """
    if not has_windows(problem):
        return never
    stranded = stranded_hosts(problem)
    if not stranded:
        return listing_ends(problem, names)
    if stranded_if_open(problem):
        return never
    return _never_open(problem, [problem.names[host] for host in stranded])


def may_end_later(problem: Problem, earliest_s: float) -> bool:
    """Say whether too little is listed to tell that nothing ends within twice the time."""
    daily = problem.daily
    if daily is None or not daily.windows:
        return False
    enough_s = 2 * earliest_s + cycle_s(problem)
    return daily.until_s < enough_s and problem.until(enough_s) is not problem


def not_moving(
    problem: Problem, names: Sequence[str], still_s: float, never: InfeasibleError
) -> InfeasibleError:
    """Return the error where what is listed ends after nothing has moved for some time.

    Who moves nothing in a whole cycle never will.
    """
    if not has_windows(problem) or still_s >= cycle_s(problem):
        return never
    return listing_ends(problem, names)


def not_listed_yet(
    problem: Problem, names: Sequence[str], never: InfeasibleError
) -> InfeasibleError:
    """Return the error where nothing that is listed is of use: less than a cycle proves nothing."""
    if not has_windows(problem) or lists_a_cycle(problem):
        return never
    return listing_ends(problem, names)


def listing_ends(problem: Problem, names: Sequence[str]) -> ListingEnds:
    """Return the error where data arrive some day, but not within what is listed."""
    return ListingEnds(
        f"the data at {_named(names)} have not all reached {problem.destination!r} within the "
        "hours that are open",
        names,
    )


def _never_open(problem: Problem, names: Sequence[str]) -> InfeasibleError:
    assert problem.daily is not None
    return InfeasibleError(
        f"the data at {_named(names)} can never reach the destination {problem.destination!r}: "
        "the hours in which links lead there never meet, and no relay between them can store "
        "data; have them open at the same time, or give relays storage",
        names,
    )


def no_whole_slot(problem: Problem, slot_s: float) -> InfeasibleError | None:
    """Return the error where slots are too long for windows; None where they are not to blame."""
    stranded = stranded_hosts(problem, slot_s) if has_windows(problem) else []
    if not stranded or stranded_hosts(problem):
        return None
    parts = range(2, _MOST_PARTS + 1)
    fits = next((n for n in parts if slots_fit_soon(problem, slot_s / n)), None)
    if fits is None:
        return None
    blamed = [name for group in windows_without_slot(problem, slot_s) for name in _owners(group)]
    where = ", ".join(dict.fromkeys(blamed)) if len(blamed) <= _MOST_NAMED else ""
    names = [problem.names[host] for host in stranded]
    return InfeasibleError(
        f"no whole slot of {slot_s:g} s lies in the hours "
        f"{f'of {where}' if where else f'in which links lead from {_named(names)} onwards'}; "
        f"slots of {slot_s / fits:g} s do",
        names,
    )


def _owners(group: Sequence[OpenLinks]) -> list[str]:
    ends = [(limit.from_host, limit.to_host) for limit in group]
    return list(dict.fromkeys(" -> ".join(filter(None, pair)) for pair in ends))


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMED]))
    return shown if len(names) <= _MOST_NAMED else f"{shown} … ({len(names)} hosts)"
