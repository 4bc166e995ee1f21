"""Random problems for Hypothesis: small numbers, so that answers stay readable."""

from __future__ import annotations

import hypothesis.strategies as st

from datacollect.problem import Held, Host, Link, Problem, SharedBottleneck

FEATURES = frozenset({"limits", "shared", "forecast", "release", "storage", "held"})


@st.composite
def problems(draw, features: frozenset[str] = FEATURES, most_hosts: int = 4) -> Problem:
    """A problem with any mix of `features`; some are infeasible."""
    n = draw(st.integers(2, most_hosts))
    # Judged to one byte per transfer, small numbers would hide mistakes: count in larger units.
    unit = draw(st.sampled_from([1, 1_000_003, 10**12]))
    names = ["D", *(f"H{i}" for i in range(1, n))]
    number = st.integers(1, 8).map(lambda n: float(n * unit))
    periods = [0.0]
    if "forecast" in features:
        periods += sorted(draw(st.sets(st.sampled_from([1.0, 2.0, 3.0, 5.0]), max_size=2)))

    def maybe(feature: str, strategy, default):
        return draw(st.one_of(st.just(default), strategy)) if feature in features else default

    hosts = [
        Host(
            name,
            backlog_bytes=0 if name == "D" else unit * draw(st.integers(0, 12)),
            release_s=maybe("release", st.sampled_from([1.0, 2.0]), 0.0) if name != "D" else 0.0,
            storage_bytes=maybe("storage", st.integers(0, 6).map(lambda n: n * unit), float("inf")),
            uplink_bytes_per_s=maybe("limits", number, float("inf")),
            downlink_bytes_per_s=maybe("limits", number, float("inf")),
        )
        for name in names
    ]
    pairs = [(a, b) for a in names for b in names if a != b and a != "D"]
    chosen = [pair for pair in pairs if pair[1] == "D" or draw(st.booleans())]
    least = 0 if "forecast" in features else 1
    links = [
        Link(a, b, [float(unit * draw(st.integers(least, 6))) for _ in periods]) for a, b in chosen
    ]
    shared = []
    if "shared" in features and chosen:
        for i in range(draw(st.integers(0, 2))):
            members = draw(st.sets(st.sampled_from(chosen), min_size=1))
            shared.append(SharedBottleneck(f"wire{i}", draw(number), sorted(members)))
    held = []
    if "held" in features:
        for host in hosts[1:]:
            holder = draw(st.sampled_from(hosts))
            size = unit * draw(st.integers(0, 3))
            if holder.name != host.name and 0 < size <= host.backlog_bytes:
                taken = sum(h.n_bytes for h in held if h.host == holder.name)
                if holder.name == "D" or taken + size <= holder.storage_bytes:
                    held.append(Held(holder.name, host.name, 0, size))
    return Problem.from_hosts(hosts, links, "D", shared=shared, held=held, periods_s=periods)
