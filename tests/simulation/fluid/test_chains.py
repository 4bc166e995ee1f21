"""Chains in the fluid engine: as fast as all their hops at once, and nothing laid up on the way."""

import numpy as np
import pytest
from instances.ns3_networks import RATE, STAR, tree
from instances.tiny_controllers import Scripted
from judges.run_judge import stored_at

from datacollect.control.decisions import Close, Open, Send, WakeMe
from datacollect.control.events import ConnectionClosed, ConnectionOpened, RangeArrived, Timer
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_fluid, simulate_problem

LINE = Problem.from_matrix(
    ["S", "K", "D"], [[0, 10.0, 0], [0, 0, 5.0], [0, 0, 0]], [100, 0, 0], "D"
)
WHOLE = (Open(0, ("S", "K", "D")), Send(0, "S", 0, 100))


def ends(script):
    return [(e.connection, e.time_s) for e in script.events if isinstance(e, ConnectionClosed)]


def test_a_chain_is_as_fast_as_its_narrowest_hop_and_its_relay_holds_nothing():
    """100 bytes at min(10, 5) bytes/s: 20 s. A queue at K would hold 50 bytes after 10 s."""
    run = simulate_problem(LINE, Scripted(*WHOLE))
    assert run.makespan_s == pytest.approx(20.0)
    assert run.routes.to_dict("records") == [
        {"source": "S", "from": "S", "to": "K", "bytes": 100},
        {"source": "S", "from": "K", "to": "D", "bytes": 100},
    ]
    assert "K" not in set(run.storage["host"])
    assert stored_at(run, "D", 10.0) == pytest.approx(50.0)
    assert run.wires["utilisation"].tolist() == pytest.approx([0.5, 1.0])
    (log,) = run.connections.to_dict("records")
    assert (log["from"], log["via"], log["to"], log["hops"]) == ("S", "K", "D", 2)
    assert log["bytes"] == 100


def test_all_its_hops_share_fairly_at_once():
    """S -> K carries 10, K -> D 9. On K -> D: the chain and two connections of K, 3 each; what the
    chain leaves of S -> K goes to S's own connection to K: 7."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 10.0, 0], [0, 0, 9.0], [0, 0, 0]], [300, 300, 0], "D"
    )
    opens = [
        Open(0, ("S", "K", "D")),
        Open(1, ("K", "D")),
        Open(2, ("K", "D")),
        Open(3, ("S", "K")),
    ]
    sends = [Send(0, "S", 0, 30), *(Send(i, "K", 50 * i, 30) for i in (1, 2)), Send(3, "S", 0, 70)]
    script = Scripted(*opens, *sends)
    simulate_problem(problem, script, time_limit_s=20.0)
    arrivals = {e.connection: e.time_s for e in script.events if isinstance(e, RangeArrived)}
    assert arrivals == pytest.approx(dict.fromkeys(range(4), 10.0))


# S and L left, K and D right of one cable: S -> K -> L -> D crosses X -> Y twice.
ZIGZAG = tree(["SX", "LX", "XY", "KY", "DY"], hosts=["S", "L", "K", "D"])


@pytest.mark.parametrize(("others", "share"), [(0, 2), (1, 3), (2, 4)])
def test_a_wire_that_two_hops_cross_gives_to_each(others, share):
    """X -> Y has two connections of the chain, and others: the chain gets what one of them gets.
    It is open after three round trips of 60 ms."""
    n_bytes = 1_000_000
    opens = [Open(0, ("S", "K", "L", "D")), *(Open(i + 1, ("L", "K")) for i in range(others))]
    sends = [Send(0, "S", 0, n_bytes), *(Send(i + 1, "L", 0, 20 * n_bytes) for i in range(others))]
    script = Scripted(*opens, *sends)
    run = simulate_fluid(ZIGZAG, {"S": n_bytes, "L": 20 * n_bytes}, "D", script, time_limit_s=60.0)
    first = {type(e): e.time_s for e in script.events if getattr(e, "connection", 1) == 0}
    assert first[ConnectionOpened] == pytest.approx(3 * 0.06)
    assert first[RangeArrived] == pytest.approx(0.18 + n_bytes / (RATE / share) + 0.09)
    assert run.routes[run.routes["source"] == "S"]["bytes"].tolist() == [n_bytes] * 3


def test_its_window_bounds_the_hop_with_the_longest_round_trip():
    """A -> B and B -> D take 40 ms there and back: 1000 bytes each 40 ms on either, 25 kB/s."""
    run = simulate_fluid(
        STAR,
        {"A": 100_000},
        "D",
        Scripted(Open(0, ("A", "B", "D"), window_bytes=1000), Send(0, "A", 0, 100_000)),
    )
    assert run.makespan_s == pytest.approx(0.08 + 100_000 / 25_000 + 0.04)


def test_a_lost_relay_closes_it_and_what_has_come_through_stays():
    script = Scripted(*WHOLE)
    run = simulate_problem(LINE, script, lost_hosts_s={"K": 4.0})
    assert ends(script) == [(0, 4.0)]
    assert run.collected_bytes == 20
    assert not run.complete


def test_dropped_half_way_it_goes_on_elsewhere_where_it_was():
    """20 of 100 bytes are there after 4 s; the rest goes straight at 8 bytes/s: 10 s more."""
    problem = Problem.from_hosts(
        [Host("S", 100), Host("K"), Host("D")],
        [Link("S", "K", 10.0), Link("K", "D", 5.0), Link("S", "D", 8.0)],
        "D",
    )

    class Changes(Scripted):
        def handle(self, event):
            self.events.append(event)
            if not isinstance(event, Timer):
                return []
            return [Close(0, drop_queue=True), Open(1, ("S", "D")), Send(1, "S", 0, 100)]

    run = simulate_problem(problem, Changes(*WHOLE, WakeMe(4.0, 0)))
    assert run.makespan_s == pytest.approx(14.0)
    assert run.connections["bytes"].tolist() == [20, 80]


def test_a_hop_that_stands_still_stops_the_whole_chain():
    """K -> D carries nothing from 4 s to 50 s: 20 bytes before, 80 after."""
    problem = Problem.from_hosts(
        [Host("S", 100), Host("K"), Host("D")],
        [Link("S", "K", 10.0), Link("K", "D", [5.0, 0.0, 5.0])],
        "D",
        periods_s=[0, 4, 50],
    )
    run = simulate_problem(problem, Scripted(*WHOLE), stall_s=10.0)
    assert run.makespan_s == pytest.approx(66.0)
    assert run.connections["stalls"].tolist() == [1]
    assert run.wires["utilisation"].tolist() == pytest.approx([100 / 660, 1.0])


def test_a_chain_with_a_hop_that_is_not_there_is_closed_at_once():
    script = Scripted(Open(0, ("S", "D", "K")))
    run = simulate_problem(LINE, script)
    assert ends(script) == [(0, 0.0)]
    assert run.collected_bytes == 0
    assert np.isnan(run.makespan_s)
