"""Counters of agents' interfaces: told only where they are named, and to operators alone."""

from __future__ import annotations

import json
import time

import pytest
from instances.measuring import OPERATOR, entry_of, measuring

from datacollect.errors import RefusedError, TransferError
from datacollect.measuring.operator import counter_polls
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.operator.counter_polls import EVERY_S, OWN_HOST, CounterPolls
from datacollect.measuring.operator.counter_polls import OPERATOR as OTHER_END
from datacollect.net.agent_entries import AgentEntry
from datacollect.net.keys import PrivateKey

TOLD = {"at_s": 5.0, "interfaces": {"eth0": [1, 2]}}


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(counter_polls, "EVERY_S", 0.01)
    monkeypatch.setattr(counter_polls, "AGAIN_S", 0.01)


def known(polls, name, is_it):
    """Return what is known of a host, as soon as it is what is looked for."""
    until_s = time.monotonic() + 120.0
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


class FiveMinutes:
    """Stands for the end of a block, which comes after 300 s that nobody waits for."""

    def __init__(self):
        self.now_s = 0.0

    def is_set(self):
        return self.now_s >= 300.0

    def wait(self, seconds):
        self.now_s += seconds

    def set(self):
        self.now_s = 300.0


def test_hosts_are_asked_every_two_seconds_and_120_s_of_it_are_kept(monkeypatch):
    """Of 150 readings, at 0 to 298 s, the last 61 lie between 178 and 298 s."""
    monkeypatch.setattr(counter_polls, "EVERY_S", EVERY_S)
    clock = FiveMinutes()
    monkeypatch.setattr(counter_polls, "interface_counters", lambda: TOLD | {"at_s": clock.now_s})
    polls = CounterPolls([], None)
    polls._over = clock
    # No block: its end would be that of the five minutes.
    [thread] = polls._threads
    thread.start()
    thread.join(30.0)
    readings, _ = polls.known()[OWN_HOST]
    assert [reading["at_s"] for reading in readings] == [178.0 + 2.0 * i for i in range(61)]


def test_by_default_nothing_is_told_and_nobody_asks_again(tmp_path):
    with (
        measuring(tmp_path, "S") as agent,
        CounterPolls([entry_of(agent)], OPERATOR) as polls,
    ):
        _, why = known(polls, "S", lambda _, why: bool(why))
        assert "the tool 'counters' is not one of this agent's" in why
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
        assert "not one of the agent's operators" in why


def test_a_ticket_for_a_test_is_none_for_counters(tmp_path):
    with measuring(tmp_path, "S", tools=["tcp", "counters"]) as agent:
        asked = AskedAgent(entry_of(agent), OPERATOR)
        asked.token_for(asked.fingerprint, OTHER_END, "tcp", 0, "A" * 22 + "==")
        with pytest.raises(RefusedError, match="the ticket is for tcp, not for counters"):
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
