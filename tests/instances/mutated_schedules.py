"""Plans with something changed, by seed: about half of the changes come near a rule's border."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from functools import lru_cache

from instances import plan_changes, transfer_changes
from instances.change_sizes import Tree
from instances.planned_cases import planned

from datacollect import Problem
from datacollect.errors import DatacollectError

PER_PLAN = 4  # planning takes longer than changing: so many cases share a plan

CHANGES = {
    transfer_changes.nothing: 3,
    transfer_changes.shift: 10,
    transfer_changes.shift_hop: 5,
    transfer_changes.scale: 5,
    transfer_changes.later: 3,
    transfer_changes.hurry: 5,
    transfer_changes.no_time: 4,
    transfer_changes.overlap: 2,
    transfer_changes.move_bytes: 4,
    transfer_changes.drop: 1,
    transfer_changes.duplicate: 1,
    transfer_changes.change_bytes: 2,
    transfer_changes.split: 6,
    transfer_changes.side_by_side: 3,
    transfer_changes.merge: 2,
    transfer_changes.one_byte_each: 5,
    plan_changes.chunk: 4,
    plan_changes.lag: 5,
    plan_changes.makespan: 3,
    plan_changes.slot: 3,
    plan_changes.route: 2,
    plan_changes.bad_value: 2,
    plan_changes.bandwidth: 6,
    plan_changes.period: 4,
    plan_changes.release: 4,
    plan_changes.storage: 6,
}


@dataclass(frozen=True)
class Mutated:
    """A problem and a schedule, both trees, and how they differ from a plan and its problem."""

    seed: int
    what: str
    problem: Tree
    schedule: Tree


@lru_cache(maxsize=4)
def _planned(seed: int) -> tuple[Tree, Tree]:
    return planned(seed)


def mutated(seed: int) -> Mutated:
    """Case number `seed`: one change, sometimes two, sometimes none."""
    rng = random.Random(f"mutation {seed}")
    base = _planned(seed // PER_PLAN)
    while True:
        problem, schedule = copy.deepcopy(base)
        n = rng.choice([1, 1, 1, 1, 2]) if schedule["transfers"] else 0
        changes = rng.choices(list(CHANGES), weights=list(CHANGES.values()), k=n)
        # Nothing else can be done to what is no number.
        changes.sort(key=lambda change: change is plan_changes.bad_value)
        try:
            said = [f"{do.__name__}({do(rng, problem, schedule)})" for do in changes]
            Problem.from_dict(problem)
        except (DatacollectError, ArithmeticError, LookupError, ValueError):
            continue  # the first change left nothing for the second, or no problem to judge by
        return Mutated(seed, " ".join(said) or "nothing", problem, schedule)
