"""Agents whose clocks are set while a pull is at work: they are asked again what time it is."""

import os
import time
from dataclasses import replace

import pytest
from instances.agents import KEY, running, write_agent
from instances.ports import free_port

import datacollect as dc
from datacollect.errors import RefusedError, TransferError
from datacollect.net.keys import write_private_key
from datacollect.transfer.agent.core import events
from datacollect.transfer.sources.agent.network import Contact, Issue, Network

LIST = "/v1/inventory?detail=1"
# Less than 5 s back is within what tickets may be ahead.
STEPS_S = [-20.0, 25 * 3600.0]


class Clock:
    """Has an agent's clock set by some seconds as soon as it was asked so often."""

    def __init__(self, agent, step_s, kind, nth, *targets):
        self.shell, self.step_s, self.left = agent.agent._shell, step_s, nth
        self.kind, self.targets = kind, targets
        self.ahead_s, self._tell = 0.0, self.shell.tell
        self.shell.now, self.shell.tell = self.now, self.tell

    def now(self):
        return events.ClockReading(time.monotonic(), time.time() + self.ahead_s)

    def tell(self, event):
        if isinstance(event, self.kind) and (not self.targets or event.target in self.targets):
            self.left -= 1
            if self.left == 0:
                self.ahead_s = self.step_s
                event = replace(event, now=self.now())
        self._tell(event)


@pytest.fixture
def files(tmp_path):
    """Forty pieces: several connections ask several times."""
    folder = tmp_path / "data"
    folder.mkdir()
    made = {f"{i:02}": os.urandom(300_000) for i in range(8)}
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return made


def collection_of(tmp_path, agents, **more):
    write_private_key(tmp_path / "collector.key", KEY)
    return {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": str(tmp_path / "collector.key"),
        "agents": agents,
        "limits": {"patience_s": 20.0, "timeout_s": 5.0, "piece_bytes": 65536, "connections": 2},
    } | more


def entry(each):
    return {"url": each.agent.url, "fingerprint": each.agent.fingerprint}


def arrived(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("nth", [1, 2, 6])
@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_source_whose_clock_is_set_is_asked_again_and_all_comes(tmp_path, files, step_s, nth):
    """When it is to list, when the first bytes are asked for, and later."""
    with running(write_agent(tmp_path, "S1", serve="data")) as source:
        clock = Clock(source, step_s, events.RequestRead, nth, LIST, "/v1/read")
        told = []
        collection = collection_of(tmp_path, {"S1": entry(source)})
        answer = dc.pull(collection, tmp_path / "into", tell=told.append)
    assert clock.left <= 0
    assert answer.complete, answer.missing
    assert arrived(tmp_path / "into/S1") == files
    assert not [line for line in told if line.startswith("given up")]


@pytest.mark.slow
@pytest.mark.parametrize("nth", [2, 3])
@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_relay_whose_clock_is_set_is_asked_again_and_all_comes(tmp_path, files, step_s, nth):
    """The source is reached over it alone: when it is listed, and when its bytes are fetched."""
    with running(write_agent(tmp_path, "S1", serve="data")) as source:
        path = write_agent(tmp_path, "R", connect_to={"S1": source.place})
        with running(path) as relay:
            clock = Clock(relay, step_s, events.HeadRead, nth)
            hidden = entry(source) | {"url": f"https://127.0.0.1:{free_port()}"}
            agents = {"S1": hidden, "R": entry(relay)}
            answer = dc.pull(collection_of(tmp_path, agents, sources={"S1": {}}), tmp_path / "into")
    assert clock.left <= 0
    assert answer.complete, answer.missing
    assert arrived(tmp_path / "into/S1") == files


class Moving:
    """A clock that is another by an hour whenever somebody looks."""

    n = 0

    def __radd__(self, now_s):
        self.n += 1
        return now_s + 3600.0 * self.n


@pytest.mark.slow
def test_an_agent_that_refuses_and_says_another_time_each_time_is_given_up(agents, tmp_path):
    """It has its patience, and no more."""
    one, two = agents("S1", {"a": b"a"}), agents("S2", {"c": b"c"}, refuses=401, ahead_s=Moving())
    entries = {each.name: each.entry for each in (one, two)}
    limits = {"patience_s": 4.0, "timeout_s": 4.0}
    collection = collection_of(tmp_path, entries, limits=limits)
    answer = dc.pull(collection, tmp_path / "into")
    (missing,) = answer.missing
    assert missing.source == "S2"
    assert "its clock was set by +3600 s" in missing.why
    assert (tmp_path / "into/S1/a").read_bytes() == b"a"


@pytest.fixture
def network(monkeypatch):
    """A network of which every agent says that its clock is ahead by 1000 s."""
    network = Network({}, KEY, "tests", timeout_s=1.0, connections=1)
    monkeypatch.setattr(network, "ask", lambda *_: Contact(None, (), 1000.0))
    return network


REFUSED = RefusedError("S1: refuses (401): it does not count", 401, is_final=True)


@pytest.mark.parametrize(
    ("ahead_s", "left_s", "status", "is_final"),
    [
        (1000.0, 600.0, 401, True),  # an unknown key, perhaps
        (1002.0, 600.0, 401, True),
        (1020.0, 600.0, 401, False),
        (980.0, 600.0, 401, False),
        (1000.0, 1.0, 401, False),  # a session that has lasted as long as its ticket
        (1020.0, 600.0, 403, True),  # for other files: no time helps
    ],
)
def test_only_a_refusal_that_time_explains_is_not_final(network, ahead_s, left_s, status, is_final):
    issue = Issue(ahead_s, time.monotonic() + 1000.0 + left_s)
    error = RefusedError(str(REFUSED), status, is_final=True)
    assert network.refused("S1", (), issue, error).is_final is is_final


def test_where_nobody_says_the_time_the_refusal_is_not_final(network, monkeypatch):
    def away(*_):
        raise TransferError("S1: cannot be reached")

    monkeypatch.setattr(network, "ask", away)
    assert not network.refused("S1", (), Issue(1000.0, 1e12), REFUSED).is_final
