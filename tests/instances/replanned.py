"""Problems to plan again for, plans under way, and what they send over which links."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from hypothesis import HealthCheck, assume, settings
from instances.small_problems import MB

import datacollect as dc

# Many a plan has no rest that could be planned again.
MANY_DISCARDED = settings(suppress_health_check=[HealthCheck.filter_too_much])


def relay_problem(**changes) -> dc.Problem:
    """S sends to D, directly at 1 MB/s and over K at 1 MB/s; J could relay as well."""
    links = [dc.Link(a, b, 1e6) for a, b in (("S", "D"), ("S", "K"), ("K", "D"), ("S", "J"))]
    links.append(dc.Link("J", "D", 1e6))
    hosts = [dc.Host("S", backlog_bytes=8 * MB), dc.Host("K"), dc.Host("J"), dc.Host("D")]
    return dc.Problem.from_hosts(hosts, links, "D").replace(**changes)


@cache
def plan_over_k(chunk_s: float = 0.0) -> dc.Schedule:
    """The plan for `relay_problem` before J was there: 4 s, half directly, half over K."""
    problem = relay_problem()
    without_j = [i for i in range(problem.n_links) if "J" not in ends(problem, i)]
    return dc.coordinated(problem.with_links(np.array(without_j)), chunk_s=chunk_s)


def ends(problem: dc.Problem, link: int) -> tuple[str, str]:
    return problem.names[problem.link_from[link]], problem.names[problem.link_to[link]]


def into_d_from(problem: dc.Problem, name: str) -> np.ndarray:
    pairs = [ends(problem, i) for i in range(problem.n_links)]
    return np.array([[pair == (name, "D") for pair in pairs]])


def mesh(n_hosts: int, seed: int, *, limits: bool) -> dc.Problem:
    """Links between all hosts; a few have data, and maybe all have limits."""
    rng = np.random.default_rng(seed)
    bandwidth = rng.lognormal(0.0, 1.0, (n_hosts, n_hosts)) * MB
    backlog = np.where(rng.random(n_hosts) < 0.3, rng.integers(1, 10, n_hosts), 0) * 1000 * MB
    backlog[0], backlog[1] = 0, 5000 * MB
    limit = n_hosts / 2 * MB * rng.uniform(0.5, 1.5, n_hosts) if limits else math.inf
    names = [f"h{i}" for i in range(n_hosts)]
    return dc.Problem.from_matrix(
        names, bandwidth, backlog, "h0", uplink_bytes_per_s=limit, downlink_bytes_per_s=limit
    )


def perturbed(problem: dc.Problem, part: float, seed: int = 7) -> dc.Problem:
    """The same with other bandwidths, each up to a part more or less."""
    factor = np.random.default_rng(seed).uniform(1 - part, 1 + part, problem.n_links)
    return problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor)


def times(problem: dc.Problem, factor: float) -> dc.Problem:
    """The same with so many times the rates, hosts' and shared ones too."""
    shared = [
        dc.SharedBottleneck(s.name, s.bandwidth_bytes_per_s * factor, s.links)
        for s in problem.shared
    ]
    return problem.replace(
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor,
        uplink_bytes_per_s=problem.uplink_bytes_per_s * factor,
        downlink_bytes_per_s=problem.downlink_bytes_per_s * factor,
        shared=tuple(shared),
    )


def in_large_units(problem: dc.Problem) -> dc.Problem:
    """The same with a million times as many bytes, unless they are many already."""
    if problem.backlog_bytes.max() >= MB:
        return problem
    held = [dc.Held(h.host, h.source, h.offset_bytes, h.n_bytes * MB) for h in problem.held]
    return times(problem, MB).replace(
        backlog_bytes=problem.backlog_bytes * MB,
        storage_bytes=problem.storage_bytes * MB,
        held=tuple(held),
    )


def with_room_for_rounding(problem: dc.Problem) -> dc.Problem:
    """A little more capacity: what is left of a transfer is rounded up to a whole byte."""
    room = np.ceil(problem.storage_bytes * (1 + 1e-5) + 10)
    return times(problem, 1 + 1e-5).replace(storage_bytes=room)


def planned(problem: dc.Problem, **options) -> dc.Schedule:
    """A coordinated plan; what has none is no example."""
    try:
        return dc.coordinated(problem, **options)
    except dc.InfeasibleError:
        assume(False)
        raise


def held_tree(host="K", source="S", offset=0, n_bytes=MB) -> dict[str, object]:
    return {"host": host, "source": source, "offset_bytes": offset, "bytes": n_bytes}


def shared_mesh(n_hosts: int, seed: int, *, limits: bool, changes: bool = False) -> dc.Problem:
    """Up to three wires, each with many links into the destination and a few others."""
    rng = np.random.default_rng(seed + 1000)
    problem = mesh(n_hosts, seed, limits=limits)
    last = problem.link_to == problem.destination_index
    shared = []
    for number in range(int(rng.integers(1, 4))):
        members = np.flatnonzero(rng.random(problem.n_links) < np.where(last, 0.4, 0.05))
        rate = problem.bandwidth_bytes_per_s[0, members[last[members]]].sum() * rng.uniform(
            0.2, 0.8
        )
        if rate > 0:
            shared.append(dc.SharedBottleneck(f"w{number}", rate, ends_of(problem, members)))
    problem = problem.replace(shared=tuple(shared))
    if not changes:
        return problem
    return problem.replace(
        periods_s=np.array([0.0, 200.0, 500.0]),
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s
        * rng.uniform(0.3, 2, (3, problem.n_links)),
        release_s=np.where(rng.random(n_hosts) < 0.3, 150.0, 0.0),
        storage_bytes=np.where(rng.random(n_hosts) < 0.3, 1e9, np.inf),
    )


def ends_of(problem: dc.Problem, links: np.ndarray) -> list[tuple[str, str]]:
    pairs = zip(problem.link_from[links].tolist(), problem.link_to[links].tolist(), strict=True)
    return [(problem.names[a], problem.names[b]) for a, b in pairs]


def two_sources_on_a_wire(**changes) -> dc.Problem:
    """S and T hold 4 MB each; their links to D, 1 MB/s each, share 1 MB/s. K is apart, 1 MB/s."""
    hosts = [dc.Host("S", 4 * MB), dc.Host("T", 4 * MB), dc.Host("K"), dc.Host("D")]
    pairs = [("S", "D"), ("T", "D"), ("S", "K"), ("T", "K"), ("K", "D")]
    wire = dc.SharedBottleneck("wire", 1e6, pairs[:2])
    links = [dc.Link(a, b, 1e6) for a, b in pairs]
    return dc.Problem.from_hosts(hosts, links, "D", shared=[wire]).replace(**changes)


def direct_links(problem: dc.Problem, *names: str) -> np.ndarray:
    hosts = [problem.host_index[name] for name in names]
    links = problem.link_indices(hosts, [problem.destination_index] * len(hosts))
    return np.sort(links)


def bytes_over(schedule: dc.Schedule) -> dict[tuple[str, str], int]:
    table = schedule.transfers.groupby(["from", "to"])["bytes"].sum()
    return {pair: int(n_bytes) for pair, n_bytes in table.items()}


def new_bytes(problem: dc.Problem, plan: dc.Schedule, schedule: dc.Schedule) -> int:
    """Bytes over links that the plan does not use."""
    old = bytes_over(plan)
    return sum(n for pair, n in bytes_over(schedule).items() if pair not in old)
