"""`explain` over windows: bounds and gains are those of programs whose hours are changed."""

from __future__ import annotations

import copy

from judges.calendar_oracle import HORIZON_DAYS, Case, earliest_s, longer, random_case

import datacollect as dc

EXACT = 1e-6
DAY_S = 86_400.0
STEP = 125_000.0  # 1 Mbit/s in bytes per second


def case(seed: int) -> str | None:
    """Explain one problem; return what is wrong, None where nothing is."""
    found = random_case(seed)
    problem = dc.Problem.from_dict(found.file())
    if not problem.total_bytes:
        return None
    try:
        explained = dc.explain(problem)
    except dc.InfeasibleError as error:
        expected_s = earliest_s(found)
        return None if expected_s is None else f"arrives at {expected_s}, but {error}"
    expected_s = earliest_s(found, explained.lower_bound_s)
    if expected_s is None:
        return None
    if abs(explained.lower_bound_s - expected_s) > EXACT * expected_s:
        return f"bound {explained.lower_bound_s}, by a program {expected_s}"
    if explained.binds and abs(explained.binds[-1].to_s - expected_s) > EXACT * expected_s:
        return f"what binds ends at {explained.binds[-1].to_s}, the bound is {expected_s}"
    for one in explained.advice.alone:
        fault = _gain_fault(found, one, expected_s)
        if fault:
            return fault
    return _plan_fault(found, problem)


def _gain_fault(found: Case, one, before_s: float) -> str | None:
    (resource,) = one.resources
    name, kind = one.names[0], resource.kind
    if kind == "window":
        near_s = before_s - one.saves_s
        gains = {
            end: before_s - _earliest(_longer(found, resource.number, end), near_s) for end in ENDS
        }
        if abs(max(gains.values()) - one.saves_s) > 3 * EXACT * before_s:
            return f"{name}: an hour saves {one.saves_s}, carried out {gains}"
        near_s = before_s - one.saves_unlimited_s
        most_s = before_s - _earliest(_without(found, resource.number), near_s)
        if abs(most_s - one.saves_unlimited_s) > 3 * EXACT * before_s:
            return f"{name}: without it {one.saves_unlimited_s} are saved, carried out {most_s}"
        return None
    wide = copy.deepcopy(found)
    if kind == "link":
        ends = name.removeprefix("link ").replace("'", "").split(" -> ")
        link = next(x for x in wide.tree["links"] if [x["from"], x["to"]] == ends)
        link["bandwidth_bytes_per_s"] += STEP
    elif kind == "storage":
        wide.tree["hosts"][name.rpartition(" ")[2].strip("'")]["storage_bytes"] += 10**9
    else:
        return None
    saved_s = before_s - _earliest(wide, before_s - one.saves_s)
    if abs(saved_s - one.saves_s) > 3 * EXACT * before_s:
        return f"{name}: saves {one.saves_s}, carried out {saved_s}"
    return None


ENDS = ("closes", "opens")


def _earliest(found: Case, near_s: float) -> float:
    end_s = earliest_s(found, near_s)
    assert end_s is not None, "more is open, and nothing arrives"
    return end_s


def _longer(found: Case, group: int, end: str) -> Case:
    own = found.groups()[group]
    changed = {owner: longer(found.windows[owner], end) for owner in own}
    return Case(found.tree, found.windows | changed)


def _without(found: Case, group: int) -> Case:
    own = found.groups()[group]
    return Case(found.tree, {key: each for key, each in found.windows.items() if key not in own})


def _plan_fault(found: Case, problem: dc.Problem) -> str | None:
    """Gains in a direct plan are those of one that is planned with the changed hours."""
    try:
        plan = dc.direct(problem)
    except dc.InfeasibleError:
        return None
    if plan.makespan_s > HORIZON_DAYS * DAY_S:
        return None
    for one in dc.explain(problem, plan).plan.advice.tried:
        (resource, *others) = one.resources
        if others or resource.kind != "window" or one.saves_s is None:
            continue
        anew = dc.direct(dc.Problem.from_dict(_longer(found, resource.number, resource.end).file()))
        if abs(plan.makespan_s - anew.makespan_s - one.saves_s) > 1e-5 * plan.makespan_s:
            return f"direct, {one.names[0]}: saves {one.saves_s}, ends at {anew.makespan_s}"
    return None
