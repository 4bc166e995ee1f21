"""`explain` at hostile scales: bounds and gains are those of programs that are widened for real."""

from __future__ import annotations

import copy
import random

import numpy as np
from judges.hostile_programs import EXACT, Case, earliest_s, random_case

import datacollect as dc

STEP = 125_000.0  # 1 Mbit/s in bytes per second
# So many gains of each explanation are computed again.
MOST_GAINS = 2


def widened(case: Case, kind: str, name: str, number: int, factor: float, step: float) -> Case:
    """Return the problem with one constraint larger, wherever it has bandwidth."""
    tree = copy.deepcopy(case.tree)
    pools = copy.deepcopy(case.pools)
    if kind == "link":
        ends = name.removeprefix("link ").replace("'", "").split(" -> ")
        link = next(one for one in tree["links"] if [one["from"], one["to"]] == ends)
        link["bandwidth_bytes_per_s"] = _more(link["bandwidth_bytes_per_s"], factor, step)
        return Case(tree, pools)
    host = name.rpartition(" ")[2].strip("'")
    key = {"uplink": "uplink_bytes_per_s", "downlink": "downlink_bytes_per_s"}.get(kind)
    if key is not None:
        tree["hosts"][host][key] = _more(tree["hosts"][host][key], factor, step)
    elif kind == "release":
        now_s = tree["hosts"][host]["release_s"]
        tree["hosts"][host]["release_s"] = max(now_s * (2 - factor) - min(step, now_s), 0.0)
        for pool in pools:
            if pool.host == host:
                pool.release_s = tree["hosts"][host]["release_s"]
    return Case(tree, pools)


def _more(rates: float | list[float], factor: float, step: float) -> float | list[float]:
    more = [rate * factor + step if rate else 0.0 for rate in np.ravel(rates).tolist()]
    return more if isinstance(rates, list) else more[0]


def case(seed: int) -> str | None:
    """Explain one problem, with a plan; return what is wrong, None where nothing is."""
    found_case = random_case(seed)
    problem = dc.Problem.from_dict(found_case.tree)
    expected_s = earliest_s(found_case)
    try:
        found = dc.explain(problem)
    except dc.InfeasibleError:
        return None if expected_s is None else f"no way is found, but all arrives at {expected_s}"
    if expected_s is None:
        return f"never arrives, but explained as {found.lower_bound_s}"
    if abs(found.lower_bound_s - expected_s) > EXACT * expected_s:
        return f"bound {found.lower_bound_s}, by a program {expected_s}"
    if found.binds and abs(found.binds[-1].to_s - found.lower_bound_s) > EXACT * expected_s:
        return f"what binds ends at {found.binds[-1].to_s}, the bound is {found.lower_bound_s}"
    for one in found.advice.alone:
        fault = _values_fault(found_case, one.relaxed[0], found.lower_bound_s)
        if fault:
            return fault
    for one in found.advice.alone[:MOST_GAINS]:
        (resource,) = one.resources
        if resource.kind == "storage":
            continue  # a step of 1 GB, for which the program has no place
        step = 1.0 if resource.kind == "release" else STEP
        wide = widened(found_case, resource.kind, one.names[0], resource.number, 1.0, step)
        after_s = earliest_s(wide)
        saved_s = expected_s - (after_s or 0.0)
        if abs(saved_s - one.saves_s) > 3 * EXACT * expected_s:
            return f"{one.names[0]}: saves {one.saves_s}, widened {saved_s}"
    return _plan_fault(seed, found_case, problem)


def _values_fault(found: Case, relaxed, end_s: float) -> str | None:
    """Values are those of the problem in each stretch, within the time until the end."""
    for then in relaxed.values:
        if not 0 <= then.from_s <= then.to_s <= end_s * (1 + 1e-9):
            return f"{relaxed.name}: a stretch from {then.from_s} to {then.to_s} of {end_s}"
        middle_s = then.from_s + (then.to_s - then.from_s) / 2
        value = then.value
        if relaxed.resource.kind == "link":
            ends = relaxed.name.removeprefix("link ").replace("'", "").split(" -> ")
            link = next(x for x in found.tree["links"] if [x["from"], x["to"]] == ends)
            value = found.rate(link, middle_s)
        elif relaxed.resource.kind in ("uplink", "downlink"):
            host = found.tree["hosts"][relaxed.name.rpartition(" ")[2].strip("'")]
            value = found.then(host[f"{relaxed.resource.kind}_bytes_per_s"], middle_s)
        if value != then.value:
            return f"{relaxed.name} at {then.from_s}: {then.value}, is {value}"
    return None


def _plan_fault(seed: int, found_case: Case, problem: dc.Problem) -> str | None:
    """A plan's explanation: parts add up, gains are those of plans of problems that are wider."""
    draws = random.Random(seed)
    method, n_slots = draws.choice(["direct", "slots", "best-path"]), draws.randint(2, 6)
    if not problem.total_bytes:
        return None
    try:
        plan = _planned(problem, method, dc.lower_bound(problem)[0] / n_slots, None)
    except (dc.InfeasibleError, dc.ProblemError):
        return None  # no usable route, or slots in which no whole byte passes
    explained = dc.explain(problem, plan).plan
    parts_s = sum(part.seconds for part in explained.parts)
    if abs(parts_s - explained.excess_s) > 2e-5 * plan.makespan_s:
        return f"{method}: parts of {parts_s} s make {explained.excess_s} s"
    for limit in explained.binds:
        if not -1e-9 <= limit.from_s <= limit.to_s <= plan.makespan_s * (1 + 1e-6):
            return f"{method}: {limit.name} binds from {limit.from_s} to {limit.to_s}"
    for one in explained.advice.tried[:1]:
        if len(one.resources) > 1 or one.saves_s is None:
            continue
        kind = one.resources[0].kind
        if kind not in ("link", "uplink", "downlink"):
            continue
        wide = widened(found_case, kind, one.names[0], one.resources[0].number, 1.1, 0.0)
        after = dc.Problem.from_dict(wide.tree)
        anew = _planned(after, method, plan.slot_s, plan.chunk_s)
        saved_s = plan.makespan_s - anew.makespan_s
        if abs(saved_s - one.saves_s) > 1e-5 * plan.makespan_s:
            return f"{method}: {one.names[0]} saves {one.saves_s}, planned again {saved_s}"
    return None


def _planned(
    problem: dc.Problem, method: str, slot_s: float | None, chunk_s: float | None
) -> dc.Schedule:
    if method == "slots":
        return dc.coordinated(problem, slot_s=slot_s)
    return dc.direct(problem) if method == "direct" else dc.best_path(problem, chunk_s=chunk_s)
