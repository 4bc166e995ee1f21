"""The coordinated method: all hosts, routes and capacities at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from datacollect.files.with_units import DURATION, in_units
from datacollect.flow.network.preference import DEFAULT, preference_or_default
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.coordinated.few_transfers import require_transfers
from datacollect.methods.coordinated.pipelined import pipelined
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.methods.finishing.derating import NOT_DERATED, planned_on_part, require_part
from datacollect.methods.finishing.file_cuts import with_cuts_at_files
from datacollect.methods.finishing.hidden_makers import (
    planned_with_makers,
    planned_within_rates,
)
from datacollect.methods.finishing.judging import judged
from datacollect.methods.finishing.keeping import planned_keeping
from datacollect.methods.finishing.margins import deadline_with_margin, planned_with_margin
from datacollect.methods.leaning.assumptions import asking
from datacollect.methods.leaning.cautious import planned_cautiously
from datacollect.methods.options.arguments import (
    deadline_in_seconds,
    require_finish,
    require_only,
    require_positive,
    require_shape,
    shape_in_seconds,
)
from datacollect.methods.options.names import EARLY
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.files.choices import Finish, Preference
    from datacollect.files.quantities import Seconds
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


def coordinated(
    problem: Problem,
    *,
    slot_s: Seconds | None = None,
    chunk_s: Seconds | None = None,
    prefer: Preference | None = None,
    deadline_s: Seconds | None = None,
    most_by_s: Seconds | None = None,
    finish: Finish = EARLY,
    solver: Solver = "auto",
    time_limit_s: Seconds | None = None,
    derate: float = NOT_DERATED,
    cautious: bool = False,
    most_transfers: int | None = None,
    connections: int | None = None,
    keep_relayed: bool = False,
    margin_s: Seconds | None = None,
    settle_ties: bool = True,
) -> Schedule:
    """Compute the fastest schedule over all sources and routes together, or the cheapest in time.

    Parameters
    ----------
    problem : Problem
    slot_s : float or str, optional
        Store and forward in slots of this many seconds, or of a time such as ``"5 min"``: the
        fewest slots. Without it the schedule is pipelined.
    chunk_s : float or str, optional
        Pipelined: a relay forwards what it received this long ago, in seconds or a text. Default:
        1/1000 of the lower bound, or less where bandwidths change often, routes are long or a
        deadline leaves less time: chunks delay the end by 0.2 % of the lower bound at most.
    prefer : str, optional
        What to minimise among the fastest schedules, or among those that meet the deadline:
        ``"relay-bytes"`` (bytes times links), ``"storage"`` (others' bytes times seconds at
        relays), ``"earliest-arrival"`` (as much as possible has arrived at every instant) or
        ``"money"`` (the price of all links). Default: ``"relay-bytes"``; ``"money"`` where
        there are a deadline and prices.
    deadline_s : float or str, optional
        Everything has arrived by then, chunks included; not necessarily sooner. Seconds, a text
        such as ``"12 h"`` or, where the problem has a start, a clock time:
        ``"2026-11-23T08:00"``, ``"08:00"``.
    most_by_s : float or str, optional
        Pipelined: of the fastest plans one of which as much as possible has arrived by then, as
        where a deadline cannot be met. As `deadline_s`, which it excludes, as it does `prefer`.
    finish : str
        Pipelined: ``"early"``, sources that do not bind finish as early as capacities allow, on
        the same routes with the same bytes (max-min fair within each piece of time);
        ``"together"``, all that moves in a piece of time takes all of it.
    solver : str
        ``"auto"``, the fastest that is installed, or a name of `datacollect.solvers.registry`.
    time_limit_s : float or str, optional
        Stop after this many seconds, or after a time such as ``"1 h"``. What is complete by
        then is returned with status ``"time_limit"``.
    derate : float
        Plan on this part of all links' bandwidths, above 0 and at most 1; limits of hosts and of
        shared bottlenecks, which are known, stay. The schedule is valid for the problem as it is,
        and its lower bound is the problem's own.
    cautious : bool
        Have no host send or receive more at once than was shown of it, or than direct has it do:
        the plan leans on nothing (`Schedule.assumptions`).
    most_transfers : int, optional
        Each host sends and receives at most this many transfers at once. A heuristic plans that;
        its `gap` is counted from the lower bound without this limit.
    connections : int, optional
        Share out this many connections at a time, a route of two hops takes two at least: where
        rates grow with connections (`Link.capacity_bytes_per_s` and its neighbours), and hosts may
        limit them (`Host.most_connections`). The plan says in ``streams`` how many each hop has. A
        heuristic, never slower than direct with as many, whose `gap` is counted from the optimum
        with parts of connections. Pipelined, for bandwidths that do not change; excludes all other
        options but `chunk_s`, `solver` and `time_limit_s`.
    keep_relayed : bool
        Relays delete nothing, as where scripts carry the plan out: no more passes each than its
        ``storage_bytes``. A heuristic.
    margin_s : float or str, optional
        Be through with each window, with each hour in which bandwidths are higher than after it,
        and before the deadline, this many seconds early, or a time such as ``"5 min"``: scripts
        are later than the plan by the time of their requests. The schedule is valid for the
        problem as it is.
    settle_ties : bool
        Of plans that cost the same take the same one whichever solver computes, by short
        pipelines. False: the first that the solver finds, which may end some chunks earlier or
        later. So simulated runs plan, whose published results are to come out again.

    Returns
    -------
    Schedule
        Pipelined, its makespan is the lower bound plus at most (hops - 1) chunks wherever
        bandwidths are constant and nothing is released late.

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination, or not by the deadline.
    ProblemError
        An argument is out of range, or asks for earliest arrival with shared bottlenecks.
    TimeLimitError
        Nothing was complete when the time limit passed.

    Notes
    -----
    The coordinated method of Chou, Wan, Cheng, Golubchik and Khuller, "A Performance Study of a
    Large-scale Data Collection Problem" (2002); for the pipelined variant see the docs, Methods.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> plan = dc.coordinated(problem)
    >>> plan.lower_bound_s, round(plan.makespan_s, 3)
    (2.0, 2.002)

    With another second only 1 MB, of 2 before, has to take the relay:

    >>> plan = dc.coordinated(problem, deadline_s="3 s", chunk_s=0.0)
    >>> int(plan.transfers.query("to == 'K'")["bytes"].sum())
    1000000
    """
    slot_s, chunk_s = shape_in_seconds(slot_s, chunk_s)
    time_limit_s = in_units(time_limit_s, DURATION, "time_limit_s")
    options = CoordinatedOptions(
        slot_s=slot_s,
        chunk_s=chunk_s,
        prefer=prefer,
        deadline_s=deadline_in_seconds(deadline_s, problem),
        most_by_s=deadline_in_seconds(most_by_s, problem, "most_by_s"),
        solver=solver,
        time_limit_s=time_limit_s,
        derate=derate,
        cautious=cautious,
        most_transfers=most_transfers,
        finish=finish,
        connections=connections,
        keep_relayed=keep_relayed,
        margin_s=in_units(margin_s, DURATION, "margin_s"),
        settle_ties=settle_ties,
    )
    return asking(_judged(problem, options), problem, options)


def _judged(problem: Problem, options: CoordinatedOptions) -> Schedule:
    """Plan, and judge the plan; a cautious one by what hosts were shown to do."""
    prefer, slot_s = options.prefer, options.slot_s
    budget = Budget.begin(options.solver, options.time_limit_s, settle_ties=options.settle_ties)
    if options.cautious:
        plan = partial(_judged, options=replace(options, cautious=False))
        return planned_cautiously(problem, options.derate, budget, plan)
    if options.margin_s is not None:
        plan = partial(_judged, options=_before_margin(options))
        return planned_with_margin(problem, options.margin_s, budget, plan, options.deadline_s)
    plan = partial(coordinated_candidate, options=options, budget=budget)
    # To end as early as possible comes first; among such plans as much as possible arrives early.
    otherwise = None
    if prefer == "earliest-arrival" and slot_s is None:
        fastest = replace(options, prefer=DEFAULT)
        otherwise = partial(_as_wished, plan=partial(plan, options=fastest), prefer=prefer)
    is_plain = slot_s is None and options.most_transfers is None and options.connections is None
    in_slots = partial(_in_slots, options=options, budget=budget) if is_plain else None
    deadline_s = options.deadline_s
    whole = partial(plan, is_whole=True) if slot_s is None else None
    return judged(
        problem, plan, with_cuts_at_files, otherwise, in_slots, deadline_s=deadline_s, whole=whole
    )


def _before_margin(options: CoordinatedOptions) -> CoordinatedOptions:
    """Return options without the margin, by a deadline that is earlier by it."""
    assert options.margin_s is not None
    require_positive(margin_s=options.margin_s)
    if options.connections is not None:
        require_only("connections", margin_s=options.margin_s)
    deadline_s = deadline_with_margin(options.deadline_s, options.margin_s)
    return replace(options, margin_s=None, deadline_s=deadline_s)


def _as_wished(
    problem: Problem, plan: Callable[[Problem], Schedule], prefer: Preference
) -> Schedule:
    """Plan without a wish that cannot be met; the status says that it is not."""
    return plan(problem).replace(prefer=prefer)


def _in_slots(
    problem: Problem, slot_s: float, options: CoordinatedOptions, budget: Budget
) -> Schedule:
    """Plan in slots instead of a pipeline; not judged yet."""
    slotted = replace(options, slot_s=slot_s, chunk_s=None, prefer=None, finish=EARLY)
    return coordinated_candidate(problem, slotted, budget)


# The chooser ----------------------------------------------------------------------------------


def coordinated_candidate(
    problem: Problem, options: CoordinatedOptions, budget: Budget, is_whole: bool = False
) -> Schedule:
    """Plan as `coordinated` does, but for files; not judged yet.

    In whole bytes where storage is full if `is_whole`, see `datacollect.flow.whole_flow`.
    """
    _require(problem, options)
    if options.cautious:
        plan = partial(
            coordinated_candidate,
            options=replace(options, cautious=False),
            budget=budget,
            is_whole=is_whole,
        )
        return planned_cautiously(problem, options.derate, budget, plan)
    if options.margin_s is not None:
        plan = partial(
            coordinated_candidate, options=_before_margin(options), budget=budget, is_whole=is_whole
        )
        return planned_with_margin(problem, options.margin_s, budget, plan, options.deadline_s)
    if options.keep_relayed:
        plan = partial(
            coordinated_candidate,
            options=replace(options, keep_relayed=False),
            budget=budget,
            is_whole=is_whole,
        )
        return planned_keeping(problem, budget, plan, options.deadline_s)
    if options.connections is not None:
        plan = partial(_with_connections, options=options, budget=budget)
        return planned_within_rates(problem, plan)
    in_slots = options.slot_s is not None
    shape = (
        partial(_slotted, options=options, budget=budget)
        if in_slots
        else partial(pipelined, options=options, budget=budget, is_whole=is_whole)
    )
    plan = partial(planned_with_makers, plan=shape, budget=budget, in_slots=in_slots)
    if options.derate == NOT_DERATED:
        return plan(problem)
    return planned_on_part(problem, options.derate, budget, plan)


def _require(problem: Problem, options: CoordinatedOptions) -> None:
    """Refuse options that are out of range."""
    require_shape(options.slot_s, options.chunk_s)
    require_positive(deadline_s=options.deadline_s, most_by_s=options.most_by_s)
    if options.most_by_s is not None:
        require_only(
            "most_by_s",
            slot_s=options.slot_s,
            prefer=options.prefer,
            deadline_s=options.deadline_s,
            most_transfers=options.most_transfers,
            connections=options.connections,
        )
    require_finish(options.finish)
    preference_or_default(options.prefer, problem, options.deadline_s)
    require_part(options.derate)
    require_transfers(options.most_transfers, options.slot_s)


# In slots, and with connections: in their own rooms, which are imported when they are asked for ---


def _slotted(problem: Problem, options: CoordinatedOptions, budget: Budget) -> Schedule:
    from datacollect.methods.slotted.plan import slotted_schedule

    assert options.slot_s is not None
    optimum, deadline_s = fluid_optimum(problem, budget), options.deadline_s
    prefer = preference_or_default(options.prefer, problem, deadline_s)
    schedule = slotted_schedule(problem, optimum, options.slot_s, budget, prefer, deadline_s)
    return schedule.replace(prefer=prefer, deadline_s=deadline_s)


def _with_connections(problem: Problem, options: CoordinatedOptions, budget: Budget) -> Schedule:
    from datacollect.methods.connections.connected import connected

    assert options.connections is not None
    require_only(
        "connections",
        slot_s=options.slot_s,
        prefer=options.prefer,
        deadline_s=options.deadline_s,
        finish=None if options.finish == EARLY else options.finish,
        derate=None if options.derate == NOT_DERATED else options.derate,
        most_transfers=options.most_transfers,
    )
    return connected(problem, options.connections, options.chunk_s, budget)
