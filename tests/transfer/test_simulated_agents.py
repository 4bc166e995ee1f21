"""An agent's core among honest clients, thieves and jumps of the clock; see `simulated.agents`."""

from __future__ import annotations

from collections import Counter

import pytest
from instances.how_many import many
from simulated.agents import SimulatedAgent

# Seeds that once failed, and what was wrong.
KEPT = {178: "two sessions at a time were each promised all bytes that a ticket had left"}


@pytest.mark.parametrize("seed", KEPT)
def test_what_once_failed(seed):
    SimulatedAgent(seed).run()


@pytest.mark.parametrize("first", range(1000, 1100, 25))
def test_only_good_tickets_count_each_as_often_as_it_says(first):
    did = Counter()
    for seed in range(first, first + 25):
        agent = SimulatedAgent(seed)
        agent.run()
        did += agent.did
    assert min(did["relayed"], did["served"], did["restarts"]) >= 20, did
    assert did["refused"] >= 300


@pytest.mark.slow
def test_only_good_tickets_count_among_many_clients():
    for seed in range(10_000, 10_000 + many(2000)):
        SimulatedAgent(seed).run()
