"""Relays that alter, delay, replay and swallow: what comes over them is whole, or named."""

import threading
import time

import pytest
from transfer.hostile.hostile_agent import HostileAgent
from transfer.hostile.hostile_relay import BEHAVIOURS, HostileRelay
from transfer.hostile.judging import INTERNAL, data, stacks

import datacollect as dc
from datacollect.net.keys import new_private_key, write_private_key

FAST, SLOW = 1e8, 1e5
ENDS_WITHIN_S = 120.0
# Such a relay only takes its time.
HARMLESS = {None, "delays a little"}


class Relayed:
    """Sources, each behind a relay of its own that behaves as it likes."""

    def __init__(self, folder, behaviours, *, direct):
        write_private_key(folder / "collector.key", new_private_key())
        self.key, self.into, self.direct = folder / "collector.key", folder / "into", direct
        self.files = {"one": data(700_000, 1), "two": data(900, 2)}
        self.sources, self.relays = [], []
        for i, behaviour in enumerate(behaviours):
            source = HostileAgent(f"S{i}", folder, self.files)
            relay = HostileRelay(
                f"R{i}",
                folder,
                connect_to={source.name: (source.host, source.port)},
                behaviour=behaviour,
            )
            self.sources.append(source)
            self.relays.append(relay)

    def collection(self, *, with_links, patience_s, timeout_s):
        entries = {agent.name: agent.entry for agent in [*self.sources, *self.relays]}
        links = []
        for source, relay in zip(self.sources, self.relays, strict=True):
            if not self.direct:
                entries[source.name] |= {"url": "https://127.0.0.1:1"}  # nobody listens there
            links += [(source.name, relay.name, FAST), (relay.name, "D", FAST)]
            if with_links == "all":
                links.append((source.name, "D", SLOW))
        rows = [
            {"from": tail, "to": head, "bandwidth_bytes_per_s": rate} for tail, head, rate in links
        ]
        tree = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(self.key),
            "agents": entries,
            "sources": {source.name: {} for source in self.sources},
            "limits": {"patience_s": patience_s, "timeout_s": timeout_s, "connections": 64},
        }
        return tree | ({"links": rows} if with_links else {})

    def pull(self, method, *, with_links, patience_s=20.0, timeout_s=3.0):
        """Pull; fail where it does not end."""
        found = []
        tree = self.collection(with_links=with_links, patience_s=patience_s, timeout_s=timeout_s)
        thread = threading.Thread(
            target=lambda: found.append(dc.pull(tree, self.into, method)), daemon=True
        )
        thread.start()
        thread.join(ENDS_WITHIN_S)
        if thread.is_alive():
            at = stacks()
            self.stop()
            pytest.fail(f"it has not ended after {ENDS_WITHIN_S:g} s:\n{at}")
        return found[0]

    def is_there(self, source):
        base = self.into / source.name
        return all(
            (base / path).is_file() and (base / path).read_bytes() == whole
            for path, whole in self.files.items()
        )

    def require_true(self, answer):
        """What has its final name is right; what is not there is named, in words fit to be read."""
        named = {each.source for each in answer.missing}
        for source, relay in zip(self.sources, self.relays, strict=True):
            base = self.into / source.name
            for path in base.rglob("*") if base.is_dir() else ():
                if path.is_file():
                    assert path.read_bytes() == self.files[str(path.relative_to(base))]
            assert self.is_there(source) or source.name in named, relay.behaviour
        for each in answer.missing:
            assert each.why.isprintable(), each
            assert not INTERNAL.search(each.why), each

    def stop(self):
        for agent in [*self.sources, *self.relays]:
            agent.stop()


@pytest.fixture
def relayed(tmp_path):
    """Return a function that starts sources and their relays; all end with the test."""
    started = []

    def start(behaviours, **more):
        started.append(Relayed(tmp_path, behaviours, **more))
        return started[-1]

    yield start
    for each in started:
        each.stop()


GROUPS = [BEHAVIOURS[i::2] for i in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive", "coordinated"])
@pytest.mark.parametrize("behaviours", GROUPS, ids=["one", "two"])
def test_what_a_relay_spoils_comes_by_the_direct_way(relayed, behaviours, method):
    found = relayed(behaviours, direct=True)
    answer = found.pull(method, with_links="all")
    found.require_true(answer)
    assert answer.complete, answer.missing


@pytest.mark.slow
def test_the_direct_way_is_found_though_no_row_names_it(relayed):
    """Where the links of the file lead over relays alone, the direct one is a last resort."""
    found = relayed(
        ["answers nothing", "refuses with 403", "alters a byte", "falls silent"], direct=True
    )
    answer = found.pull("coordinated", with_links="relays", patience_s=12.0)
    found.require_true(answer)
    assert answer.complete, answer.missing  # and so before patience with it was over


@pytest.mark.slow
def test_behind_a_hostile_relay_is_named_or_there(relayed):
    found = relayed(BEHAVIOURS, direct=False)
    begun_s = time.monotonic()
    answer = found.pull("adaptive", with_links="relays", patience_s=5.0, timeout_s=2.5)
    assert time.monotonic() - begun_s < 60
    found.require_true(answer)
    for source, relay in zip(found.sources, found.relays, strict=True):
        if relay.behaviour in HARMLESS:
            assert found.is_there(source), relay.behaviour
    for relay in found.relays:
        relay.behaviour = None
    answer = found.pull("adaptive", with_links="relays", patience_s=10.0, timeout_s=5.0)
    assert answer.complete, answer.missing


def test_a_relay_that_says_it_leads_everywhere_leads_nowhere(relayed):
    """What a relay says of itself makes nobody worse off who can be reached directly."""
    found = relayed(["answers nothing", None], direct=True)
    liar, other = found.relays
    liar.connect_to = {f"host{i}": ("127.0.0.1", 1) for i in range(9000)} | other.connect_to
    answer = found.pull("adaptive", with_links=None)
    assert answer.complete, answer.missing
