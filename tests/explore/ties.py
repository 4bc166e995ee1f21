"""Every solver that is installed plans the same end, where several flows cost the same.

Problems are small and full of ties: few distinct rates and backlogs, or many of them of which
fastest flows need several hops.
"""

from __future__ import annotations

import random
from typing import Any

import datacollect as dc
from datacollect.solvers.choice import available_flow_solvers

# Ends are sums and quotients of floats, whose order differs.
SAME = 1e-9


def installed() -> list[str]:
    """Return the names of solvers that can be asked here."""
    return list(available_flow_solvers())


def problem_tree(seed: int) -> dict[str, Any]:
    """Return a problem of up to seven hosts, as a file would hold it."""
    draws = random.Random(seed)
    names = [f"h{i}" for i in range(draws.randint(3, 7))]
    few = draws.random() < 0.5  # distinct numbers
    periods_s = [0.0] if draws.random() < 0.7 else [0.0, 300.0, 1000.0]
    hosts: dict[str, dict[str, Any]] = {"D": {}}
    for name in names:
        n_bytes = draws.choice([0, 10**6, 2 * 10**6]) if few else draws.randint(0, 10**9)
        hosts[name] = {"backlog_bytes": n_bytes}
        if draws.random() < 0.15:
            rate = draws.choice([1e3, 2e3]) if few else draws.uniform(100, 1000)
            hosts[name]["uplink_bytes_per_s"] = rate
        if draws.random() < 0.1:
            hosts[name]["release_s"] = draws.choice([0, 100.0])
        if draws.random() < 0.1:
            hosts[name]["storage_bytes"] = draws.choice([0, 10**6])
    dense = draws.choice([0.4, 0.7, 1.0])
    links = []
    for tail in names:
        for head in [*names, "D"]:
            if tail != head and draws.random() < dense:
                rates = [
                    draws.choice([1e3, 2e3, 4e3]) if few else float(draws.randint(1, 1000))
                    for _ in periods_s
                ]
                rate_or_rates = rates if len(rates) > 1 else rates[0]
                links.append({"from": tail, "to": head, "bandwidth_bytes_per_s": rate_or_rates})
    tree = {"destination": "D", "hosts": hosts, "links": links}
    return tree if len(periods_s) == 1 else tree | {"periods_s": periods_s}


def ends_s(problem: dc.Problem) -> dict[str, float]:
    """Return when each solver's plan ends; nothing where there is no plan."""
    try:
        return {name: dc.coordinated(problem, solver=name).makespan_s for name in installed()}
    except dc.InfeasibleError:
        return {}


def case(seed: int) -> str | None:
    """Plan one problem by every solver; return what differs, None where nothing does."""
    found = ends_s(dc.Problem.from_dict(problem_tree(seed)))
    if found and max(found.values()) > min(found.values()) * (1 + SAME):
        return f"solvers plan other ends: {found}"
    return None
