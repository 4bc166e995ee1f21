"""Problems of any size for measurements of speed; host 0 collects, a quarter of the hosts send.

Numbers are drawn from seeds: the same problem every time.
"""

from __future__ import annotations

import numpy as np

import datacollect as dc

SEED = 1

# A hop away from the destination a geometric overlay is ten times slower, up to so many hops.
FAST_HOPS = 6

N_SHARED = 10


def names_of(n_hosts: int) -> list[str]:
    return [f"h{i}" for i in range(n_hosts)]


def backlogs(rng: np.random.Generator, n_hosts: int) -> np.ndarray:
    """Let a quarter of the hosts hold 1 to 10 GB."""
    sources = rng.choice(np.arange(1, n_hosts), n_hosts // 4, replace=False)
    backlog = np.zeros(n_hosts, dtype=np.int64)
    backlog[sources] = rng.integers(10**9, 10**10, len(sources))
    return backlog


# Full meshes --------------------------------------------------------------------------------


def mesh(n_hosts: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Draw names, bandwidths and backlogs of a full mesh: lognormal(0, 1) MB/s."""
    rng = np.random.default_rng(SEED)
    bandwidth = rng.lognormal(0.0, 1.0, (n_hosts, n_hosts)) * 1e6
    return names_of(n_hosts), bandwidth, backlogs(rng, n_hosts)


def mesh_problem(n_hosts: int) -> dc.Problem:
    """Build a full mesh."""
    return dc.Problem.from_matrix(*mesh(n_hosts), "h0")


def one_big_holder(n_hosts: int) -> dc.Problem:
    """Give one source nine tenths of all data: its own links bind, or nearly so."""
    problem = mesh_problem(n_hosts)
    backlog = problem.backlog_bytes.copy()
    largest = int(backlog.argmax())
    backlog[largest] = 9 * (backlog.sum() - backlog[largest])
    return problem.replace(backlog_bytes=backlog)


def limited_mesh(n_hosts: int) -> dc.Problem:
    """Limit what hosts send and receive to a half of what their links carry, 0.5 to 1.5 times."""
    problem = mesh_problem(n_hosts)
    rng = np.random.default_rng(SEED)
    typical = problem.bandwidth_bytes_per_s.mean() * n_hosts / 2
    return problem.replace(
        uplink_bytes_per_s=typical * rng.uniform(0.5, 1.5, n_hosts),
        downlink_bytes_per_s=typical * rng.uniform(0.5, 1.5, n_hosts),
    )


def shared_by_regions(n_hosts: int) -> dc.Problem:
    """Let the hosts of each of ten regions share a way to the destination, besides host limits.

    It carries a quarter to three quarters of their links into the destination together.
    """
    problem = limited_mesh(n_hosts)
    rng = np.random.default_rng(SEED)
    region = rng.integers(N_SHARED, size=n_hosts)[problem.link_from]
    last = problem.link_to == problem.destination_index
    members = [np.flatnonzero(last & (region == number)) for number in range(N_SHARED)]
    return with_shared(problem, members, 0.5 * rng.uniform(0.5, 1.5, N_SHARED))


def shared_at_random(n_hosts: int) -> dc.Problem:
    """Let ten bottlenecks be shared by links drawn at random, besides host limits.

    Each has a fifth of the links into the destination, of whose bandwidth together it carries 5
    to 15 %, and 2 % of all other links: several bind, and no cut of hosts tells which.
    """
    problem = limited_mesh(n_hosts)
    rng = np.random.default_rng(SEED)
    part = np.where(problem.link_to == problem.destination_index, 0.2, 0.02)
    members = [np.flatnonzero(rng.random(len(part)) < part) for _ in range(N_SHARED)]
    return with_shared(problem, members, 0.1 * rng.uniform(0.5, 1.5, N_SHARED))


def with_shared(problem: dc.Problem, members: list[np.ndarray], part: np.ndarray) -> dc.Problem:
    """Let each bottleneck carry a part of what its links into the destination carry together."""
    tail, head = problem.link_from, problem.link_to
    shared = []
    for number, links in enumerate(members):
        last = links[head[links] == problem.destination_index]
        together = float(problem.bandwidth_bytes_per_s[0, last].sum())
        pairs = zip(tail[links].tolist(), head[links].tolist(), strict=True)
        shared.append(
            dc.SharedBottleneck(
                name=f"wire{number}",
                bandwidth_bytes_per_s=together * float(part[number]),
                links=[(problem.names[a], problem.names[b]) for a, b in pairs],
            )
        )
    return problem.replace(shared=shared)


def forecast_mesh(n_hosts: int, n_periods: int = 10) -> dc.Problem:
    """Let all bandwidths of a full mesh vary over periods; storage of 0, 1, 5 GB or any."""
    names, bandwidth, backlog = mesh(n_hosts)
    end_s = dc.lower_bound(mesh_problem(n_hosts))[0]
    rng = np.random.default_rng(SEED)
    factor = np.clip(rng.lognormal(0.0, 0.4, (n_periods, n_hosts, n_hosts)), 0.1, 10.0)
    return dc.Problem.from_matrix(
        names,
        bandwidth * factor,
        backlog,
        "h0",
        periods_s=np.arange(n_periods) * end_s / n_periods,
        storage_bytes=rng.choice([0.0, 1e9, 5e9, np.inf], n_hosts),
    )


def changing_mesh(n_hosts: int, n_periods: int, period_s: float) -> dc.Problem:
    """Let all bandwidths of a full mesh vary over periods; the data take most of those."""
    names, bandwidth, backlog = mesh(n_hosts)
    rng = np.random.default_rng(SEED)
    factor = np.clip(rng.lognormal(0.0, 0.4, (n_periods, n_hosts, n_hosts)), 0.1, 10.0)
    all_s = float(backlog.sum()) / float((bandwidth * factor.mean(axis=0))[1:, 0].sum())
    return dc.Problem.from_matrix(
        names,
        bandwidth * factor,
        np.rint(backlog * (0.9 * n_periods * period_s / all_s)),
        "h0",
        periods_s=np.arange(n_periods) * period_s,
    )


# Sparse overlays ----------------------------------------------------------------------------


def sparse_overlay(n_hosts: int) -> dc.Problem:
    """Let every host have links to eight others, drawn at random."""
    rng = np.random.default_rng(SEED)
    backlog = backlogs(rng, n_hosts)
    # Offsets around the ring, no two alike: no self links, no link twice.
    offset = np.array([rng.choice(n_hosts - 1, 8, replace=False) + 1 for _ in range(n_hosts)])
    tail = np.repeat(np.arange(n_hosts), 8)
    bandwidth = rng.lognormal(0.0, 1.0, len(tail)) * 1e6
    return overlay(backlog, tail, (tail + offset.ravel()) % n_hosts, bandwidth)


def geometric_overlay(n_hosts: int) -> dc.Problem:
    """Link every host with the eight nearest in a square, faster towards the destination.

    Each of the first hops around the destination has ten times the bandwidth of the next, so that
    cuts between sources bind.
    """
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(SEED)
    position = rng.random((n_hosts, 2))
    position[0] = 0.5, 0.5
    nearest = cKDTree(position).query(position, 9)[1][:, 1:]
    one_way = np.stack([np.repeat(np.arange(n_hosts), 8), nearest.ravel()], axis=1)
    tail, head = np.unique(np.concatenate([one_way, one_way[:, ::-1]]), axis=0).T
    backlog = backlogs(rng, n_hosts)
    hops = np.full(n_hosts, FAST_HOPS)
    hops[0] = 0
    for hop in range(1, FAST_HOPS):
        reached = tail[(hops[head] == hop - 1) & (hops[tail] > hop)]
        hops[reached] = hop
    bandwidth = rng.lognormal(0.0, 1.0, len(tail)) * 1e6 * 10.0 ** (FAST_HOPS - hops[head])
    return overlay(backlog, tail, head, bandwidth)


# Many sources --------------------------------------------------------------------------------


def star(n_sources: int) -> dc.Problem:
    """Give each of many sources a link to the destination of its own, and nothing else."""
    rng = np.random.default_rng(SEED)
    backlog = np.append(0, rng.integers(10**9, 10**10, n_sources))
    tail = np.arange(1, n_sources + 1)
    bandwidth = rng.lognormal(0.0, 1.0, n_sources) * 1e6
    return overlay(backlog, tail, np.zeros(n_sources, dtype=int), bandwidth)


def relayed_star(n_sources: int, n_relays: int) -> dc.Problem:
    """Let each of many sources send to one of a few relays, which carry four fifths of that on."""
    rng = np.random.default_rng(SEED)
    backlog = np.append(np.zeros(1 + n_relays), rng.integers(10**9, 10**10, n_sources))
    relays = np.arange(1, 1 + n_relays)
    tail = np.append(relays, np.arange(1 + n_relays, 1 + n_relays + n_sources))
    head = np.append(np.zeros(n_relays, dtype=int), rng.choice(relays, n_sources))
    into = 0.8 * n_sources / n_relays * rng.lognormal(0.0, 0.3, n_relays)
    bandwidth = np.append(into, rng.lognormal(0.0, 1.0, n_sources)) * 1e6
    return overlay(backlog.astype(np.int64), tail, head, bandwidth)


def overlay(
    backlog_bytes: np.ndarray, tail: np.ndarray, head: np.ndarray, bandwidth: np.ndarray
) -> dc.Problem:
    """Build a problem from its links; all else is unlimited."""
    n_hosts = len(backlog_bytes)
    unlimited = np.full(n_hosts, np.inf)
    return dc.Problem(
        names=tuple(names_of(n_hosts)),
        destination="h0",
        backlog_bytes=backlog_bytes,
        release_s=np.zeros(n_hosts),
        storage_bytes=unlimited,
        uplink_bytes_per_s=unlimited,
        downlink_bytes_per_s=unlimited,
        link_from=tail.astype(np.int32),
        link_to=head.astype(np.int32),
        bandwidth_bytes_per_s=bandwidth[np.newaxis],
    )
