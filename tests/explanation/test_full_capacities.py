"""Full capacities of a plan, beside a judge that looks at every resource all the time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.strategies import problems

import datacollect as dc
from datacollect.explanation.full_capacities import FullCapacities
from datacollect.problem.problem import Problem

METHODS = (dc.coordinated, dc.direct, dc.best_path)
WITHOUT_STORAGE = frozenset({"limits", "shared", "forecast", "release", "held"})


def users(problem, plan, from_s, to_s):
    """Rates by resource and source of what moves between two instants; what counts as a byte."""
    found = {}
    shared = [{(problem.link_from[i], problem.link_to[i]) for i in m} for m in problem.shared_links]
    columns = ("route", "hop", "n_bytes", "start_s", "finish_s")
    for number, hop, n_bytes, start_s, finish_s in zip(
        *(getattr(plan.columns, name).tolist() for name in columns), strict=True
    ):
        if start_s <= from_s and finish_s >= to_s:
            route, duration_s = plan.routes[number], finish_s - start_s
            tail, head = (problem.host_index[host] for host in route.hosts[hop:][:2])
            link = int(problem.link_indices(np.array([tail]), np.array([head]))[0])
            its = [("link", link), ("uplink", tail), ("downlink", head)]
            its += [("shared", n) for n, links in enumerate(shared) if (tail, head) in links]
            for resource in its:
                entry = (route.source, n_bytes / duration_s, 1 / duration_s)
                found.setdefault(resource, []).append(entry)
    return found


def capacity(problem, resource, period):
    kind, number = resource
    if kind == "shared":
        return problem.shared[number].bandwidth_bytes_per_s
    name = "bandwidth" if kind == "link" else kind
    return getattr(problem, f"{name}_bytes_per_s")[period, number]


def held_back(problem, plan, full):
    """Whom a full resource holds back, stretch by stretch: all, or where shares are fair the
    fastest."""
    found = set()
    for stretch, (from_s, to_s) in enumerate(zip(full.time_s, full.time_s[1:], strict=False)):
        slack_s = 1e-3 * (to_s - from_s)
        middle = (from_s + slack_s, to_s - slack_s)
        for resource, its in users(problem, plan, *middle).items():
            used, lost = sum(rate for _, rate, _ in its), sum(byte for *_, byte in its)
            if used < capacity(problem, resource, full.period[stretch]) * (1 - 1e-6) - lost:
                continue
            fastest = max(rate for _, rate, _ in its)
            for source, rate, byte in its:
                if not full.fair or rate >= fastest * (1 - 1e-6) - 2 * byte:
                    found.add((source, *resource, stretch))
    return found


@given(problem=problems(WITHOUT_STORAGE, most_hosts=4, large=True), method=st.sampled_from(METHODS))
def test_whom_what_is_full_holds_back(problem, method):
    try:
        plan = method(problem)
    except (dc.InfeasibleError, dc.ProblemError):
        assume(False)
    assume(plan.n_transfers)
    full = FullCapacities(problem, plan)
    found = set()
    for holds in full._full():
        for source, number, first, last in zip(*(c.tolist() for c in holds), strict=True):
            resource = full.resource_of(number)
            entry = (problem.names[source], resource.kind, resource.number)
            found |= {(*entry, stretch) for stretch in range(first, last)}
    assert found == held_back(problem, plan, full)


@pytest.mark.parametrize("n_sources", [50, 200])
def test_many_sources_with_links_of_their_own_are_held_once_each(n_sources):
    """Not once in each of the stretches of time between two of their ends."""
    rng = np.random.default_rng(1)
    bandwidth = np.zeros((n_sources + 1, n_sources + 1))
    bandwidth[:-1, -1] = rng.lognormal(12, 1, n_sources)
    backlog = np.append(rng.integers(10**6, 10**7, n_sources), 0)
    names = [*(f"S{i}" for i in range(n_sources)), "D"]
    problem = Problem.from_matrix(names, bandwidth, backlog, "D")
    full = FullCapacities(problem, dc.coordinated(problem))
    assert len(full.time_s) > n_sources / 2
    assert len(full.holds().source) == n_sources
