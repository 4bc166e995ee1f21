"""The adaptive controller: by hand, in any order of events, and against what is best."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from instances.markets import market_of
from instances.unkind_driver import UnkindDriver
from judges.pull_judge import Witness

from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.adaptive.host_queues import HostQueue
from datacollect.control.adaptive.market import HostView, Market
from datacollect.control.adaptive.moves import Feeding, best_move, is_worth_detour
from datacollect.control.adaptive.next_hops import NextHops, next_hosts
from datacollect.control.adaptive.opening import first_links
from datacollect.control.connection_counts import LinkRates, first_counts, moved_at_a_time
from datacollect.control.connections import Piece, Recovery
from datacollect.control.decisions import Open, Send
from datacollect.control.relaying import RELAYING
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
    """With trust in probes of 1 it is r²/b; a ratio counts by its fourth root: 50 (¼)^¼ = 25 √2."""
    rates = LinkRates({("S", "D"): 200.0})
    rates.moved(("S", "D"), 500)
    rates.busy(("S", "D"), 10.0)
    assert rates.rate(("S", "D")) == 50.0
    assert rates.marginal(("S", "D")) == pytest.approx(25 * math.sqrt(2))
    assert rates.marginal(("S", "X")) == 0.0
    rates.passed(4.0 * math.log(10), {})  # a tenth is left: one connection-second is too little
    assert rates.rate(("S", "D")) == 200.0


def view(host, connections, rate, work, **rest):
    known = {"marginal": rate, "own_bytes": work, "feeders": 0, "feeds": False, **rest}
    return HostView(host, (host, "D"), connections, rate, work_bytes=work, **known)


def moved(views, links):
    return best_move(Feeding(market_of(links, views)))


def fed(views, links, free, **known):
    """Return what is opened to feed gateways."""
    return Feeding(market_of(links, views, free=free, **known)).moves()


def test_connections_move_to_where_they_bring_more_and_work_remains():
    """A's bring 1, B's 2; B has 100 s left, the mean is 1100/15. A fifth of 15, by half: 1."""
    links = {("A", "D"): 2.0, ("B", "D"): 2.0}
    views = [view("A", 5, 1.0, 100), view("B", 5, 2.0, 1000)]
    move = moved(views, links)
    assert move.from_links == (("A", "D"),) * 2
    assert move.to_links == (("B", "D"),) * 2
    assert moved(views[::-1], links) == move
    assert moved_at_a_time(1.0, 1.19, 100) == 0
    assert moved([view("A", 5, 1.0, 1000), view("B", 5, 2.0, 100)], links) is None


def test_hosts_that_run_out_of_work_are_fed_where_it_is_worth_it():
    """B has less than two seconds left, A most; A reaches B faster than the destination."""
    links = {("A", "D"): 1.0, ("A", "B"): 9.0, ("B", "D"): 4.0}
    views = [view("A", 3, 1.0, 1000), view("B", 2, 4.0, 10)]
    (feed,) = fed(views, links, 0)
    assert (feed.from_links, feed.to_links) == ((("A", "D"),), (("A", "B"),))
    (feed,) = fed(views, links, 1)
    assert (feed.from_links, feed.to_links) == ((), (("A", "B"),))
    near = {("A", "D"): 1.0, ("A", "B"): 1.4, ("B", "D"): 0.5}
    views = [view("A", 3, 1.0, 1000), view("B", 2, 0.5, 1)]
    assert fed(views, near, 9) == []


def test_relays_that_have_nothing_are_opened_with_what_feeds_them():
    """R has no connection yet: one is free, one of A's makes room for the other."""
    links = {("A", "D"): 1.0, ("A", "R"): 9.0, ("R", "D"): 4.0}
    views = [view("A", 3, 1.0, 1000), view("R", 0, 4.0, 0)]
    (feed,) = fed(views, links, 1)
    assert (feed.from_links, feed.to_links) == ((("A", "D"),), (("A", "R"), ("R", "D")))


@pytest.mark.parametrize(
    ("to_gateway", "onwards", "is_worth_it"),
    [
        (1.8, 0.9, True),  # 1.8 times as near as D, and not held up there
        (1.7, 0.85, False),  # hardly nearer than D: the same wire
        (9.0, 9.0, True),  # both hops are far faster
        (3.0, 3.0, True),
        (3.0, 2.9, False),
        (0.0, 9.0, False),
        (9.0, 0.0, False),
    ],
)
def test_detours_are_worth_it_by_links_that_are_not_the_bottleneck(
    to_gateway, onwards, is_worth_it
):
    rates = LinkRates({("A", "D"): 1.0, ("A", "G"): to_gateway, ("G", "D"): onwards})
    assert is_worth_detour(rates, "A", "G", "D") is is_worth_it


@pytest.mark.parametrize(
    ("slower", "only_relays", "links"),
    [
        (1.5, True, [(("A", "G"), ("G", "D"))]),  # half as fast again: nothing is lost by a trial
        (1.4, True, []),
        (1.5, False, []),  # what a host with data passes on goes before its own
        (3.0, False, [(("A", "G"), ("G", "D"))]),
    ],
)
def test_relays_without_data_are_tried_sooner(slower, only_relays, links):
    probed = {("A", "D"): 1.0, ("A", "G"): slower, ("G", "D"): slower}
    views = [view("A", 1, 1.0, 1000), view("G", 0, slower, 0, only_relays=only_relays)]
    found = fed(views, probed, 2)
    assert [move.to_links for move in found] == links


def test_hosts_whose_data_come_later_do_not_only_relay():
    """S has data, T will have some, R never."""
    links = np.ones((4, 4))
    problem = Problem.from_matrix(
        ["S", "T", "R", "D"], links, [10, 10, 0, 0], "D", release_s=[0, 5, 0, 0]
    )
    assert NextHops(problem, Recovery()).only_relays == {"R"}


def seen(link, connections, total, probed, *, seconds=20):
    """What so many seconds tell of a link whose connections bring so much together."""
    rates = LinkRates(probed)
    for _ in range(seconds):
        rates.moved(link, total)
        rates.busy(link, connections)
        rates.passed(1.0, {link: connections})
    return rates


@pytest.mark.parametrize(
    ("connections", "total", "is_full"),
    [
        (3, 6, True),  # three bring what one alone got: nobody gives way
        (3, 8, False),  # others do
        (3, 4, False),  # our own do: the wire is shared
        (1, 6, False),  # one tells nothing
    ],
)
def test_links_are_full_where_more_connections_bring_no_more(connections, total, is_full):
    rates = seen(("A", "D"), connections, total, {("A", "D"): 6.0})
    assert rates.is_full(("A", "D")) is is_full
    assert not seen(("A", "D"), connections, total, {("A", "D"): 6.0}, seconds=9).is_full(
        ("A", "D")
    )


def test_links_are_full_no_more_once_others_give_way():
    rates = seen(("A", "D"), 3, 6, {("A", "D"): 6.0})
    for _ in range(3):
        rates.moved(("A", "D"), 9)
        rates.busy(("A", "D"), 3.0)
        rates.passed(1.0, {("A", "D"): 3})
    assert not rates.is_full(("A", "D"))


def test_a_gateway_that_is_no_faster_still_adds_where_the_straight_link_is_full():
    """A's three connections bring 6 together, as one alone; over G there is 1 more for it."""
    probed = {("A", "D"): 6.0, ("A", "G"): 1.0, ("G", "D"): 2.0}
    views = [view("A", 3, 2.0, 1000), view("G", 1, 0.5, 0)]
    for total, links in ((6, (("A", "G"),)), (9, None)):
        rates = seen(("A", "D"), 3, total, probed)
        found = fed(views, probed, 1, rates=rates)
        assert [move.to_links for move in found] == ([links] if links else [])


def test_what_feeds_a_gateway_gives_way_to_who_would_take_far_longer():
    """A, which feeds G, is done in 10 s, B in 100 s: B takes its place; not if that took 15 s."""
    probed = {(a, b): 9.0 for a in "AB" for b in "GD"} | {("G", "D"): 20.0}
    probed |= {("A", "D"): 1.0, ("B", "D"): 1.0}
    for work, links in ((100, (("B", "G"),)), (15, None)):
        views = [
            view("A", 1, 1.0, 100, feeding_bytes_per_s=9.0, feeds=True),
            view("B", 1, 1.0, work),
            view("G", 1, 20.0, 1, feeders=1),
        ]
        active = {("A", "D"): 1, ("A", "G"): 1, ("B", "D"): 1, ("G", "D"): 1}
        move = Feeding(market_of(probed, views, active=active)).better_source()
        assert (move.to_links if move else None) == links
        assert move is None or move.from_links == (("A", "G"),)


def test_flow_counts_pauses_too():
    rates = LinkRates({("A", "D"): 6.0})
    assert rates.flow(("A", "D")) == 0.0
    for _ in range(100):  # half of the time idle, 6 B/s else
        rates.moved(("A", "D"), 3)
        rates.busy(("A", "D"), 0.5)
        rates.passed(1.0, {})
    assert rates.flow(("A", "D")) == pytest.approx(3.0, rel=1e-6)
    assert rates.rate(("A", "D")) == pytest.approx(6.0)


@pytest.mark.parametrize("chains", [False, True])
def test_relays_are_used_from_the_start_by_who_would_take_longest(chains):
    """A takes 90 s straight, B 40 s. A gets R, the faster one: 10 s. B then gets Q: 8 s.

    Of 12 connections half may go to detours: four, since no third way adds."""
    links = {("A", "D"): 1.0, ("B", "D"): 1.0, ("R", "D"): 8.0, ("Q", "D"): 4.0}
    links |= {(source, relay): 9.0 for source in "AB" for relay in "RQ"}
    hosts = [Host("A", 90), Host("B", 40), Host("R"), Host("Q"), Host("D")]
    problem = Problem.from_hosts(hosts, [Link(*ends, rate) for ends, rate in links.items()], "D")

    def first(connections):
        market = Market(problem, connections, Recovery(), chains=chains, piece_bytes=10)
        for parcel in problem.parcels:
            market.released(parcel)
        return first_links(market)

    found = first(12)
    over = [link for link in found if link not in (("A", "D"), ("B", "D"))]
    if chains:
        assert over == [("A", "R", "D"), ("B", "Q", "D")]
    else:
        assert over == [("A", "R"), ("R", "D"), ("B", "Q"), ("Q", "D")]
    assert sum(len(link) - 1 for link in found) == 12
    few = first(3)
    assert few.count(("A", "D")) + few.count(("B", "D")) == 3


def test_a_queue_gives_others_pieces_first_and_each_byte_once():
    queue = HostQueue(10)
    queue.add_own("S", 5, 25)
    queue.add(Piece("R", 0, 4))
    queue.add(Piece("R", 0, 4))
    assert queue.n_bytes == 29
    assert queue.pull(own=True) == Piece("S", 5, 10)
    pulled = [queue.pull() for _ in range(3)]
    assert pulled == [Piece("R", 0, 4), Piece("S", 15, 10), Piece("S", 25, 5)]
    assert (queue.n_bytes, queue.own_bytes, queue.pull()) == (0, 0, None)
    assert not queue.discard(Piece("R", 0, 4))


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


class Listening(AdaptiveController):
    """Keeps what it was told, and what it decided."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.heard = []

    def handle(self, event):
        decisions = super().handle(event)
        self.heard.append((event, decisions))
        return decisions


@pytest.mark.parametrize("relays", RELAYING)
def test_a_copy_goes_on_as_the_original_would(relays):
    """Copied at a third and at two thirds of the events, and the original is left as it was."""
    problem = random_problem(np.random.default_rng(5))
    listening = Listening(problem, 9, relays=relays)
    assert simulate_problem(problem, listening, lost_hosts_s={"C": 1.0}).makespan_s > 1.0
    controller = AdaptiveController(problem, 9, relays=relays)
    controller.start()
    n = len(listening.heard)
    for i, (event, decisions) in enumerate(listening.heard):
        if i in (n // 3, 2 * n // 3):
            twin = copy.deepcopy(controller)
            assert [twin.handle(e) for e, _ in listening.heard[i:]] == [
                decided for _, decided in listening.heard[i:]
            ]
        assert controller.handle(event) == decisions
