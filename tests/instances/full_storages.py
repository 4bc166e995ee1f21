"""Random problems with relays that have just the room that a fastest plan needs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from instances.few_bytes import few_bytes
from instances.planned_cases import random_problem

import datacollect as dc


def full_storages(
    rng: random.Random, slot_s: float | None = None
) -> tuple[dc.Problem, float] | None:
    """A problem with prices whose storages a fastest plan fills, and when that ends at the latest.

    None where it stores nothing.
    """
    problem = rng.choice([few_bytes, random_problem])(rng)
    if problem.total_bytes < 10**10:
        problem = dc.Problem.from_dict(_scaled(problem.to_dict(), rng.choice([1, 1, 10**6, 10**9])))
    problem = problem.replace(
        price_per_gb=np.array([rng.randrange(5) / 7 for _ in range(problem.n_links)])
    )
    try:
        plan = dc.coordinated(problem, slot_s=slot_s, chunk_s=0.0 if slot_s is None else None)
    except dc.DatacollectError:
        return None
    if not any(plan.peak_storage_bytes.values()):
        return None
    room_bytes = [float(plan.peak_storage_bytes.get(name, 0)) for name in problem.names]
    problem = problem.replace(storage_bytes=np.array(room_bytes))
    return problem, plan.makespan_s if slot_s is not None else dc.lower_bound(problem)[0]


def _scaled(tree: Any, factor: int) -> Any:
    """Return a problem's tree with so many times its bytes, and bytes per second."""
    if isinstance(tree, Mapping):
        return {
            key: _times(value, factor) if "bytes" in key else _scaled(value, factor)
            for key, value in tree.items()
        }
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return [_scaled(each, factor) for each in tree]
    return tree


def _times(value: Any, factor: int) -> Any:
    return [each * factor for each in value] if isinstance(value, list) else value * factor
