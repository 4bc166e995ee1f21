"""Counters of agents' interfaces: told only where they are named, and to operators alone."""

from __future__ import annotations

import json
import time

import pytest
from instances.measuring import OPERATOR, entry_of, measuring

from datacollect.errors import RefusedError, TransferError
from datacollect.measurement.asking import counter_polls
from datacollect.measurement.asking.agents import AskedAgent
from datacollect.measurement.asking.counter_polls import OPERATOR as OTHER_END
from datacollect.measurement.asking.counter_polls import OWN_HOST, CounterPolls
from datacollect.net.agent_entries import AgentEntry
from datacollect.net.keys import PrivateKey

TOLD = {"at_s": 5.0, "interfaces": {"eth0": [1, 2]}}


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(counter_polls, "EVERY_S", 0.01)
    monkeypatch.setattr(counter_polls, "AGAIN_S", 0.01)


def known(polls, name, is_it):
    """Return what is known of a host, as soon as it is what is looked for."""
    until_s = time.monotonic() + 30.0
    while not is_it(*polls.known()[name]):
        assert time.monotonic() < until_s, polls.known()
        time.sleep(0.005)
    return polls.known()[name]


def test_agents_that_name_counters_tell_them_without_a_lease(tmp_path):
    with (
        measuring(tmp_path, "S", tools=["tcp", "counters"]) as agent,
        CounterPolls([entry_of(agent)], OPERATOR) as polls,
    ):
        readings, why = known(polls, "S", lambda rows, _: len(rows) > 2)
        assert readings[0]["at_s"] < readings[-1]["at_s"]
        assert why in ("", "no interfaces are shown there")
        # Nothing is counted as a test's, and this host is among them.
        assert not (tmp_path / "S/S.measured").exists()
        known(polls, OWN_HOST, lambda rows, _: len(rows) > 2)


def test_by_default_nothing_is_told_and_nobody_asks_again(tmp_path):
    with (
        measuring(tmp_path, "S") as agent,
        CounterPolls([entry_of(agent)], OPERATOR) as polls,
    ):
        _, why = known(polls, "S", lambda _, why: bool(why))
        assert "the tool 'counters' is none of this agent's" in why
        [_, asking] = polls._threads
        asking.join(30.0)
        assert not asking.is_alive()


def test_nobody_else_is_told(tmp_path):
    nobody = PrivateKey(b"the key of somebody else in here")
    with (
        measuring(tmp_path, "S", tools=["counters"]) as agent,
        CounterPolls([entry_of(agent)], nobody) as polls,
    ):
        _, why = known(polls, "S", lambda _, why: bool(why))
        assert "none of the agent's operators" in why


def test_a_ticket_for_a_test_is_none_for_counters(tmp_path):
    with measuring(tmp_path, "S", tools=["tcp", "counters"]) as agent:
        asked = AskedAgent(entry_of(agent), OPERATOR)
        asked.token_for(asked.fingerprint, OTHER_END, "tcp", 0, "A" * 22 + "==")
        with pytest.raises(RefusedError, match="the ticket is for tcp, not counters"):
            asked.counters()
        asked.close()


def test_an_agent_that_is_away_is_asked_again(tmp_path):
    gone = AgentEntry("D", ("127.0.0.1", 1), "sha256:" + "0" * 64)
    with CounterPolls([gone], OPERATOR) as polls:
        _, why = known(polls, "D", lambda _, why: bool(why))
        assert "cannot be reached" in why
        assert all(thread.is_alive() for thread in polls._threads)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {**TOLD, "at_s": "x"},
        {**TOLD, "interfaces": []},
        {**TOLD, "interfaces": {"eth0": [1]}},
        {**TOLD, "interfaces": {"eth0": [1, -2]}},
        {**TOLD, "interfaces": {"eth0": [1, 2.5]}},
        {**TOLD, "interfaces": {"eth0": [1, 2**70]}},
        {**TOLD, "interfaces": {f"eth{i}": [1, 2] for i in range(100)}},
    ],
)
def test_counters_that_are_none_are_not_shown(tmp_path, told):
    def answer(exchange):
        while exchange.read():
            pass
        exchange.answer(200, [], json.dumps(told).encode())

    with measuring(tmp_path, "S", change={"/measure/counters": answer}) as agent:
        asked = AskedAgent(entry_of(agent), OPERATOR)
        with pytest.raises(TransferError, match="S: "):
            asked.counters()
        asked.close()
