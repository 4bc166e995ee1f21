"""Floods of a cycle that plans ask for: of hosts that are to do more at once than was shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.units import format_bytes, format_duration
from datacollect.measurement.estimates import DAY_S
from datacollect.measurement.sample_store import settings_of
from datacollect.measuring.cycle.choosing import BETWEEN_S
from datacollect.measuring.cycle.several_links import Flood
from datacollect.measuring.operator.tools import FLOOD
from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.results.samples_to_problem import problem_of_samples
from datacollect.measuring.results.wanted_floods import HELD_BYTES, wanted_floods
from datacollect.methods.leaning.flood_tests import FLOOD_S
from datacollect.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    import pandas as pd

    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.results.wanted_floods import WantedFlood

# Of the bytes of all other tests they take at most this part, and no more time.
PART_OF_BYTES = 0.3
MOST_S = 20 * 60.0
# Of each host, sending and receiving, about three.
MOST_OF_HOST = 6
# What a flood said yesterday is asked for again.
NEW_S = DAY_S


def allowance(others: Cost, n_hosts: int, left: Cost) -> Cost | None:
    """Return what floods that plans ask for may take; None where too few hosts could be flooded.

    Parameters
    ----------
    others : Cost
        Of all other tests.
    n_hosts : int
        With agents.
    left : Cost
        Of the budget, without these.

    Examples
    --------
    >>> allowance(Cost(1000, 60.0), 3, Cost(10**9, 1e9)), allowance(Cost(1000, 60.0), 2, Cost(1, 1))
    (Cost(n_bytes=300, seconds=144.0), None)
    """
    if n_hosts < 3:
        return None
    seconds = min(MOST_S, MOST_OF_HOST * n_hosts * (FLOOD_S + BETWEEN_S), left.seconds)
    return Cost(min(int(PART_OF_BYTES * others.n_bytes), left.n_bytes), seconds)


def line_of(cost: Cost) -> str:
    """Say beforehand what they take at most."""
    return (
        "floods of hosts that do more at once in a plan than was shown: at most "
        f"{format_bytes(cost.n_bytes)} and {format_duration(cost.seconds)} in all"
    )


def wanted_by_plans(
    hosts: HostsFile,
    table: pd.DataFrame,
    is_able: Callable[[Pair], bool],
    tried: Set[frozenset[Pair]],
) -> list[WantedFlood]:
    """Return the floods that plans of all samples ask for, the most important first.

    Floods of yesterday do not count: lines of hosts change.
    """
    backlog = {name: HELD_BYTES for name in hosts.hosts if name != hosts.destination}
    is_old = (table["tool"] == FLOOD) & (table["time_s"] < time.time() - NEW_S)
    try:
        found = problem_of_samples(
            table[~is_old],
            hosts.destination,
            hosts=hosts.hosts.keys(),
            backlog_bytes=backlog,
            shared=hosts.shared,
            careful=False,
        )
        problem = Problem.from_dict(found.tree)
    except ProblemError:
        return []
    return wanted_floods(problem, found.rates_bytes_per_s, found.by_floods, is_able, tried)


def flood_of(wanted: WantedFlood) -> Flood:
    """Return the test of a flood that is wanted."""
    return Flood(wanted.links, wanted.settings)


def spent_on(floods: pd.DataFrame) -> Cost:
    """Return what floods that plans have asked for have taken so far.

    Parameters
    ----------
    floods : DataFrame
        Their rows.
    """
    n_floods = len({settings_of(text).get("flood") for text in floods["settings"]})
    return Cost(moved_bytes(floods), n_floods * (FLOOD_S + BETWEEN_S))


def moved_bytes(rows: pd.DataFrame) -> float:
    """Return what tests have moved."""
    return float(rows["bytes"].fillna(0).sum())
