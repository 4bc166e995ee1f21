"""Random problems for Hypothesis: small numbers, so that answers stay readable."""

from __future__ import annotations

import math
from typing import TypeVar

import hypothesis.strategies as st
from instances.varying_limits import with_varying_limits

from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem

Item = TypeVar("Item")

FEATURES = frozenset({"limits", "shared", "forecast", "release", "storage", "held"})

# Judged to one byte per transfer, small numbers would hide mistakes: count in larger units too, or
# in these only, where a byte must not matter.
UNITS, LARGE_UNITS = st.sampled_from([1, 1_000_003, 10**12]), st.sampled_from([1_000_003, 10**12])

# In units. Half of what may be limited is not, and half of what may be late is there at once. One
# draw each: what is drawn in several takes as long as what is tested.
RATES = st.integers(1, 8)
LIMITS = st.sampled_from([math.inf] * 8 + [*range(1, 9)])
ROOMS = st.sampled_from([math.inf] * 7 + [*range(7)])
RELEASES_S = st.sampled_from([0.0, 0.0, 1.0, 2.0])
BACKLOGS = st.integers(0, 12)
BANDWIDTHS = {least: st.integers(least, 6) for least in (0, 1)}
HELD = st.integers(0, 3)
CHANGES_S = st.sets(st.sampled_from([1.0, 2.0, 3.0, 5.0]), max_size=2)


@st.composite
def problems(
    draw, features: frozenset[str] = FEATURES, most_hosts: int = 4, *, large: bool = False
) -> Problem:
    """A problem with any mix of `features`; some are infeasible. `large`: in large units."""
    n = draw(st.integers(2, most_hosts))
    unit = draw(LARGE_UNITS if large else UNITS)
    names = ["D", *(f"H{i}" for i in range(1, n))]
    periods = [0.0]
    if "forecast" in features:
        periods += sorted(draw(CHANGES_S))

    def maybe(feature: str, strategy, default: float = math.inf) -> float:
        return draw(strategy) if feature in features else default

    hosts = [
        Host(
            name,
            backlog_bytes=0 if name == "D" else unit * draw(BACKLOGS),
            release_s=0.0 if name == "D" else maybe("release", RELEASES_S, 0.0),
            storage_bytes=unit * maybe("storage", ROOMS),
            uplink_bytes_per_s=float(unit * maybe("limits", LIMITS)),
            downlink_bytes_per_s=float(unit * maybe("limits", LIMITS)),
        )
        for name in names
    ]
    pairs = [(a, b) for a in names for b in names if a != b and a != "D"]
    chosen = [pair for pair in pairs if pair[1] == "D" or draw(st.booleans())]
    bandwidths = BANDWIDTHS[0 if "forecast" in features else 1]
    links = [Link(a, b, [float(unit * draw(bandwidths)) for _ in periods]) for a, b in chosen]
    shared = []
    if "shared" in features and chosen:
        for i in range(draw(st.integers(0, 2))):
            members, rate = draw(some_of(chosen)), float(unit * draw(RATES))
            shared.append(SharedBottleneck(f"wire{i}", rate, members))
    held = []
    if "held" in features:
        for host in hosts[1:]:
            holder = draw(st.sampled_from(hosts))
            size = unit * draw(HELD)
            if holder.name != host.name and 0 < size <= host.backlog_bytes:
                taken = sum(h.n_bytes for h in held if h.host == holder.name)
                if holder.name == "D" or taken + size <= holder.storage_bytes:
                    held.append(Held(holder.name, host.name, 0, size))
    problem = Problem.from_hosts(hosts, links, "D", shared=shared, held=held, periods_s=periods)
    return with_varying_limits(problem)


@st.composite
def some_of(draw, items: list[Item]) -> list[Item]:
    """One or more of some items, in their order."""
    # A bit for each: one draw, whatever their number.
    chosen = draw(st.integers(1, 2 ** len(items) - 1))
    return [item for i, item in enumerate(items) if chosen >> i & 1]
