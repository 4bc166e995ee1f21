"""Relaxations of a plan's constraints and their gains: planned again by the plan's own method.

Constraints that bind in a plan are relaxed one by one, by a tenth and without limit, and each time
the plan is made again by the same method with the same options; gains are differences of two plans.
The rule that keeps this quick: at most `MOST_TRIED` constraints. For direct and best-path those
that hold back the sources that finish last (and, with best-path, these sources' own links); all
that bind where there are no more. In slots those that gain most for the lower bound. With a
deadline, by which the gain is a cheaper plan, those that hold back the sources whose data cost
most of what its preference minimises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.explanation.plan_limits import together
from datacollect.explanation.resources import (
    RATES,
    TURNS,
    Relaxed,
    RelaxedTogether,
    Resource,
    most_through,
    resource_name,
    values_between,
    varies,
)
from datacollect.explanation.tolerances import SAME
from datacollect.explanation.what_if import STEP
from datacollect.explanation.window_hours import STEP_S
from datacollect.files.stages import counting
from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.choice import is_max_min_fair, spec_of
from datacollect.schedule.data.use import legs, plan_money, source_completion_s
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.explanation.plan_limits import Limit, PlanLimits
    from datacollect.explanation.relaxations import Advice
    from datacollect.explanation.what_if import WhatIf
    from datacollect.files.choices import Preference
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# How many constraints are relaxed, each twice; fewer in slots, where planning takes longer.
MOST_TRIED = 5
MOST_TRIED_IN_SLOTS = 3

AS_THE_BOUND = (
    "it ends as early as possible but for its chunks: what gains for the earliest end gains for it"
)


@dataclass(frozen=True)
class PlanRelaxation(RelaxedTogether):
    """Gain of relaxing one constraint, or several together, in a plan.

    Attributes
    ----------
    relaxed : tuple of Relaxed
        Each with its values while it binds in the plan, or all of them where it does not. Kind
        ``"turns"`` stands for turns that hosts of a direct plan take. Steps are a tenth, of a link
        in every period; turns: one more host at once.
    saves_s, saves_unlimited_s : float or None
        Seconds that these steps save, and no limit at all: no release, all at once. Below 0: it
        ends later, as sharing fairly may. None: the method finds no plan.
    saves_cost, saves_cost_unlimited : float or None
        What is saved of what a plan with a deadline minimises; None for other plans.
    """

    saves_s: float | None
    saves_unlimited_s: float | None
    saves_cost: float | None = None
    saves_cost_unlimited: float | None = None

    @property
    def helps(self) -> bool:
        """Return whether it gains anything: of a plan with a deadline, a cheaper one."""
        costs = (self.saves_cost, self.saves_cost_unlimited)
        ends = (self.saves_s, self.saves_unlimited_s)
        found = ends if costs == (None, None) else costs
        return any(saves is not None and saves > 0 for saves in found)

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "resources": [one.to_dict() for one in self.relaxed],
            "saves_s": self.saves_s,
            "saves_unlimited_s": self.saves_unlimited_s,
            "saves_cost": self.saves_cost,
            "saves_cost_unlimited": self.saves_cost_unlimited,
        }


@dataclass(frozen=True)
class PlanAdvice:
    """Relaxations that were tried, best first.

    Attributes
    ----------
    tried : tuple of PlanRelaxation
    n_candidates : int
        Constraints that bind in the plan, and with best-path the last sources' own links, with
        which it compares routes; of many only some were tried.
    why_not : str
        Why nothing was tried; empty where something was, or nothing binds.
    """

    tried: tuple[PlanRelaxation, ...] = ()
    n_candidates: int = 0
    why_not: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "tried": [found.to_dict() for found in self.tried],
            "n_candidates": self.n_candidates,
            "why_not": self.why_not,
        }


def plan_cost(problem: Problem, plan: Schedule, prefer: Preference) -> float:
    """Return what a preference minimises first.

    ``"relay-bytes"``: bytes times relays that they pass; ``"storage"``: others' bytes times seconds
    at relays; ``"money"``: the price of all links; ``"earliest-arrival"``: when bytes arrive, on
    average, in seconds.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> plan_cost(problem, dc.coordinated(problem), "relay-bytes")
    2000000.0
    """
    columns = plan.columns
    if prefer == "money":
        return plan_money(problem, plan) or 0.0
    if prefer == "relay-bytes":
        return float(columns.n_bytes[columns.hop > 0].sum())
    if prefer == "storage":
        stored = plan.storage()
        parts = (rows for _, rows in stored.groupby("host"))
        return float(sum(np.trapezoid(rows["stored_bytes"], rows["time_s"]) for rows in parts))
    last = legs(plan, problem.names).is_last
    middle_s = (columns.start_s[last] + columns.finish_s[last]) / 2
    return float(np.average(middle_s, weights=columns.n_bytes[last])) if last.any() else 0.0


def advise_plan(what_if: WhatIf, limits: PlanLimits, advice: Advice) -> PlanAdvice:
    """Relax what binds in a plan and plan again.

    Parameters
    ----------
    what_if : WhatIf
    limits : PlanLimits
        Of the plan.
    advice : Advice
        What gains for the lower bound.
    """
    plan = what_if.plan
    if plan.n_transfers == 0:
        return PlanAdvice()
    if _ends_as_the_bound(what_if):
        return PlanAdvice(why_not=AS_THE_BOUND)
    if not what_if.is_same:
        return PlanAdvice(why_not=what_if.difference)
    groups, n_candidates = _candidates(what_if, limits, advice)
    tried = []
    with counting(len(groups), "constraints of the plan relaxed") as step:
        for group in groups:
            tried.append(_relaxation(what_if, limits, group))
            step()
    together = _last_together(what_if, limits) if is_max_min_fair(plan.method) else ()
    if len(together) > 1 and not any(found.helps for found in tried):
        tried.append(_relaxation(what_if, limits, together))
    return PlanAdvice(tuple(sorted(tried, key=_rank)), n_candidates)


def _ends_as_the_bound(what_if: WhatIf) -> bool:
    """Return whether it is a fastest plan, whose relays wait for chunks at most."""
    plan = what_if.plan
    is_fastest = spec_of(plan.method).attains_bound and plan.deadline_s is None
    if not is_fastest or plan.slot_s is not None:
        return False
    if what_if.burden is not None:
        return False
    bound_s = fluid_optimum(what_if.problem, Budget(what_if.solver)).makespan_s
    chunks_s = (max(route.n_hops for route in plan.routes) - 1) * (plan.chunk_s or 0.0)
    return plan.makespan_s <= (bound_s + chunks_s) * (1 + SAME) or what_if.is_same


def _rank(found: PlanRelaxation) -> tuple[float, ...]:
    saves = (found.saves_cost, found.saves_cost_unlimited, found.saves_s, found.saves_unlimited_s)
    return tuple(np.inf if value is None else -value for value in saves)


# Candidates -----------------------------------------------------------------------------------


def _candidates(
    what_if: WhatIf, limits: PlanLimits, advice: Advice
) -> tuple[list[tuple[Resource, ...]], int]:
    """Return what to relax, and how many constraints bind."""
    plan = what_if.plan
    binds = dict.fromkeys(limit.resource for limit in limits.binds)
    bind = [resource for resource in binds if what_if.can_relax(resource)]
    if is_max_min_fair(plan.method):
        tried = [*filter(what_if.can_relax, _of_the_last(plan, limits)), *_own_links(what_if)]
        every = list(dict.fromkeys([*tried, *bind]))
        tried = every if len(every) <= MOST_TRIED else list(dict.fromkeys(tried))[:MOST_TRIED]
        return [(resource,) for resource in tried], len(every)
    if plan.deadline_s is None:
        groups = [found.resources for found in advice.helps[:MOST_TRIED_IN_SLOTS]]
        return groups, advice.n_candidates
    first = _costliest(what_if, limits.binds)[:MOST_TRIED]
    return [(resource,) for resource in first], len(bind)


def _last_sources(plan: Schedule) -> list[str]:
    finish_s = source_completion_s(plan)
    return [name for name, end_s in finish_s.items() if end_s >= plan.makespan_s * (1 - SAME)]


def _of_the_last(plan: Schedule, limits: PlanLimits) -> list[Resource]:
    """Return what holds back the sources that finish last: to the end, then for longest."""
    at_end: set[Resource] = set()
    held_s: dict[Resource, float] = {}
    for source in _last_sources(plan):
        found = limits.of_source[source]
        at_end |= {limit.resource for limit in found.at_end}
        for limit in found.limits:
            held_s[limit.resource] = held_s.get(limit.resource, 0.0) + limit.held_s
    return sorted(held_s, key=lambda resource: (resource not in at_end, -held_s[resource]))


def _own_links(what_if: WhatIf) -> Iterable[Resource]:
    """Yield the last sources' links to the destination, where routes are compared with them."""
    problem = what_if.problem
    if not spec_of(what_if.plan.method).compares_direct_links:
        return
    hosts = [problem.host_index[name] for name in _last_sources(what_if.plan)]
    links = problem.link_indices(hosts, [problem.destination_index] * len(hosts))
    yield from (Resource("link", link) for link in links.tolist() if link >= 0)


def _last_together(what_if: WhatIf, limits: PlanLimits) -> tuple[Resource, ...]:
    """Return all that holds back the last sources at their end: one alone may not help."""
    ends = (limits.of_source[source].at_end for source in _last_sources(what_if.plan))
    found = dict.fromkeys(limit.resource for end in ends for limit in end)
    return tuple(filter(what_if.can_relax, found))


def _costliest(what_if: WhatIf, binds: Iterable[Limit]) -> list[Resource]:
    """Return what is full, first what holds back the sources whose data cost most.

    Of those alike capacities first, by the bytes that they carry while they are full.
    """
    cost = _cost_of_sources(what_if)
    held: dict[Resource, set[str]] = {}
    size: dict[Resource, float] = {}
    for limit in binds:
        held.setdefault(limit.resource, set()).update(limit.sources)
        kind = limit.resource.kind
        carried = most_through(kind, limit.values) if kind in RATES else limit.held_s
        size[limit.resource] = size.get(limit.resource, 0.0) + carried
    held_cost = {one: math.fsum(cost.get(name, 0.0) for name in held[one]) for one in size}

    def rank(one: Resource) -> tuple[bool | float, ...]:
        paying = {name for name in held[one] if cost.get(name)}
        relays = what_if.plan.prefer in ("relay-bytes", "storage")
        detour = relays and not _on_direct_link(what_if.problem, one, paying)
        return not paying, detour, -held_cost[one], one.kind not in RATES, -size[one]

    return sorted(size, key=rank)


def _cost_of_sources(what_if: WhatIf) -> dict[str, float]:
    """Return what each source's data cost: their price, or the bytes of them that are relayed.

    Where it counts when bytes arrive, all of a source's bytes.
    """
    problem, plan = what_if.problem, what_if.plan
    where = legs(plan, problem.names)
    weight = plan.columns.n_bytes.astype(float)
    if plan.prefer == "money" and problem.price_per_gb is not None:
        weight *= problem.price_per_gb[problem.link_indices(where.tail, where.head)]
    elif plan.prefer == "earliest-arrival":
        weight *= where.is_last
    else:
        weight *= where.hop > 0
    sums = np.bincount(where.source, weight, minlength=problem.n_hosts)
    return dict(zip(problem.names, sums.tolist(), strict=True))


def _on_direct_link(problem: Problem, one: Resource, sources: set[str]) -> bool:
    """Return whether a constraint is on the direct link of one of the sources."""
    destination = problem.destination
    if one.kind == "link":
        tail, head = (int(ends[one.number]) for ends in (problem.link_from, problem.link_to))
        return head == problem.destination_index and problem.names[tail] in sources
    if one.kind == "shared":
        return any((name, destination) in problem.shared[one.number].links for name in sources)
    name = problem.names[one.number]
    if one.kind == "downlink":
        return bool(sources) and name == destination
    return one.kind in ("uplink", "release", "production") and name in sources


# Gains ----------------------------------------------------------------------------------------


def _relaxation(
    what_if: WhatIf, limits: PlanLimits, resources: tuple[Resource, ...]
) -> PlanRelaxation:
    saves_s, saves_cost = _saved(what_if, what_if.relaxed(resources, without_limit=False))
    most_s, most_cost = _saved(what_if, what_if.relaxed(resources, without_limit=True))
    named = tuple(_named(what_if, limits, resource) for resource in resources)
    return PlanRelaxation(named, saves_s, most_s, saves_cost, most_cost)


def _named(what_if: WhatIf, limits: PlanLimits, resource: Resource) -> Relaxed:
    """Say what is relaxed, with its values while it binds, or all of them where it does not."""
    found = [limit for limit in limits.binds if limit.resource == resource]
    if found:
        values = together(found).values
    else:
        values = values_between(what_if.problem, resource, 0.0, what_if.plan.makespan_s)
    if resource == TURNS:
        return Relaxed(resource, "turns", values, (1.0,) * len(values))
    name = resource_name(what_if.problem, resource)
    hours = resource.kind == "window"
    steps = tuple(STEP_S if hours else STEP * then.value for then in values)
    changes = varies(what_if.problem, resource, what_if.plan.makespan_s)
    return Relaxed(resource, name, values, steps, changes)


def _saved(what_if: WhatIf, plan: Schedule | None) -> tuple[float | None, float | None]:
    """Return by how much a plan ends earlier, and costs less where there is a deadline."""
    if plan is None:
        return None, None
    assert what_if.same is not None
    saves_s = _difference(what_if.same.makespan_s, plan.makespan_s)
    if what_if.plan.deadline_s is None or what_if.same.prefer is None:
        return saves_s, None
    wish = what_if.same.prefer
    cost = plan_cost(what_if.problem, what_if.same, wish)
    return saves_s, _difference(cost, plan_cost(what_if.problem, plan, wish))


def _difference(before: float, after: float) -> float:
    return before - after if abs(before - after) > SAME * before else 0.0
