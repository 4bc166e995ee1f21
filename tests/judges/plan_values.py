"""Costs of a schedule, read from its transfers alone."""

from __future__ import annotations

import numpy as np

from datacollect.problem.problem import Problem
from datacollect.schedule.schedule import Schedule


def cost_of(problem: Problem, plan: Schedule, wish: str) -> float:
    """Bytes times links, byte-seconds of others' data at relays, or the price of all links."""
    if wish == "relay-bytes":
        return float(plan.columns.n_bytes.sum())
    if wish == "storage":
        stored = plan.storage()
        return float(
            sum(np.trapezoid(s["stored_bytes"], s["time_s"]) for _, s in stored.groupby("host"))
        )
    if problem.price_per_gb is None:
        return 0.0
    transfers = plan.transfers
    ends = ([problem.host_index[name] for name in transfers[end]] for end in ("from", "to"))
    return (
        float((problem.price_per_gb[problem.link_indices(*ends)] * transfers["bytes"]).sum()) / 1e9
    )


def arrived_bytes(plan: Schedule, time_s: float) -> float:
    """Bytes that have reached the destination by an instant."""
    columns = plan.columns
    last_hops = np.array([route.n_hops - 1 for route in plan.routes])[columns.route]
    last = columns.hop == last_hops
    length_s = columns.finish_s[last] - columns.start_s[last]
    part = np.clip((time_s - columns.start_s[last]) / length_s, 0.0, 1.0)
    return float((columns.n_bytes[last] * part).sum())
