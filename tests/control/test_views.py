"""Incremental views for decisions, compared with those from scratch."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.adaptive.host_queues import HostQueues
from datacollect.control.adaptive.market import WORTH_OPENING_S
from datacollect.control.connection_counts import LEAST_BUSY_S, LinkRates
from datacollect.control.relaying import RELAYING
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_problem

MB = 1_000_000


class Looking(AdaptiveController):
    """After each event, looks at all hosts again."""

    looked = 0

    def handle(self, event):
        decisions = super().handle(event)
        market = self._market
        may_open, market.may_open = market.may_open, lambda _: True
        wanted, market.wanted = market.wanted, deque()
        found, views = market.most_left(9), market.views()
        market.may_open, market.wanted = may_open, wanted
        # Of those with something to give, the first with most left to do: what it feeds others
        # does not count, and where its link is full one more would not help.
        best, longest_s = None, WORTH_OPENING_S
        for view in views:
            is_full = market.rates.is_full(view.link)
            left_s = replace(view, feeding_bytes_per_s=0.0).remaining_s
            if view.queued_bytes > 0 and not is_full and left_s > longest_s:
                best, longest_s = view.link, left_s
        assert found == best
        hosts, queues = market.next_hops.hosts, market.queues
        lying = [host for host in hosts if queues[host].n_bytes > 0]
        for host in hosts:
            elsewhere = [other for other in lying if other != host]
            assert market.has_work_elsewhere(host) == bool(elsewhere)
        self.looked += found is not None
        return decisions


@pytest.mark.parametrize("relays", RELAYING)
def test_what_is_kept_is_what_views_of_all_hosts_tell(relays):
    random = np.random.default_rng(3)
    links = random.uniform(0.5, 4.0, (7, 7)) * MB
    links[:-1, -1] = random.uniform(0.05, 1.0, 6) * MB
    links[2, -1] = links[-1] = 0
    np.fill_diagonal(links, 0)
    problem = Problem.from_matrix([*"ABCDEFZ"], links, [6 * MB, MB, MB, 0, MB, 3 * MB, 0], "Z")
    controller = Looking(problem, 14, relays=relays, piece_bytes=100_000)
    run = simulate_problem(problem, controller)
    assert run.complete
    assert controller.looked > 20
    assert controller.answer["connections_opened"] == len(run.connections)


def test_rates_follow_what_is_observed_at_once():
    """10 bytes in a second per connection, then 25; a chain has what its slowest hop has."""
    rates = LinkRates({("A", "B"): 50.0, ("B", "D"): 40.0})
    chain = ("A", "B", "D")
    assert (rates.rate(("A", "B")), rates.rate(chain)) == (50.0, 40.0)
    rates.busy(("A", "B"), LEAST_BUSY_S)
    assert (rates.rate(("A", "B")), rates.rate(chain)) == (0.0, 0.0)
    rates.moved(("A", "B"), 20)
    assert (rates.rate(("A", "B")), rates.rate(chain)) == (10.0, 10.0)
    rates.moved(("A", "B"), 80)
    rates.busy(("A", "B"), LEAST_BUSY_S)
    assert (rates.rate(("A", "B")), rates.rate(chain)) == (25.0, 25.0)
    rates.passed(100.0, {})
    assert (rates.rate(("A", "B")), rates.rate(chain)) == (50.0, 40.0)


def test_queues_know_where_something_is_left():
    queues = HostQueues("AB", piece_bytes=10)
    assert not queues.any_left("AB")
    queues["B"].add_own("B", 0, 15)
    assert queues.any_left("AB")
    assert queues.any_left("AB", besides="A")
    assert not queues.any_left("AB", besides="B")
    assert not queues.any_left("A")
    piece = queues["B"].pull()
    assert queues.any_left("B")
    queues["B"].pull()
    assert not queues.any_left("B")
    queues["B"].add(piece)
    assert queues.any_left("B")
    queues.clear_out("B")
    assert not queues.any_left("B")
