"""The direct method: every host sends directly to the destination."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.with_units import DURATION, in_units, in_whole
from datacollect.flow.network.pools import pools_by_owner
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.direct_spec import DirectOptions
from datacollect.methods.fair.directly import direct_jobs
from datacollect.methods.fair.transfers import MAX_MIN_FAIR, AllAtOnce, fair_transfers
from datacollect.methods.finishing.derating import NOT_DERATED, planned_on_part, require_part
from datacollect.methods.finishing.judging import judged
from datacollect.methods.finishing.making import schedule_of
from datacollect.methods.leaning.assumptions import asking
from datacollect.methods.options.arguments import require_positive
from datacollect.methods.options.names import DIRECT
from datacollect.methods.timing.slots import require_slots
from datacollect.numbers.containers import texts_of
from datacollect.schedule.data.contents import HEURISTIC
from datacollect.schedule.data.transfers import Turns
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.files.quantities import Seconds
    from datacollect.methods.fair.transfers import Turn
    from datacollect.numbers.arrays import BoolArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver

# So near to a time slot's end, in time slots, is at it.
JUST_BEFORE = 1e-9


def direct(
    problem: Problem,
    *,
    order: Sequence[str] | None = None,
    at_a_time: int | None = None,
    time_slot_s: Seconds | None = None,
    solver: Solver = "auto",
    derate: float = NOT_DERATED,
) -> Schedule:
    """Schedule every host's data over its own link to the destination.

    Without options all hosts send in parallel, at max-min fair rates where they share capacity.

    Parameters
    ----------
    problem : Problem
    order : sequence of str, optional
        Hosts that hold data, in the order in which they send; those not named follow in the
        problem's order. Without `at_a_time`, one after another.
    at_a_time : int, optional
        So many hosts send at once; when one ends, the next in order begins.
    time_slot_s : float or str, optional
        With `at_a_time`: hosts take turns of this length, in seconds or a text such as
        ``"5 min"``, in order and round again; the next slot's hosts wait for its start.
    solver : str
        For the lower bound that the schedule reports.
    derate : float
        Plan on this part of all links' bandwidths, above 0 and at most 1; limits of hosts and of
        shared bottlenecks, which are known, stay. The schedule is valid for the problem as it is,
        and its lower bound is the problem's own.

    Returns
    -------
    Schedule
        Valid for the problem. Its rates are max-min fair.

    Raises
    ------
    InfeasibleError
        A host with data has no usable link to the destination.
    ProblemError
        An argument is out of range.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["A", "B", "D"], [[0, 0, 1e6], [0, 0, 2e6], [0, 0, 0]], [3_000_000, 2_000_000, 0], "D"
    ... )
    >>> dc.direct(problem).makespan_s, dc.direct(problem, at_a_time=1).makespan_s
    (3.0, 4.0)
    """
    options = DirectOptions(
        order=None if order is None else texts_of(order, "order"),
        at_a_time=in_whole(at_a_time, "at_a_time"),
        time_slot_s=in_units(time_slot_s, DURATION, "time_slot_s"),
        solver=solver,
        derate=derate,
    )
    plan = partial(direct_candidate, options=options, budget=Budget(solver))
    return asking(judged(problem, plan), problem, options)


def direct_candidate(problem: Problem, options: DirectOptions, budget: Budget) -> Schedule:
    """Plan as `direct` does; not judged yet."""
    order, at_a_time, time_slot_s = options.order, options.at_a_time, options.time_slot_s
    require_positive(time_slot_s=time_slot_s)
    require_part(options.derate)
    if options.derate != NOT_DERATED:
        whole = replace(options, derate=NOT_DERATED)
        same = partial(direct_candidate, options=whole, budget=budget)
        return planned_on_part(problem, options.derate, budget, same)
    pools = pools_by_owner(problem)
    turn = _turn(problem, [pool.host for pool in pools], order, at_a_time, time_slot_s)
    jobs = direct_jobs(problem, pools)
    optimum = fluid_optimum(problem, budget)
    if time_slot_s is not None:
        require_slots(optimum.makespan_s / time_slot_s, name="time_slot_s")
    return schedule_of(
        problem,
        DIRECT,
        fair_transfers(problem, jobs, 0.0, turn),
        (optimum.makespan_s, optimum.bottleneck),
        chunk_s=0.0,
        solver=MAX_MIN_FAIR,
        status=HEURISTIC,
        turns=None
        if isinstance(turn, AllAtOnce)
        else Turns(tuple(order or ()), at_a_time or 1, time_slot_s),
    )


def _turn(
    problem: Problem,
    hosts: Sequence[int],
    order: Sequence[str] | None,
    at_a_time: int | None,
    time_slot_s: float | None,
) -> Turn:
    if at_a_time is None and time_slot_s is not None:
        raise ProblemError("time_slot_s needs at_a_time: how many hosts send in each turn")
    if at_a_time is None:
        at_a_time = 1 if order is not None else None
    if at_a_time is None:
        return AllAtOnce()
    if at_a_time < 1:
        raise ProblemError(f"at_a_time must be >= 1, got {at_a_time}")
    ranks = _ranks(problem, hosts, order or ())
    if time_slot_s is not None:
        return _TimeSlots(ranks, at_a_time, time_slot_s)
    return _FirstInOrder(ranks, at_a_time)


def _ranks(problem: Problem, hosts: Sequence[int], order: Sequence[str]) -> list[int]:
    """Place of each job's host in the order."""
    known = [problem.names[host] for host in hosts]
    for name in order:
        if name not in known:
            raise ProblemError(
                f"order: {name!r} is not a host with data to send{nearest_hint(name, known)}"
            )
    if len(set(order)) < len(order):
        raise ProblemError(f"order: a host is named twice, got {list(order)}")
    place = {name: i for i, name in enumerate([*order, *(n for n in known if n not in order)])}
    return [place[name] for name in known]


class _FirstInOrder:
    """The first k jobs, in order, that are ready; one that has begun runs to its end."""

    def __init__(self, ranks: Sequence[int], at_a_time: int) -> None:
        self.by_rank = np.argsort(np.array(ranks, dtype=np.int64), kind="stable")
        self.at_a_time = at_a_time
        self.running: list[int] = []

    def active(self, ready: BoolArray, time_s: float) -> tuple[BoolArray, float]:
        running = [job for job in self.running if ready[job]]
        waiting = [job for job in self.by_rank.tolist() if ready[job] and job not in running]
        self.running = [*running, *waiting][: self.at_a_time]
        active = np.zeros(len(ready), dtype=bool)
        active[self.running] = True
        return active, np.inf


class _TimeSlots:
    """In time slot i the i-th group of k jobs, round and round; jobs that ended leave the round."""

    def __init__(self, ranks: Sequence[int], at_a_time: int, time_slot_s: float) -> None:
        self.queue = np.argsort(np.array(ranks, dtype=np.int64), kind="stable").tolist()
        self.at_a_time = at_a_time
        self.time_slot_s = time_slot_s
        self.slot = -1
        self.chosen: list[int] = []

    def active(self, ready: BoolArray, time_s: float) -> tuple[BoolArray, float]:
        # Just before a boundary, by rounding, counts as at it.
        slot = int(time_s / self.time_slot_s + JUST_BEFORE)
        if slot > self.slot:
            self.slot = slot
            self.chosen = [job for job in self.queue if ready[job]][: self.at_a_time]
            waiting = [job for job in self.queue if job not in self.chosen]
            self.queue = waiting + self.chosen
        active = np.zeros(len(ready), dtype=bool)
        active[self.chosen] = True
        return active & ready, (self.slot + 1) * self.time_slot_s
