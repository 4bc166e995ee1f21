"""Unknowns that a plan counts on, and what it costs to measure them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.files.units import format_bytes, format_duration
from datacollect.measuring.results.floods import DOWNLINK, UPLINK
from datacollect.measuring.results.unknown_wires import UnknownWires, unknown_wires
from datacollect.measuring.results.wanted_floods import HELD_BYTES, leanings, planned
from datacollect.methods.leaning.flood_tests import FLOOD_S
from datacollect.problem.problem import Problem
from datacollect.schedule.data.use import bytes_by_link

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.results.samples_to_problem import ProblemOfSamples
    from datacollect.measuring.results.wanted_floods import Leaning


@dataclass(frozen=True)
class Unknown:
    """Assumptions of a problem's coordinated plan that no test has shown.

    Attributes
    ----------
    leanings : tuple of Leaning
        Hosts that are to do more at once than was shown, where much rests on it; those that change
        the plan most first.
    wires : UnknownWires
        Where its links may meet.
    """

    leanings: tuple[Leaning, ...] = ()
    wires: UnknownWires = field(default_factory=UnknownWires)


def unknown_of(
    found: ProblemOfSamples, table: pd.DataFrame, is_able: Callable[[Pair], bool]
) -> Unknown:
    """Return what a plan of samples counts on and nobody knows.

    Where no host holds anything, every host but the destination is taken to hold as much.

    Parameters
    ----------
    found : ProblemOfSamples
    table : DataFrame
        The samples.
    is_able : callable
        Whether a link can be flooded: whether both ends have agents.
    """
    problem = Problem.from_dict(found.tree)
    if not problem.backlog_bytes.any():
        held = np.full(problem.n_hosts, HELD_BYTES)
        held[problem.destination_index] = 0
        problem = problem.replace(backlog_bytes=held)
    plan = planned(problem)
    if plan is None:
        return Unknown()
    leaning = leanings(problem, plan, found.rates_bytes_per_s, is_able)
    return Unknown(
        tuple(one for one in leaning if one.plan.matter),
        unknown_wires(table, bytes_by_link(plan)),
    )


def text_of(leaning: Leaning) -> str:
    """Say what is not known of a host, and what it costs to know it.

    Where it can be measured, the command is to follow.
    """
    load, plan = leaning.load, leaning.plan
    text = f"not known whether {load.host} can: {load.text} "
    text += f"The plan takes {format_duration(plan.makespan_s)}"
    if plan.cautious_makespan_s is not None:
        text += f", and {format_duration(plan.cautious_makespan_s)} if it cannot"
    if not leaning.floods:
        key = UPLINK if load.direction == "out" else DOWNLINK
        return f'{text}. Without agents nothing tells; {key} = "none" states that it has no limit'
    most_bytes = leaning.floods[-1].test.most_bytes
    return (
        f"{text}. The next cycle asks for it as far as it may, or measure it, for at most "
        f"{format_bytes(most_bytes)} and {format_duration(FLOOD_S)}:"
    )


def tree_of(leaning: Leaning, hosts_file: str) -> dict[str, Any]:
    """Return what is not known of a host, as programs read it."""
    load, plan = leaning.load, leaning.plan
    flood = leaning.floods[-1] if leaning.floods else None
    return {
        "host": load.host,
        "key": UPLINK if load.direction == "out" else DOWNLINK,
        "planned_bytes_per_s": load.planned_bytes_per_s,
        "shown_bytes_per_s": load.shown_bytes_per_s,
        "makespan_s": plan.makespan_s,
        "cautious_makespan_s": plan.cautious_makespan_s,
        "links": [] if flood is None else [{"from": a, "to": b} for a, b in flood.links],
        "most_bytes": flood and flood.test.most_bytes,
        "most_s": flood and FLOOD_S,
        "command": flood and flood.test.command(hosts_file),
    }
