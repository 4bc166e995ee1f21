"""Random problems in which sources make their data at a rate."""


def produced(random, *, storage=False):
    """Return the tree of a problem file: some sources, a relay, two changes of bandwidth."""
    sources = [f"S{i}" for i in range(random.randint(1, 3))]
    periods_s = [0.0, random.uniform(2, 8), random.uniform(9, 15)]
    hosts = {}
    for name in sources:
        hosts[name] = host = {"backlog_bytes": random.randint(20, 150) * 10**6}
        if random.random() < 0.8:
            host["produces_bytes_per_s"] = random.uniform(3e6, 20e6)
            if random.random() < 0.3:
                host["made_bytes"] = random.randint(0, host["backlog_bytes"])
        if random.random() < 0.3:
            host["release_s"] = random.uniform(0, 10)
        if random.random() < 0.3:
            host["uplink_bytes_per_s"] = random.uniform(5e6, 30e6)
        if storage and random.random() < 0.6:
            host["storage_bytes"] = random.choice([0, 10**6, 30 * 10**6])
    hosts["K"] = {"storage_bytes": 20 * 10**6} if storage and random.random() < 0.5 else {}
    hosts["D"] = {"downlink_bytes_per_s": random.uniform(5e6, 30e6)}
    constant = random.random() < 0.4
    links = []
    for tail in [*sources, "K"]:
        for head in hosts:
            if tail == head or random.random() > 0.8:
                continue
            rates = [random.choice([0.0, random.uniform(1e6, 20e6)]) for _ in periods_s[:-1]]
            rates.append(random.uniform(1e6, 20e6))
            links.append(
                {
                    "from": tail,
                    "to": head,
                    "bandwidth_bytes_per_s": rates[-1] if constant else rates,
                }
            )
    tree = {"destination": "D", "hosts": hosts, "links": links}
    return tree if constant else tree | {"periods_s": periods_s}
