"""`replan` at hostile scales: what is left is what simple bookkeeping says, and all arrives."""

from __future__ import annotations

import copy
import random
from typing import Any

from judges.hostile_programs import EXACT, Case, Pool, earliest_s, random_case

import datacollect as dc

STABILITY = 0.01


def progress_of(draws: random.Random, found: Case, end_s: float) -> dict[str, Any]:
    """Say that a part of each source's data has come, and that one link is slower or faster."""
    held = []
    for name, host in found.tree["hosts"].items():
        n_bytes = host.get("backlog_bytes", 0)
        collected = int(n_bytes * draws.choice([0, 0.25, 0.5, 1]))
        if collected and not host.get("release_s"):
            held.append({"host": "D", "source": name, "offset_bytes": 0, "bytes": collected})
    link = draws.choice(found.tree["links"])
    tree = {"format": "datacollect-progress/1", "at_s": end_s * draws.choice([0, 0.1, 0.5])}
    if held:
        tree["held"] = held
    if draws.random() < 0.5 and "periods_s" not in found.tree:
        rate = link["bandwidth_bytes_per_s"] * draws.choice([0.5, 3])
        tree["links"] = [{"from": link["from"], "to": link["to"], "bandwidth_bytes_per_s": rate}]
    return tree


def remainder(found: Case, progress: dict[str, Any]) -> Case:
    """Return what is left, counted by hand: bytes, releases and periods from the new time 0 on."""
    at_s = progress["at_s"]
    tree = copy.deepcopy(found.tree)
    collected = {held["source"]: held["bytes"] for held in progress.get("held", [])}
    starts = tree.get("periods_s", [0.0])
    first = max(i for i, start in enumerate(starts) if start <= at_s)
    if "periods_s" in tree:
        tree["periods_s"] = [0.0, *(start - at_s for start in starts[first + 1 :])]
        for link in tree["links"]:
            link["bandwidth_bytes_per_s"] = link["bandwidth_bytes_per_s"][first:]
        for host in tree["hosts"].values():
            for key in ("uplink_bytes_per_s", "downlink_bytes_per_s"):
                if isinstance(host.get(key), list):
                    host[key] = host[key][first:]
    for changed in progress.get("links", []):
        for link in tree["links"]:
            if (link["from"], link["to"]) == (changed["from"], changed["to"]):
                link["bandwidth_bytes_per_s"] = changed["bandwidth_bytes_per_s"]
    pools = [
        Pool(p.host, p.n_bytes - collected.get(p.host, 0), max(p.release_s - at_s, 0.0))
        for p in found.pools
    ]
    return Case(tree, [pool for pool in pools if pool.n_bytes])


def case(seed: int) -> str | None:
    """Plan one problem, and what is left of it again; return what is wrong."""
    draws = random.Random(seed)
    found = random_case(seed)
    end_s = earliest_s(found)
    if not end_s:
        return None
    problem = dc.Problem.from_dict(found.tree)
    slot_s = end_s / draws.randint(2, 6) if draws.random() < 0.4 else None
    shape = {"chunk_s": 0.0} if slot_s is None else {"slot_s": slot_s}
    try:
        plan = dc.coordinated(problem, **shape)
    except (dc.InfeasibleError, dc.ProblemError) as error:
        return None if slot_s is not None else f"cut-through: {error}"
    progress = progress_of(draws, found, plan.makespan_s)
    left = remainder(found, progress)
    expected_s = earliest_s(left)
    try:
        rest = dc.replan(problem, plan, progress)
    except (dc.InfeasibleError, dc.ProblemError) as error:
        expected = expected_s is None or slot_s is not None
        return None if expected else f"no rest is planned, but all arrives at {expected_s}: {error}"
    if expected_s is None:
        return f"never arrives, but the rest ends at {rest.makespan_s}"
    rest.check(dc.remaining_problem(problem, dc.Progress.from_dict(progress, problem)))
    table = rest.transfers
    arriving = int(table.loc[table["to"] == "D", "bytes"].sum())
    due = sum(pool.n_bytes for pool in left.pools)
    if arriving != due:
        return f"{arriving} bytes arrive of {due} that are left"
    if abs(rest.lower_bound_s - expected_s) > EXACT * max(expected_s, EXACT * end_s):
        return f"bound {rest.lower_bound_s}, by a program {expected_s}"
    latest_s = expected_s * (1 + STABILITY) * (1 + EXACT)
    if slot_s is None and rest.makespan_s > latest_s and rest.status == "optimal":
        return f"ends at {rest.makespan_s}, later than {latest_s}"
    return None
