"""Plans that share out connections: valid by both judges, and as good as trying all numbers."""

import math

import numpy as np
import pytest
from instances.hand_made import links
from judges.all_allocations import fastest
from judges.contract_check import judge

import datacollect as dc
from datacollect.errors import InfeasibleError, ProblemError
from datacollect.schedule.data.use import connections_by_link


def planned(problem, connections, **options):
    """A plan that both judges accept, and that keeps to its budgets."""
    plan = dc.coordinated(problem, connections=connections, **options)
    plan.check(problem)
    assert judge(problem.to_dict(), plan.to_dict()) is None
    opened = connections_by_link(plan)
    assert sum(opened.values()) <= connections
    if problem.most_connections is not None:
        for name, most in zip(problem.names, problem.most_connections.tolist(), strict=True):
            assert sum(n for link, n in opened.items() if name in link) <= most
    assert plan.lower_bound_s <= plan.makespan_s * (1 + 1e-9)
    return plan


def drawn(seed, *, shared=False):
    """Two or three sources, at times a relay: a problem, and the same for the judge."""
    rng = np.random.default_rng(seed)
    n_sources = int(rng.integers(2, 4))
    relay = n_sources == 2 and bool(rng.integers(2))
    names = [f"S{i}" for i in range(n_sources)] + ["K"] * relay + ["D"]
    data = {f"S{i}": int(x) for i, x in enumerate(rng.uniform(1, 10, n_sources) * 1e7)}
    links = {
        (a, b): (float(rng.lognormal(1, 1)) * 1e6, int(rng.integers(0, 30)), math.inf)
        for a in names
        for b in names
        if a not in (b, "D")
    }
    crossed = [pair for pair in links if pair[1] == "D"][:2] if shared else []
    wires = [(4e6, 6, crossed)] if shared else []
    most = int(rng.integers(n_sources, 6 if len(names) > 3 else 9))
    problem = dc.Problem.from_hosts(
        [dc.Host(name, data.get(name, 0)) for name in names],
        [
            dc.Link(a, b, capacity / (1 + others), competitors=others)
            for (a, b), (capacity, others, _) in links.items()
        ],
        "D",
        shared=[
            dc.SharedBottleneck(f"w{i}", capacity / (1 + others), members, competitors=others)
            for i, (capacity, others, members) in enumerate(wires)
        ],
    )
    return problem, links, data, most, wires


@pytest.mark.parametrize("seed", range(12))
def test_all_numbers_tried_are_no_better(seed):
    problem, links, data, most, wires = drawn(seed, shared=seed % 3 == 0)
    plan = planned(problem, most, chunk_s=0.0)
    best_s = fastest(links, data, "D", most, wires, hops=3)
    assert plan.makespan_s <= best_s * 1.05
    assert plan.makespan_s >= best_s * (1 - 1e-6)
    assert plan.lower_bound_s <= best_s * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(100, 112))
def test_direct_with_as_many_is_never_faster(seed):
    problem, links, data, most, wires = drawn(seed, shared=seed % 2 == 0)
    direct_s = fastest(links, data, "D", most, wires, hops=1)
    assert planned(problem, most).makespan_s <= direct_s * (1 + 1e-6)


def test_connections_go_where_a_wire_gives_to_each():
    """By hand: A beside 30 others on 31 MB/s gets 1 MB/s for each; B has 1 MB/s alone, whatever n.

    With 5, A has four of them: 31 · 4/34 = 3.647 MB/s for its 40 MB; B takes 10 s.
    """
    links = [dc.Link("A", "D", 1e6, competitors=30), dc.Link("B", "D", 1e6)]
    hosts = [dc.Host("A", 40_000_000), dc.Host("B", 10_000_000), dc.Host("D")]
    plan = planned(dc.Problem.from_hosts(hosts, links, "D"), 5)
    assert connections_by_link(plan) == {("A", "D"): 4, ("B", "D"): 1}
    assert plan.makespan_s == pytest.approx(40 * 34 / (31 * 4), rel=1e-6)


def test_a_wire_is_given_to_whom_ends_last():
    """60 MB at A and 20 at B behind 12 MB/s beside 4: of 4, A has 3 and 4.5 MB/s, B 1.5."""
    links = [dc.Link(s, "D", 2.4e6, per_connection_bytes_per_s=2.4e6) for s in "AB"]
    wire = dc.SharedBottleneck("w", 2.4e6, [("A", "D"), ("B", "D")], competitors=4)
    hosts = [dc.Host("A", 60_000_000), dc.Host("B", 20_000_000), dc.Host("D")]
    plan = planned(dc.Problem.from_hosts(hosts, links, "D", shared=[wire]), 4)
    assert connections_by_link(plan) == {("A", "D"): 3, ("B", "D"): 1}
    assert plan.makespan_s == pytest.approx(40 / 3, rel=1e-6)


def test_hosts_limit_connections_at_both_ends():
    """K may have two: one in, one out, which brings 1 MB/s beside A's own."""
    links = [
        dc.Link("A", "D", 1e6),
        dc.Link("A", "K", 1e6, per_connection_bytes_per_s=1e6),
        dc.Link("K", "D", 1e6, per_connection_bytes_per_s=1e6),
    ]
    hosts = [dc.Host("A", 10_000_000), dc.Host("K", most_connections=2), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    assert planned(problem, 9, chunk_s=0.0).makespan_s == pytest.approx(5.0)
    wider = problem.replace(most_connections=[math.inf, 4, math.inf])
    assert planned(wider, 9, chunk_s=0.0).makespan_s == pytest.approx(10 / 3)
    none = problem.replace(most_connections=[0, math.inf, math.inf])
    with pytest.raises(InfeasibleError, match=r"any number of connections.*'A' 0"):
        dc.coordinated(none, connections=9)


def test_constants_and_limits_of_hosts_are_divided_as_is_best():
    """20 and 60 MB behind a downlink of 8 MB/s: 2 and 6 MB/s, 10 s."""
    links = [dc.Link("A", "D", 8e6), dc.Link("B", "D", 8e6)]
    hosts = [
        dc.Host("A", 20_000_000),
        dc.Host("B", 60_000_000),
        dc.Host("D", downlink_bytes_per_s=8e6),
    ]
    plan = planned(dc.Problem.from_hosts(hosts, links, "D"), 2)
    assert plan.makespan_s == pytest.approx(10.0, rel=1e-6)
    assert plan.status == "optimal"


def test_a_shared_bottleneck_without_competitors_is_divided_too():
    wire = dc.SharedBottleneck("w", 8e6, [("A", "D"), ("B", "D")])
    links = [dc.Link("A", "D", 8e6), dc.Link("B", "D", 8e6)]
    hosts = [dc.Host("A", 20_000_000), dc.Host("B", 60_000_000), dc.Host("D")]
    plan = planned(dc.Problem.from_hosts(hosts, links, "D", shared=[wire]), 2)
    assert plan.makespan_s == pytest.approx(10.0, rel=1e-6)


def test_data_leave_when_they_are_released_and_from_where_they_lie():
    """B's 10 MB at 1 MB/s from 30 s on; K holds 5 MB of A, which leave it at once."""
    links = [dc.Link(s, "D", 1e6) for s in ("A", "B", "K")]
    hosts = [
        dc.Host("A", 20_000_000),
        dc.Host("B", 10_000_000, release_s=30.0),
        dc.Host("K"),
        dc.Host("D"),
    ]
    held = [dc.Held("K", "A", 0, 5_000_000), dc.Held("K", "B", 9_000_000, 1_000_000)]
    plan = planned(dc.Problem.from_hosts(hosts, links, "D", held=held), 3)
    assert plan.makespan_s == pytest.approx(39.0)
    assert plan.lower_bound_s == pytest.approx(39.0)


def test_chunks_delay_relayed_data_only():
    links = [
        dc.Link("A", "K", 2e6, per_connection_bytes_per_s=2e6),
        dc.Link("K", "D", 2e6, per_connection_bytes_per_s=2e6),
    ]
    hosts = [dc.Host("A", 40_000_000), dc.Host("K"), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    assert planned(problem, 4, chunk_s=0.5).makespan_s == pytest.approx(10.5)
    assert planned(problem, 4).makespan_s == pytest.approx(10.01)


def test_a_plan_says_that_connections_were_shared_out(tmp_path):
    problem = drawn(3)[0]
    plan = planned(problem, 6)
    assert plan.connections == 6
    plan.to_file(tmp_path / "plan.json")
    again = dc.Schedule.from_file(tmp_path / "plan.json")
    assert again.connections == 6
    assert again.transfers.equals(plan.transfers)
    assert "connections" not in dc.coordinated(problem).to_dict()


def test_nothing_to_move_needs_no_connection():
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [0, 9], "D")
    assert planned(problem, 1).makespan_s == 0.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"connections": 0}, ProblemError, "connections must be a whole number >= 1, got 0"),
        (
            {"connections": 1.5},
            ProblemError,
            "connections must be a whole number >= 1, got 1.5; round it",
        ),
        ({"connections": 1}, InfeasibleError, "1 connections do not reach all data.*allow 2"),
        (
            {"connections": 4, "slot_s": 1.0},
            ProblemError,
            "connections cannot be combined with slot_s",
        ),
        (
            {"connections": 4, "derate": 0.5},
            ProblemError,
            "connections cannot be combined with derate",
        ),
        (
            {"connections": 4, "finish": "together"},
            ProblemError,
            "connections cannot be combined with finish",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    links = [dc.Link("A", "D", 8e6), dc.Link("B", "D", 8e6)]
    hosts = [dc.Host("A", 20), dc.Host("B", 60), dc.Host("D")]
    with pytest.raises(error, match=message):
        dc.coordinated(dc.Problem.from_hosts(hosts, links, "D"), **options)


def test_bandwidths_that_change_are_refused():
    links = [dc.Link("S", "D", [4.0, 5.0])]
    hosts = [dc.Host("S", 60), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0, 10])
    with pytest.raises(ProblemError, match="limits of hosts, that do not change, got 2 periods"):
        dc.coordinated(problem, connections=2)


def test_a_program_in_which_glop_goes_round_for_ever_is_solved_in_another_way():
    """Thirteen columns tie here; both solvers find the same bound."""
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {"S": {"backlog_bytes": 1_000_000_000}, "K": {}, "D": {}},
            "links": [
                {
                    "from": "S",
                    "to": "K",
                    "bandwidth_bytes_per_s": 263900.5740747334,
                    "competitors": 13,
                },
                {
                    "from": "S",
                    "to": "D",
                    "bandwidth_bytes_per_s": 846127.9488501825,
                    "per_connection_bytes_per_s": 846127.9488501825,
                    "capacity_bytes_per_s": 7145412.762512699,
                    "competitors": 0,
                },
                {
                    "from": "K",
                    "to": "D",
                    "bandwidth_bytes_per_s": 1022184.6521248576,
                    "competitors": 0,
                },
            ],
        }
    )
    found = {
        name: dc.coordinated(problem, connections=10, solver=name) for name in ("auto", "pulp")
    }
    assert found["auto"].lower_bound_s == pytest.approx(found["pulp"].lower_bound_s, rel=1e-7)
    assert found["auto"].solver == (
        "all numbers tried, a linear program by glop+glop without scaling"
    )
    assert found["pulp"].solver == "all numbers tried, a linear program by cbc"


def test_few_bytes_beside_many_last_as_long_as_floats_can_tell():
    """Relays wait for a chunk, here 1e14 s, where floats lie 0.016 s apart; B's data take 1 ms."""
    hosts = [dc.Host("A", 10**18), dc.Host("B", 1000), dc.Host("K"), dc.Host("D")]
    flows = links("A -> D 10, B -> K 1000000, K -> D 1000000")
    problem = dc.Problem.from_hosts(hosts, flows, "D")
    dc.coordinated(problem, connections=3).check(problem)


def test_a_route_worth_a_hundredth_of_a_byte_is_none():
    """S -> D takes 1000 bytes in 1 ms; over K, by a wire that both hops cross, come 0.01 more."""
    hosts = [dc.Host("D"), dc.Host("S", 1000), dc.Host("K")]
    wire = dc.SharedBottleneck("wire", 5.0, [("S", "K"), ("K", "D")], competitors=2)
    flows = links("S -> D 1e6, S -> K 1e6, K -> D 1e6")
    problem = dc.Problem.from_hosts(hosts, flows, "D", shared=[wire])
    plan = dc.coordinated(problem, connections=9)
    assert judge(problem.to_dict(), plan.to_dict()) is None
    assert [route.hosts for route in plan.routes] == [("S", "D")]


def test_data_that_cannot_arrive_are_named():
    links = [dc.Link("A", "D", 8e6), dc.Link("B", "A", 0.0)]
    hosts = [dc.Host("A", 20), dc.Host("B", 60), dc.Host("D")]
    with pytest.raises(InfeasibleError, match="'B'"):
        dc.coordinated(dc.Problem.from_hosts(hosts, links, "D"), connections=4)
