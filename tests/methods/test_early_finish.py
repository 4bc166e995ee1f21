"""Sources that do not bind finish early: same routes, bytes and makespan, faster rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.hand_made import links
from instances.strategies import problems
from judges.contract_check import judge

import datacollect as dc
from datacollect.methods.timing.early_finish import fair_speeds
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem


def both(problem, **options):
    """The plan whose sources finish together, and the one whose sources finish early."""
    return [dc.coordinated(problem, finish=finish, **options) for finish in ("together", "early")]


def finishes(plan):
    return plan.source_completion_s()


def test_a_source_of_ten_bytes_need_not_last_as_long_as_the_largest():
    """A binds with 5000 s. B's 10 bytes take 1e-5 s over its own link, C's 1 MB a second."""
    hosts = [Host("A", 5 * 10**9), Host("B", 10), Host("C", 10**6), Host("D")]
    problem = Problem.from_hosts(hosts, links("A -> D 1e6, B -> D 1e6, C -> D 1e6"), "D")
    together, early = both(problem)
    assert finishes(together) == {"A": 5000.0, "B": 5000.0, "C": 5000.0}
    assert finishes(early) == pytest.approx({"A": 5000.0, "B": 1e-5, "C": 1.0})
    early.check(problem)


def test_those_who_share_a_bottleneck_share_what_it_leaves_in_proportion_to_their_data():
    """D takes 5 MB/s, of which A, which binds with 10 s, has 1. B and C share 4: 8 MB in 2 s."""
    hosts = [
        Host("A", 10**7),
        Host("B", 2 * 10**6),
        Host("C", 6 * 10**6),
        Host("D", downlink_bytes_per_s=5e6),
    ]
    problem = Problem.from_hosts(hosts, links("A -> D 1e6, B -> D 9e6, C -> D 9e6"), "D")
    _, early = both(problem)
    assert finishes(early) == pytest.approx({"A": 10.0, "B": 2.0, "C": 2.0})
    early.check(problem)


def test_all_routes_of_a_source_are_raised_together():
    """S has 3 MB/s to D and 1 MB/s through K: 4 s. To raise one alone would hasten nothing."""
    hosts = [Host("S", 16 * 10**6), Host("K"), Host("B", 80 * 10**6), Host("D")]
    problem = Problem.from_hosts(
        hosts, links("S -> D 3e6, S -> K 9e6, K -> D 1e6, B -> D 1e6"), "D"
    )
    _, early = both(problem, chunk_s=0.0)
    assert finishes(early) == pytest.approx({"S": 16 / 3.8, "B": 80.0}, rel=0.3)
    early.check(problem)


def test_chunks_at_relays_with_little_room_stay_as_small_as_planned():
    """S's data pass K, which has room for nothing but chunks; B's 100 s bind."""
    hosts = [Host("S", 10**6), Host("K", storage_bytes=0), Host("B", 10**8), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> K 1e6, K -> D 1e6, B -> D 1e6"), "D")
    together, early = both(problem)
    assert early.peak_storage_bytes == together.peak_storage_bytes
    free = problem.replace(storage_bytes=np.inf)
    assert finishes(both(free)[1])["S"] == pytest.approx(1.1)  # and a chunk


def test_what_will_be_stored_arrives_no_sooner():
    """K stores S's data until its link opens at 10 s: to be there early would help nobody."""
    hosts = [Host("S", 10**6), Host("K"), Host("D")]
    problem = Problem.from_hosts(
        hosts, links("S -> K 1e6 0, K -> D 0 1e5"), "D", periods_s=[0.0, 10.0]
    )
    together, early = both(problem, chunk_s=0.0)
    assert early.columns.finish_s.tolist() == together.columns.finish_s.tolist()


@pytest.mark.parametrize("options", [{}, {"prefer": "storage"}, {"chunk_s": 0.0}])
@given(problem=problems(large=True))
def test_only_rates_change_and_nothing_arrives_later(options, problem):
    try:
        together, early = both(problem, **options)
    except dc.InfeasibleError:
        return
    early.check(problem)
    assert judge(problem.to_dict(), early.to_dict()) is None
    assert early.routes == together.routes
    assert early.n_transfers == together.n_transfers
    assert early.makespan_s == pytest.approx(together.makespan_s, rel=1e-9)
    for source, finish_s in finishes(early).items():
        assert finish_s <= finishes(together)[source] * (1 + 1e-9)


@given(problem=problems(large=True))
def test_an_optimum_without_periods_leaves_no_source_that_could_be_faster(problem):
    """By the condition that singles out max-min fair rates: each source crosses something full."""
    constant = problem.replace(
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s[:1],
        uplink_bytes_per_s=problem.uplink_bytes_per_s[:1],
        downlink_bytes_per_s=problem.downlink_bytes_per_s[:1],
        periods_s=[0.0],
        release_s=0.0,
        storage_bytes=np.inf,
        held=(),
        shared=(),
    )
    try:
        plan = dc.coordinated(constant, chunk_s=0.0)
    except dc.InfeasibleError:
        return
    columns, routes = plan.columns, plan.routes
    rate = columns.n_bytes / (columns.finish_s - columns.start_s)
    index = constant.host_index
    tail = np.array(
        [index[routes[r].hosts[h]] for r, h in zip(columns.route, columns.hop, strict=True)]
    )
    head = np.array(
        [index[routes[r].hosts[h + 1]] for r, h in zip(columns.route, columns.hop, strict=True)]
    )
    link = constant.link_indices(tail, head)
    for source in finishes(plan):
        rows = [i for i, r in enumerate(columns.route) if routes[r].source == source]
        assert any(
            np.isclose(rate[users].sum(), limit, rtol=1e-5)
            for i in rows
            for users, limit in (
                (link == link[i], constant.bandwidth_bytes_per_s[0, link[i]]),
                (tail == tail[i], constant.uplink_bytes_per_s[0, tail[i]]),
                (head == head[i], constant.downlink_bytes_per_s[0, head[i]]),
            )
        )


def test_an_unknown_way_to_finish_is_refused():
    problem = Problem.from_hosts([Host("S", 1), Host("D")], links("S -> D 1"), "D")
    with pytest.raises(dc.ProblemError, match="finish must be 'early' or 'together', got 'late'"):
        dc.coordinated(problem, finish="late")


# Speeds --------------------------------------------------------------------------------------


@given(st.data())
def test_every_unit_crosses_something_full_on_which_none_is_faster(data):
    n_units, n_resources = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    pairs = data.draw(
        st.lists(
            st.tuples(st.integers(0, n_units - 1), st.integers(0, n_resources - 1)),
            min_size=1,
            max_size=15,
        )
    )
    unit, resource = np.array(pairs).T
    load = np.array([data.draw(st.integers(1, 9)) for _ in pairs], dtype=float)
    used = np.bincount(resource, load, minlength=n_resources)
    spare = [data.draw(st.sampled_from([0.0, 1.0, 5.0, 100.0])) for _ in range(n_resources)]
    room = used + np.array(spare)
    speed = fair_speeds(unit, resource, load, room, n_units)
    taken = np.bincount(resource, load * speed[unit], minlength=n_resources)
    assert (speed >= 1).all()
    assert (taken <= room * (1 + 1e-9)).all()
    for one in set(unit.tolist()):
        assert any(
            taken[r] >= room[r] * (1 - 1e-6)
            and speed[one] >= speed[unit[resource == r]].max() - 1e-6
            for r in resource[unit == one]
        )


def test_slack_of_linear_programs_slows_nothing_down():
    """More is loaded than there is room, by rounding: speed 1, and no loop without end."""
    unit, resource = np.array([0, 1, 0]), np.array([0, 0, 1])
    speed = fair_speeds(unit, resource, np.array([1.0, 2.0, 1.0]), np.array([2.9, -0.5]), 2)
    assert speed.tolist() == [1.0, 1.0]


def test_the_end_is_the_same_however_sources_finish():
    """From release on A's 35 bytes take 3.5 s. B's 10 over K take as long, and then a chunk more.

    They need not: K passes on more than that.
    """
    hosts = [Host("A", 40), Host("B", 10, release_s=0.5), Host("K"), Host("D")]
    flows = links("A -> D 10, B -> K 10, K -> D 100")
    problem = Problem.from_hosts(hosts, flows, "D")
    together, early = both(problem)
    assert together.chunk_s > 0
    assert together.makespan_s == early.makespan_s == pytest.approx(4.0, rel=1e-3)
    assert finishes(together)["B"] == pytest.approx(finishes(together)["A"], rel=1e-9)
    assert finishes(early)["B"] < 2
    together.check(problem)
