"""The adaptive controller: by hand, in any order of events, and against what is best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from instances.unkind_driver import UnkindDriver
from judges.pull_judge import Witness

from datacollect.control.adaptive import AdaptiveController
from datacollect.control.connection_counts import LinkRates, first_counts, moved_at_a_time
from datacollect.control.connections import Piece, Recovery
from datacollect.control.decisions import Open, Send
from datacollect.control.moves import HostView, best_move, feeds
from datacollect.control.relaying import RELAYING
from datacollect.control.stock import Stock
from datacollect.control.ways import next_hosts
from datacollect.errors import ProblemError
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_problem

MB = 1_000_000


def two_sources(fast=MB, slow=MB / 4):
    """A slow source with much, a fast one with little, a fast link between them."""
    links = [[0, 4 * MB, slow], [0, 0, fast], [0, 0, 0]]
    return Problem.from_matrix(["A", "B", "D"], links, [8 * MB, 2 * MB, 0], "D")


def star(n_sources, n_bytes, rate=MB):
    names = [*(f"S{i}" for i in range(n_sources)), "D"]
    links = np.zeros((n_sources + 1, n_sources + 1))
    links[:-1, -1] = rate
    return Problem.from_matrix(names, links, [n_bytes] * n_sources + [0], "D")


def random_problem(random, n_hosts=5):
    links = random.uniform(0.1, 4.0, (n_hosts, n_hosts)) * MB
    links[random.random((n_hosts, n_hosts)) < 0.3] = 0
    links[np.arange(n_hosts), np.arange(n_hosts)] = 0
    links[:-1, -1] = np.maximum(links[:-1, -1], MB / 20)
    links[-1] = 0
    backlog = random.integers(0, 2 * MB, n_hosts)
    backlog[0], backlog[-1] = MB, 0
    return Problem.from_matrix([*"ABCDEFGH"[: n_hosts - 1], "Z"], links, backlog, "Z")


# By hand -------------------------------------------------------------------------------------


def test_pieces_are_given_to_connections_as_there_are():
    """8192 bytes each: two pieces on the first connection, the rest of 20 000 on the second."""
    problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20_000, 0], "D")
    decisions = AdaptiveController(problem, 2).start()
    assert [d for d in decisions if isinstance(d, Open)] == [
        Open(0, ("S", "D")),
        Open(1, ("S", "D")),
    ]
    assert [d for d in decisions if isinstance(d, Send)] == [
        Send(0, "S", 0, 8192),
        Send(0, "S", 8192, 8192),
        Send(1, "S", 16384, 3616),
    ]


def test_first_counts_are_by_data_and_one_where_a_link_is_far_faster():
    counts = first_counts({"A": 10, "B": 30, "C": 100}, {"A": 1.0, "B": 1.0, "C": 7.0}, 10)
    assert counts == {"C": 1, "B": 7, "A": 2}
    assert first_counts({"A": 10, "B": 30}, {"A": 1.0, "B": 1.0}, 1) == {"B": 1}
    assert first_counts({}, {}, 4) == {}


def test_marginal_value_is_that_of_a_shared_wire():
    """With trust in probes of 1 it is r²/b; here the ratio's root counts: 50 (50/200)^½ = 25."""
    rates = LinkRates({("S", "D"): 200.0})
    rates.moved(("S", "D"), 500)
    rates.busy(("S", "D"), 10.0)
    assert rates.rate(("S", "D")) == 50.0
    assert rates.marginal(("S", "D")) == pytest.approx(25.0)
    assert rates.marginal(("S", "X")) == 0.0
    rates.forget(4.0 * math.log(10))  # a tenth is left: one connection-second is too little
    assert rates.rate(("S", "D")) == 200.0


def view(host, connections, rate, work, **rest):
    known = {"marginal": rate, "own_bytes": work, "feeders": 0, "feeds": False, **rest}
    return HostView(host, (host, "D"), connections, rate, work_bytes=work, **known)


def test_connections_move_to_where_they_bring_more_and_work_remains():
    """A's bring 1, B's 2; B has 100 s left, the mean is 1100/15. A fifth of 15, by half: 1."""
    rates = LinkRates({("A", "D"): 2.0, ("B", "D"): 2.0})
    views = [view("A", 5, 1.0, 100), view("B", 5, 2.0, 1000)]
    move = best_move(views, rates, "D", 20)
    assert move.from_links == (("A", "D"),) * 2
    assert move.to_links == (("B", "D"),) * 2
    assert best_move(views[::-1], rates, "D", 20) == move
    assert moved_at_a_time(1.0, 1.19, 100) == 0
    assert best_move([view("A", 5, 1.0, 1000), view("B", 5, 2.0, 100)], rates, "D", 20) is None


def test_hosts_that_run_out_of_work_are_fed_where_it_is_worth_it():
    """B has less than two seconds left, A most; A reaches B faster than the destination."""
    rates = LinkRates({("A", "D"): 1.0, ("A", "B"): 9.0, ("B", "D"): 4.0})
    views = [view("A", 3, 1.0, 1000), view("B", 2, 4.0, 10)]
    (feed,) = feeds(views, rates, "D")
    assert (feed.from_links, feed.to_links) == ((("A", "D"),), (("A", "B"),))
    near = LinkRates({("A", "D"): 1.0, ("A", "B"): 1.7, ("B", "D"): 0.5})
    assert feeds([view("A", 3, 1.0, 1000), view("B", 2, 0.5, 1)], near, "D") == []


def test_stock_gives_others_pieces_first_and_each_byte_once():
    stock = Stock(10)
    stock.add_own("S", 5, 25)
    stock.add(Piece("R", 0, 4))
    stock.add(Piece("R", 0, 4))
    assert stock.n_bytes == 29
    assert stock.pull(own=True) == Piece("S", 5, 10)
    assert list(stock.pulled()) == [Piece("R", 0, 4), Piece("S", 15, 10), Piece("S", 25, 5)]
    assert (stock.n_bytes, stock.own_bytes, stock.pull()) == (0, 0, None)
    assert not stock.discard(Piece("R", 0, 4))


def test_hosts_without_a_link_go_the_widest_way_and_round_what_is_lost():
    links = {("A", "B"): 9.0, ("A", "C"): 3.0, ("B", "D"): 1.0, ("C", "D"): 2.0}
    assert next_hosts(links, "D")["A"] == "C"
    assert next_hosts(links, "D", {"C"})["A"] == "B"
    assert "A" not in next_hosts(links, "D", {"B", "C"})


def test_no_connections_is_an_error():
    with pytest.raises(ProblemError, match="connections must be >= 1, got 0"):
        AdaptiveController(two_sources(), 0)


# In the fluid engine -------------------------------------------------------------------------


def watched(problem, connections, **options):
    return Witness(AdaptiveController(problem, connections, **options), problem, connections)


@pytest.mark.parametrize("connections", [1, 2, 3, 7])
def test_sources_alike_take_what_links_allow(connections):
    """Three sources, 4 MB each at 1 MB/s: 4 s where each has a connection, else in turns.

    With fewer, 12 s of one connection's time are shared out, but for what the last ones idle."""
    witness = watched(star(3, 4 * MB), connections)
    run = simulate_problem(star(3, 4 * MB), witness)
    assert run.complete
    best_s = {1: 12.0, 2: 8.0}.get(connections, 4.0)
    assert best_s * (1 - 1e-9) <= run.makespan_s <= best_s * 1.02
    assert witness.peak <= connections


def test_slow_sources_go_over_fast_ones():
    """Straight, A takes 32 s. Over B the link of B is full: 10 MB at 1 + 0.25 MB/s are 8 s."""
    witness = watched(two_sources(), 6)
    run = simulate_problem(two_sources(), witness)
    assert run.complete
    assert 8.0 <= run.makespan_s < 8.0 * 1.25
    assert witness.arrivals.total() > 0


@pytest.mark.parametrize("relays", RELAYING)
@pytest.mark.parametrize("seed", range(12))
def test_random_problems_complete_by_the_rules(seed, relays):
    random = np.random.default_rng(seed)
    problem = random_problem(random)
    witness = watched(problem, int(random.integers(1, 12)), relays=relays)
    run = simulate_problem(problem, witness)
    if relays == "chains":
        assert set(run.storage[run.storage["others_bytes"] > 0]["host"]) == {"Z"}
    assert run.complete
    assert run.collected_bytes == sum(problem.backlog_bytes)
    assert witness.twice_bytes <= witness.answer["sent_twice_bytes"]
    assert witness.answer["sent_twice_bytes"] <= 0.05 * run.collected_bytes


@pytest.mark.parametrize("relays", RELAYING)
@pytest.mark.parametrize("seed", range(6))
def test_lost_relays_cost_what_they_held(seed, relays):
    random = np.random.default_rng(100 + seed)
    base = random_problem(random)
    relay = base.names[1]
    backlog = np.where(np.arange(base.n_hosts) == 1, 0, base.backlog_bytes)
    matrix = np.zeros((base.n_hosts, base.n_hosts))
    matrix[base.link_from, base.link_to] = base.bandwidth_bytes_per_s[0]
    matrix[1, -1] = 8 * MB
    matrix[:1, 1] = 20 * MB
    problem = Problem.from_matrix(base.names, matrix, backlog, "Z")
    witness = watched(problem, 8, relays=relays)
    run = simulate_problem(problem, witness, lost_hosts_s={relay: 1.0 + seed / 5})
    assert run.complete
    assert witness.twice_bytes <= witness.answer["sent_twice_bytes"]


def test_links_that_carry_nothing_for_a_while_are_used_again():
    """Nothing passes from 2 s until 100 s; after 30 s each connection is given up for another."""
    problem = Problem.from_hosts(
        [Host("S", 8 * MB), Host("D")],
        [Link("S", "D", [1.0 * MB, 0.0, 1.0 * MB])],
        "D",
        periods_s=[0, 2, 100],
    )
    run = simulate_problem(problem, watched(problem, 3), stall_s=30.0)
    assert run.complete
    assert run.makespan_s == pytest.approx(106.0, rel=0.02)


def test_relays_take_no_more_than_they_have_room_for():
    links = [[0, 4 * MB, 0], [0, 0, MB], [0, 0, 0]]
    problem = Problem.from_matrix(["S", "K", "D"], links, [4 * MB, 0, 0], "D")
    witness = watched(problem, 4, room_bytes={"K": 100_000})
    run = simulate_problem(problem, witness)
    assert run.complete
    stored = run.storage[run.storage["host"] == "K"]["others_bytes"]
    assert stored.max() <= 100_000 * (1 + 1e-9)
    assert run.makespan_s <= 4.0 * 1.3


def test_late_data_are_sent_once_they_are_there():
    hosts = [Host("A", MB), Host("B", MB, release_s=5.0), Host("D")]
    problem = Problem.from_hosts(hosts, [Link("A", "D", MB), Link("B", "D", MB)], "D")
    run = simulate_problem(problem, AdaptiveController(problem, 2))
    assert run.makespan_s == pytest.approx(6.0, rel=0.01)


def test_what_cannot_arrive_ends_the_run():
    """A is lost with its data: the run ends when B's are there, not at the time limit."""
    run = simulate_problem(star(2, 4 * MB), watched(star(2, 4 * MB), 4), lost_hosts_s={"S0": 1.0})
    assert not run.complete
    assert run.collected_bytes >= 4 * MB


# In any order --------------------------------------------------------------------------------


@pytest.mark.parametrize("relays", RELAYING)
@pytest.mark.parametrize("seed", range(40))
def test_all_arrives_whatever_the_order_of_events(seed, relays):
    """Connections break, stall and open late; a relay is lost: all work is given back."""
    random = np.random.default_rng(seed)
    problem = random_problem(random, int(random.integers(2, 7)))
    n = int(random.integers(1, 20))
    witness = watched(problem, n, relays=relays, recovery=Recovery(most_retries=100))
    empty = [
        name
        for name, held in zip(problem.names[:-1], problem.backlog_bytes.tolist(), strict=False)
        if not held
    ]
    total = int(problem.backlog_bytes.sum())
    driver = UnkindDriver(witness, problem.destination, total, random, lost=empty)
    assert driver.run()
    assert witness.twice_bytes <= witness.answer["sent_twice_bytes"]


def test_the_same_events_bring_the_same_decisions():
    runs = [simulate_problem(two_sources(), AdaptiveController(two_sources(), 5)) for _ in "ab"]
    assert runs[0].makespan_s == runs[1].makespan_s
    assert runs[0].connections.equals(runs[1].connections)
