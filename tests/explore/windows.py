"""Windows in zones, as clocks change; with slots, storage, deadlines, prices: by linear programs"""

from __future__ import annotations

import random

from judges.calendar_oracle import (
    HORIZON_DAYS,
    Case,
    earliest_s,
    least_money,
    listed,
    random_case,
    slots_lead,
)
from judges.contract_check import judge

import datacollect as dc

EXACT = 1e-6
DAY_S = 86_400.0


def case(seed: int) -> str | None:
    """Plan one problem; return what is wrong, None where nothing is."""
    found = random_case(seed)
    problem = dc.Problem.from_dict(found.file())
    if not problem.total_bytes:
        return None
    if dc.Problem.from_dict(problem.to_dict()) != problem or problem.until(9e6) != problem:
        return "another problem when it is written, or listed further"
    try:
        bound_s, _ = dc.lower_bound(problem)
    except dc.InfeasibleError as error:
        expected_s = earliest_s(found)
        return None if expected_s is None else f"arrives at {expected_s}, but {error}"
    expected_s = earliest_s(found, bound_s)
    if expected_s is None:
        return None if bound_s > HORIZON_DAYS * DAY_S * (1 - EXACT) else f"no way, but {bound_s}"
    if abs(bound_s - expected_s) > EXACT * expected_s:
        return f"bound {bound_s}, by a program {expected_s}"
    draws = random.Random(seed)
    return _plan_fault(found, problem, bound_s, draws) or _slots_fault(found, problem, draws)


def _plan_fault(
    found: Case, problem: dc.Problem, bound_s: float, draws: random.Random
) -> str | None:
    """A plan is valid by the contract; coordinated it ends at the bound, or is the cheapest."""
    method = draws.choice(("direct", "best-path", "coordinated", "deadline"))
    if method == "deadline":
        return _deadline_fault(found, problem, bound_s * draws.choice((1.0, 1.3, 3.0)))
    try:
        if method == "coordinated":
            plan = dc.coordinated(problem, chunk_s=0.0)
        else:
            plan = dc.direct(problem) if method == "direct" else dc.best_path(problem, chunk_s=0.0)
    except dc.InfeasibleError as error:
        return f"coordinated: {error}" if method == "coordinated" else None
    if method == "coordinated" and plan.makespan_s > bound_s * (1 + EXACT):
        return f"ends at {plan.makespan_s}, could at {bound_s}"
    if plan.makespan_s < bound_s * (1 - EXACT):
        return f"{method} ends at {plan.makespan_s} before {bound_s}"
    return _judged(found, problem, plan)


def _deadline_fault(found: Case, problem: dc.Problem, deadline_s: float) -> str | None:
    if problem.price_per_gb is None or deadline_s > HORIZON_DAYS * DAY_S:
        return None
    plan = dc.coordinated(problem, chunk_s=0.0, prefer="money", deadline_s=deadline_s * (1 + 1e-9))
    least = least_money(found, deadline_s * (1 + 1e-9))
    money = float((plan.transfers["bytes"] * _prices(found, plan)).sum()) / 1e9
    if least is None or money > least * (1 + EXACT) + 1e-6:
        return f"costs {money} by {deadline_s}, by a program {least}"
    return _judged(found, problem, plan)


def _prices(found: Case, plan: dc.Schedule):
    price = {(x["from"], x["to"]): x.get("price_per_gb", 0.0) for x in found.tree["links"]}
    pairs = zip(plan.transfers["from"], plan.transfers["to"], strict=True)
    return [price[pair] for pair in pairs]


def _judged(found: Case, problem: dc.Problem, plan: dc.Schedule) -> str | None:
    plan.check(problem)
    if plan.makespan_s > HORIZON_DAYS * DAY_S:
        return None
    return judge(listed(found, int(plan.makespan_s // DAY_S) + 1), plan.to_dict())


def _slots_fault(found: Case, problem: dc.Problem, draws: random.Random) -> str | None:
    """Slots are refused where none leads to the destination, and those that are named do."""
    slot_s = draws.choice((900.0, 1800.0, 3600.0, 5400.0, 7200.0, 14_400.0))
    lead = slots_lead(found, slot_s, 16)
    try:
        plan = dc.coordinated(problem, slot_s=slot_s)
    except dc.InfeasibleError as error:
        if lead.issuperset(problem.sources) and "searched until" not in str(error):
            return f"slots of {slot_s} s lead from {sorted(lead)}, but {error}"
        text = str(error)
        if "slots of" in text and text.startswith("no whole slot"):
            named_s = float(text.rpartition("slots of ")[2].split()[0])
            dc.coordinated(problem, slot_s=named_s)
        return None
    return _judged(found, problem, plan)
