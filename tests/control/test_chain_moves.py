"""Chains that the adaptive controller opens, and the connections that it gives up for them."""

import pytest
from instances.markets import market_of
from judges.pull_judge import Witness

from datacollect.control.adaptive.chain_moves import best_chain_move
from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.adaptive.market import HostView
from datacollect.control.connection_counts import first_counts
from datacollect.control.decisions import Open
from datacollect.errors import ProblemError
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_problem

MB = 1_000_000


def known(links_mb, views, active):
    """A, B and D; rates in MB/s. Six connections, none of them free."""
    ends = {("AB"[i], "ABD"[j]): n * MB for i in (0, 1) for j, n in enumerate(links_mb[i]) if n}
    return market_of(ends, views, active=active, connections=6, chains=True)


def view(host, connections, rate, work, **rest):
    seen = {"marginal": rate, "own_bytes": work, "feeders": 0, "feeds": False, **rest}
    return HostView(host, (host, "D"), connections, rate, work_bytes=work, **seen)


FAST_OVER_B = [[0, 9, 1], [0, 0, 4], [0, 0, 0]]


def test_a_chain_is_opened_where_each_of_its_connections_brings_more():
    """A -> B -> D brings 4, 2 for each of its hops; one more of A's own 1. Two of B's go for it."""
    chain = ("A", "B", "D")
    views = [view("A", 5, 1.0 * MB, 8 * MB), view("B", 1, 4.0 * MB, 0, own_bytes=0)]
    market = known(FAST_OVER_B, views, {("A", "D"): 5, ("B", "D"): 1})
    market.rates.moved(("B", "D"), 10 * MB)
    market.rates.busy(("B", "D"), 2.5)
    move = best_chain_move(market)
    assert move.to_links == (chain,)
    assert move.from_links == (("A", "D"),) * 2
    assert market.rates.rate(chain) == 4.0 * MB


@pytest.mark.parametrize(
    "links",
    [
        [[0, 1.5, 1], [0, 0, 4], [0, 0, 0]],  # B is reached hardly faster than D: the same wire
        [[0, 9, 1], [0, 0, 2], [0, 0, 0]],  # two connections bring what two of A's own do
        [[0, 0, 1], [0, 0, 4], [0, 0, 0]],  # no link to B
    ],
)
def test_none_is_opened_where_it_is_not_worth_two_connections(links):
    views = [view("A", 5, 1.0 * MB, 8 * MB), view("B", 1, links[1][2] * MB, 0, own_bytes=0)]
    assert best_chain_move(known(links, views, {("A", "D"): 5, ("B", "D"): 1})) is None


def test_chains_that_bring_little_are_given_up_for_connections():
    """The chain brings 0.5 for each hop, A's own 1.5: one chain goes, two connections come."""
    chain = ("A", "B", "D")
    views = [view("A", 3, 1.5 * MB, 8 * MB), view("B", 1, 1.0 * MB, 0, own_bytes=0)]
    market = known(FAST_OVER_B, views, {("A", "D"): 3, chain: 1, ("B", "D"): 1})
    for link, rate in ((chain, 1.0), (("A", "D"), 1.5), (("B", "D"), 1.0)):
        market.rates.moved(link, int(rate * 4 * MB))
        market.rates.busy(link, 4.0)
    move = best_chain_move(market)
    assert (move.from_links, move.to_links) == ((chain,), (("A", "D"),) * 2)


def test_first_counts_leave_room_for_hops():
    """C's chains count three each: one, and what is left goes to A by data."""
    counts = first_counts({"A": 10, "C": 100}, {"A": 1.0, "C": 1.0}, 8, {"A": 1, "C": 3})
    assert counts == {"C": 2, "A": 2}
    assert first_counts({"A": 10, "C": 100}, {"A": 1.0, "C": 1.0}, 2, {"A": 1, "C": 3}) == {"A": 2}


def line(n_bytes):
    links = [[0, 4 * MB, 0], [0, 0, 2 * MB], [0, 0, 0]]
    return Problem.from_matrix(["S", "K", "D"], links, [n_bytes, 0, 0], "D")


def test_a_host_without_a_link_has_a_chain():
    """8 MB over 4 and 2 MB/s: 4 s, with nothing at K."""
    witness = Witness(AdaptiveController(line(8 * MB), 4, relays="chains"), line(8 * MB), 4)
    run = simulate_problem(line(8 * MB), witness)
    assert run.makespan_s == pytest.approx(4.0, rel=0.02)
    assert run.connections["via"].unique().tolist() == ["K"]
    assert "K" not in set(run.storage["host"])


def test_slow_sources_go_over_fast_ones():
    """Straight, A takes 32 s. Over B the link of B is full: 10 MB at 1 + 0.25 MB/s are 8 s; the
    chains through B, which has 2 MB of its own, cost two connections each."""
    links = [[0, 4 * MB, MB / 4], [0, 0, MB], [0, 0, 0]]
    problem = Problem.from_matrix(["A", "B", "D"], links, [8 * MB, 2 * MB, 0], "D")
    witness = Witness(AdaptiveController(problem, 6, relays="chains"), problem, 6)
    run = simulate_problem(problem, witness)
    assert run.complete
    assert 8.0 <= run.makespan_s < 8.0 * 1.35
    assert witness.peak <= 6


def test_too_few_connections_for_a_chain_that_is_needed_are_an_error():
    controller = AdaptiveController(line(MB), 1, relays="chains")
    with pytest.raises(ProblemError, match="connections must be >= 2, one for each hop"):
        controller.start()


def test_an_unknown_way_of_relaying_is_an_error():
    with pytest.raises(ProblemError, match="relays must be one of queues, chains, got 'chain'"):
        AdaptiveController(line(MB), 4, relays="chain")


def test_chains_are_asked_for_with_all_their_hosts():
    decisions = AdaptiveController(line(MB), 5, relays="chains").start()
    opened = [d for d in decisions if isinstance(d, Open)]
    assert [d.hosts for d in opened] == [("S", "K", "D")] * 2
