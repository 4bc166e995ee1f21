"""Plans of few bytes with storage, forecasts and shared wires: both judges accept them."""

from __future__ import annotations

import random

from instances.few_bytes import few_bytes
from judges.contract_check import judge

import datacollect as dc


def case(seed: int) -> str | None:
    """Plan a problem pipelined or in slots, with a wish, perhaps a deadline; judge it twice."""
    rng = random.Random(f"whole bytes {seed}")
    problem = few_bytes(rng)
    slot_s = rng.choice([None, None, 0.1, 0.25, 0.3, 0.5, 1.0])
    options = {"prefer": rng.choice(["relay-bytes", "storage", "earliest-arrival"])}
    if slot_s is None:
        options["chunk_s"] = rng.choice([None, 0.0, 0.01, 0.5])
    try:
        if rng.random() < 0.3:
            fastest_s = dc.coordinated(problem, slot_s=slot_s).makespan_s
            if fastest_s > 0:
                options["deadline_s"] = fastest_s * rng.choice([1.001, 1.3, 3.0])
        plan = dc.coordinated(problem, slot_s=slot_s, **options)
    except dc.InfeasibleError:
        return None
    plan.check(problem)
    return judge(problem.to_dict(), plan.to_dict())
