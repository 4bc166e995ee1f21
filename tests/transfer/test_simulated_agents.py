"""An agent's core among honest clients, thieves and jumps of the clock; see `simulated.agents`."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from instances.how_many import many
from simulated.agents import FEW_STEPS, SimulatedAgent

# Seeds that once failed, and what was wrong.
KEPT = {
    178: "two sessions at a time were each promised all bytes that a ticket had left",
    1003892: "a clock that was set back gave a ticket its bytes again",
    1004033: "the same",
}


@pytest.mark.parametrize("seed", KEPT)
def test_what_once_failed(seed):
    SimulatedAgent(seed).run()


@pytest.mark.slow
def test_only_good_tickets_count_each_as_often_as_it_says():
    did, n_agents = Counter(), many(1000)
    for seed in range(1000, 1000 + n_agents):
        agent = SimulatedAgent(seed)
        agent.run()
        did += agent.did
    what_happens = ("relayed", "served", "bodies", "restarts", "tunnels")
    assert min(did[what] for what in what_happens) >= n_agents / 2, did
    assert did["refused"] >= 10 * n_agents


@pytest.mark.slow
def test_only_good_tickets_count_among_few_clients():
    """A third of the clients, three times as many agents."""
    did = Counter()
    for seed in range(2000, 2300):
        agent = SimulatedAgent(seed)
        agent.run(FEW_STEPS)
        did += agent.did
    assert min(did[what] for what in ("relayed", "served", "bodies", "restarts")) >= 40, did


class ManyClients(RuleBasedStateMachine):
    """The same steps in orders that Hypothesis chooses, and shortens where they go wrong."""

    @initialize(seed=st.integers(0, 10**6))
    def begin(self, seed):
        self.agent = SimulatedAgent(seed)

    @rule()
    def somebody_wants_a_relay(self):
        self.agent._relay_client()

    @rule()
    def somebody_wants_a_tunnel(self):
        self.agent._tunnel_client()

    @rule()
    def somebody_wants_files(self):
        self.agent._source_client()

    @rule()
    def somebody_sends_garbage(self):
        self.agent._garbage()

    @rule()
    def time_passes(self):
        self.agent._pass_time()
        self.agent._tick()

    @rule()
    def the_clock_jumps(self):
        self.agent._jump()

    @rule()
    def a_session_ends(self):
        self.agent._end_one()

    @rule()
    def the_agent_is_started_again(self):
        self.agent._restart()

    def teardown(self):
        if hasattr(self, "agent"):
            self.agent._stop()


TestManyClients = ManyClients.TestCase
TestManyClients.settings = settings(stateful_step_count=30)
