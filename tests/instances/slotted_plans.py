"""Problems to plan in slots, and their plans."""

from __future__ import annotations

import numpy as np

from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.slotted.plan import slotted_schedule
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget

WITHOUT_SHARED = frozenset({"limits", "forecast", "release", "storage", "held"})


def overlay(n_hosts, degree, seed, **options):
    """Hosts on a square, links among the nearest and around; some hold data, links have prices."""
    rng = np.random.default_rng(seed)
    place = rng.random((n_hosts, 2))
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    near = np.argsort(distance, axis=1)[:, 1 : degree + 1]
    bandwidth = np.zeros((n_hosts, n_hosts))
    np.put_along_axis(bandwidth, near, 1.0, axis=1)
    bandwidth[np.arange(1, n_hosts), np.arange(n_hosts - 1)] = 1.0
    bandwidth = np.maximum(bandwidth, bandwidth.T) * rng.integers(1, 60, (n_hosts, n_hosts))
    backlog = np.where(rng.random(n_hosts) < 0.4, rng.integers(20, 200, n_hosts), 0)
    backlog[0] = 0
    problem = Problem.from_matrix([f"h{i}" for i in range(n_hosts)], bandwidth, backlog, "h0")
    price = rng.integers(1, 9, problem.n_links).astype(float)
    return problem.replace(price_per_gb=price, **options)


def plan_slots(problem, prefer="relay-bytes", slot_s=1.0, n_slots=None):
    """Plan in slots; all of `n_slots` may be used where it is given."""
    budget = Budget()
    deadline_s = None if n_slots is None else n_slots * slot_s
    optimum = fluid_optimum(problem, budget)
    plan = slotted_schedule(problem, optimum, slot_s, budget, prefer, deadline_s)
    plan.check(problem)
    return plan


def slots_of(plan):
    return round(plan.makespan_s / plan.slot_s)


def owners_with_limits(problem):
    """Owners of held data with a storage limit: such data may return there without needing room."""
    room = problem.storage_bytes
    return [p for p in problem.parcels if p.host != p.source and np.isfinite(room[p.source])]
