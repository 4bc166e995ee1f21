"""Storages full to the byte at the earliest end: every wish is planned, by any deadline."""

from __future__ import annotations

import random

from instances.full_storages import full_storages
from judges.contract_check import judge

import datacollect as dc
from datacollect.flow.network.layered import with_room_for_returns

WISHES = ("relay-bytes", "storage", "earliest-arrival", "money")
SLACKS = (1.0, 1.0, 1.0, 1 + 1e-7, 1.01)


def case(seed: int) -> str | None:
    """Plan by the earliest end, where less room would be too little; both judges accept it."""
    rng = random.Random(f"full storages {seed}")
    slot_s = rng.choice([None, None, None, 0.25, 1.0])
    try:
        found = full_storages(rng, slot_s)
    except dc.ProblemError:
        return None  # no problem
    if found is None or with_room_for_returns(found[0]) is not None:
        return None
    problem, earliest_s = found
    deadline_s = earliest_s * rng.choice(SLACKS) if rng.random() < 0.7 else None
    chunk_s = rng.choice([0.0, 0.0, None]) if slot_s is None else None
    plan = dc.coordinated(
        problem, slot_s=slot_s, chunk_s=chunk_s, deadline_s=deadline_s, prefer=rng.choice(WISHES)
    )
    plan.check(problem)
    if deadline_s is not None and plan.makespan_s > deadline_s * (1 + 1e-6):
        return f"ends at {plan.makespan_s!r} s, deadline_s {deadline_s!r}"
    return judge(problem.to_dict(), plan.to_dict())
