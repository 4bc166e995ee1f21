"""Causes for which a plan ends later than the lower bound, and the seconds that each costs.

Causes are separated by planning again without each of them; together they add up to the plan's
makespan less the lower bound.

=========== ==========================================================================
cause       the plan ends later since
=========== ==========================================================================
`method`    each source has one route, and shares what it shares fairly
`turns`     hosts of a direct plan take turns
`grid`      data released inside a slot wait for the next, and a slot that straddles
            periods has the lower bandwidth
`slots`     the end is rounded up to whole slots
`hops`      data cross one hop per slot, in whole bytes
`chunks`    relays wait for chunks
`drain`     pipelines drain before bandwidths change
`deadline`  it was planned to end by a deadline, and saves something by that
`derate`    it was planned on a part of all links' bandwidths
`margin`    it is through with windows, and ends before the deadline, by a margin
`transfers` hosts send and receive a limited number of transfers at once
`other`     of something else, which the text says
=========== ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.explanation.tolerances import SAME
from datacollect.explanation.what_if import WhatIf
from datacollect.files.units import format_duration
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.quickest.bottleneck import name_hosts
from datacollect.methods.choice import is_max_min_fair, spec_of
from datacollect.methods.timing.slots import (
    slot_bandwidth_bytes_per_s,
    slot_limits_bytes_per_s,
    slots_until,
)
from datacollect.methods.timing.tolerances import SAME_BOUNDARY
from datacollect.problem.rules import LATEST_S
from datacollect.schedule.data.use import source_completion_s
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True)
class Excess:
    """One cause for which a plan ends later than the lower bound."""

    cause: str
    seconds: float
    text: str


def excess_parts(what_if: WhatIf, lower_bound_s: float) -> Iterator[Excess]:
    """Divide what a plan takes beyond the lower bound.

    Parameters
    ----------
    what_if : WhatIf
        The plan, a valid one for its problem.
    lower_bound_s : float
    """
    plan, now_s = what_if.plan, lower_bound_s
    for cause, until_s, text in _steps(what_if, lower_bound_s):
        # No cause takes more than the whole: what is planned again may end later than the plan.
        until_s = min(until_s, plan.makespan_s)
        if until_s - now_s > SAME * lower_bound_s:
            yield Excess(cause, until_s - now_s, text)
            now_s = until_s
    remaining_s = plan.makespan_s - now_s
    if remaining_s > SAME * lower_bound_s:
        text = "rounding to whole bytes" if what_if.is_same else what_if.difference
        yield Excess("other", remaining_s, text)


def _steps(what_if: WhatIf, lower_bound_s: float) -> Iterator[tuple[str, float, str]]:
    """Yield causes, and when the plan ends with them and all before them."""
    plan = what_if.plan
    if what_if.burden is not None:
        if what_if.unburdened is not None:
            yield from _steps(
                WhatIf(what_if.problem, what_if.unburdened, what_if.solver), lower_bound_s
            )
        cause, text = what_if.burden
        yield cause, plan.makespan_s, text
        return
    for what in spec_of(plan.method).exceeds:
        yield from STEPS[what](what_if, lower_bound_s)
    if plan.deadline_s is not None:
        yield "deadline", plan.makespan_s, "as the deadline allows"


def _sharing_steps(what_if: WhatIf, lower_bound_s: float) -> Iterator[tuple[str, float, str]]:
    at_once = what_if.plan if what_if.plan.turns is None else what_if.at_once
    if at_once is not None:
        yield "method", _ideal_s(what_if, what_if.problem), _fair_text(at_once, lower_bound_s)


def _turns_steps(what_if: WhatIf, _: float) -> Iterator[tuple[str, float, str]]:
    turns = what_if.plan.turns
    if turns is not None:
        yield "turns", what_if.plan.makespan_s, f"hosts take turns, {turns.at_a_time} at a time"


def _shape_steps(what_if: WhatIf, _: float) -> Iterator[tuple[str, float, str]]:
    ideal_s = _ideal_s(what_if, what_if.problem)
    shaped = _slotted_steps if what_if.plan.slot_s is not None else _pipelined_steps
    where = "" if what_if.plan.deadline_s is None else "in the fastest plan "
    for cause, until_s, text in shaped(what_if, ideal_s):
        yield cause, until_s, f"{where}{text}"


# What may make a method's plans later, by the words of its `MethodSpec`.
STEPS = {"sharing": _sharing_steps, "turns": _turns_steps, "shape": _shape_steps}


def _fair_text(plan: Schedule, lower_bound_s: float) -> str:
    finish_s = source_completion_s(plan)
    last = [name for name, end in finish_s.items() if end >= plan.makespan_s - SAME * lower_bound_s]
    return f"{plan.method} uses one route per source; {name_hosts(last)} last"


def _ideal_s(what_if: WhatIf, problem: Problem) -> float:
    """Return when a plan by the method ends if nothing waits: for turns, slots or chunks."""
    if not is_max_min_fair(what_if.plan.method):
        return fluid_optimum(problem, Budget(what_if.solver)).makespan_s
    ideal = what_if.without_waiting(problem)
    return what_if.plan.makespan_s if ideal is None else ideal.makespan_s


def _slotted_steps(what_if: WhatIf, ideal_s: float) -> Iterator[tuple[str, float, str]]:
    plan = what_if.plan
    assert plan.slot_s is not None
    on_grid = _on_grid(what_if.problem, plan.slot_s)
    if on_grid is not what_if.problem:
        ideal_s = max(ideal_s, _ideal_s(what_if, on_grid))
        text = "releases wait for a slot's start, or slots straddle changes of bandwidth"
        yield "grid", ideal_s, text
    whole_s = slots_until(ideal_s * (1 - SAME), plan.slot_s) * plan.slot_s
    yield "slots", whole_s, "the end is rounded up to whole slots"
    if what_if.fastest is not None:
        yield "hops", what_if.fastest.makespan_s, _hops_text(_soonest(what_if))


def _hops_text(plan: Schedule) -> str:
    hops = max(route.n_hops for route in plan.routes)
    text = "data cross one hop per slot, in whole bytes"
    return f"{text}, and routes have up to {hops}" if hops > 1 else f"{text}: too slow for relays"


def _on_grid(problem: Problem, slot_s: float) -> Problem:
    """Return the problem as slots see it: releases and periods begin at slot boundaries.

    Where slots are too long for these to be instants of a problem, the problem as it is: what they
    cost is a part of rounding up to whole slots then.
    """
    release_s = np.array([slots_until(t, slot_s) * slot_s for t in problem.release_s.tolist()])
    begins = problem.periods_s / slot_s
    ends = (np.floor(begins * (1 + SAME_BOUNDARY)), np.ceil(begins * (1 - SAME_BOUNDARY)))
    edges = np.unique(np.concatenate(ends))
    if len(edges) == problem.n_periods and np.allclose(edges, begins, rtol=SAME_BOUNDARY, atol=0.0):
        is_same = np.allclose(release_s, problem.release_s, rtol=SAME, atol=0.0)
        if is_same or release_s.max() > LATEST_S:
            return problem
        return problem.replace(release_s=release_s)
    if max(edges[-1] * slot_s, release_s.max()) > LATEST_S:
        return problem
    slots = edges.astype(int).tolist()
    limits = [slot_limits_bytes_per_s(problem, slot, slot_s) for slot in slots]
    return problem.replace(
        release_s=release_s,
        periods_s=edges * slot_s,
        bandwidth_bytes_per_s=[slot_bandwidth_bytes_per_s(problem, slot, slot_s) for slot in slots],
        uplink_bytes_per_s=[uplinks for uplinks, _ in limits],
        downlink_bytes_per_s=[downlinks for _, downlinks in limits],
    )


def _pipelined_steps(what_if: WhatIf, ideal_s: float) -> Iterator[tuple[str, float, str]]:
    plan = what_if.plan
    hops = max(route.n_hops for route in _soonest(what_if).routes)
    # What a source makes leaves it a chunk later, where routes are planned together.
    makes = len(what_if.problem.makers) > 0 and not is_max_min_fair(plan.method)
    chunks_s = (hops - 1 + makes) * (plan.chunk_s or 0.0)
    who = "relays and sources that make data wait" if makes else "relays wait"
    text = f"{who} for chunks of {format_duration(plan.chunk_s or 0.0)}"
    yield "chunks", ideal_s + chunks_s, f"{text} on routes of up to {hops} hops"
    leftover = plan.makespan_s > (ideal_s + chunks_s) * (1 + SAME)
    if leftover and what_if.fastest is not None:
        text = "pipelines drain before bandwidths change or data are released"
        yield "drain", what_if.fastest.makespan_s, text


def _soonest(what_if: WhatIf) -> Schedule:
    """Return the plan without its deadline."""
    return what_if.plan if what_if.plan.deadline_s is None else what_if.fastest or what_if.plan
