"""Random problems of a handful of hosts whose links say what connections bring."""

from __future__ import annotations

import numpy as np

import datacollect as dc


def crowded(seed, *, most_sources=4, most_hosts=6):
    """A problem and a number of connections: all that plans with connections know, mixed.

    Constant links, links that grow by others' connections, by their own limit or both, limits of
    hosts in bytes and in connections, shared wires of both kinds, releases, missing links.
    """
    rng = np.random.default_rng([seed, 20])
    n_sources = int(rng.integers(1, most_sources + 1))
    n_relays = int(rng.integers(0, min(2, most_hosts - 1 - n_sources) + 1))
    names = [f"S{i}" for i in range(n_sources)] + [f"K{i}" for i in range(n_relays)] + ["D"]
    limited, late, crowded_hosts = rng.random(3) < [0.5, 0.4, 0.3]
    density = rng.uniform(0.3, 1.0)
    hosts = [_host(rng, name, limited, late, crowded_hosts) for name in names]
    links = [
        _link(rng, a, b)
        for a in names
        for b in names
        if a not in (b, "D") and rng.random() < (density if b != "D" else 0.5 + density / 2)
    ]
    pairs = [(link.from_host, link.to_host) for link in links]
    shared = []
    for number in range(int(rng.integers(0, 3)) if len(pairs) > 1 else 0):
        members = [pairs[i] for i in rng.choice(len(pairs), min(3, len(pairs)), replace=False)]
        others = float(rng.integers(0, 12)) if rng.random() < 0.5 else None
        shared.append(dc.SharedBottleneck(f"w{number}", _rate(rng), members, competitors=others))
    problem = dc.Problem.from_hosts(hosts, links, "D", shared=shared)
    return problem, int(rng.integers(n_sources, 9))


def _rate(rng):
    return float(rng.lognormal(0, 1)) * 1e6


def _host(rng, name, limited, late, crowded_hosts):
    def sometimes(is_drawn, part, value):
        return value if is_drawn and rng.random() < part else None

    more = {
        "uplink_bytes_per_s": sometimes(limited, 0.4, 2 * _rate(rng)),
        "downlink_bytes_per_s": sometimes(limited, 0.4, 2 * _rate(rng)),
        "most_connections": sometimes(crowded_hosts, 0.4, int(rng.integers(1, 7))),
        "release_s": sometimes(late, 0.5, float(rng.uniform(0, 60))),
    }
    if name[0] != "S":
        more["release_s"] = None
    n_bytes = int(rng.uniform(1, 100) * 1e6) if name[0] == "S" else 0
    return dc.Host(name, n_bytes, **{k: v for k, v in more.items() if v is not None})


def _link(rng, a, b):
    rate, others = _rate(rng), int(rng.integers(0, 30))
    kinds = (
        {},
        {"competitors": others},
        {"capacity_bytes_per_s": rate * float(rng.uniform(1, 20))},
        {"per_connection_bytes_per_s": rate},
        {
            "per_connection_bytes_per_s": rate,
            "capacity_bytes_per_s": rate * (1 + others) * float(rng.uniform(1, 3)),
            "competitors": others,
        },
    )
    return dc.Link(a, b, rate, **kinds[int(rng.integers(len(kinds)))])
