"""Limits of collections on real sockets, by a counter before the source that is not the pull's."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from instances.agents import KEY, running, write_agent
from instances.metered import MeteredPort, most_within

import datacollect as dc
from datacollect.net.keys import write_private_key
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.core.core import CollectorCore
from datacollect.transfer.pull.core.messages import CollectorTicked
from datacollect.transfer.pull.core.patience import Patience
from datacollect.transfer.pull.core.todo import SourceWork
from datacollect.transfer.pull.route_limits import RouteLimits

RATE = 2_000_000  # bytes per second: 16 Mbit/s


@pytest.fixture
def collection_of(tmp_path):
    write_private_key(tmp_path / "collector.key", KEY)

    def make(agents, **more):
        """Agents by name: where they are reached, and their fingerprints."""
        return {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(tmp_path / "collector.key"),
            "agents": {
                name: {"url": url, "fingerprint": fingerprint}
                for name, (url, fingerprint) in agents.items()
            },
        } | more

    return make


def serving(tmp_path, name, n_bytes, **more):
    path = write_agent(tmp_path, name, serve=f"data-{name}", **more)
    (tmp_path / f"data-{name}/file").write_bytes(os.urandom(n_bytes))
    return path


# How each limit is written that one source's bytes pass under.
LIMITS = {
    "rate": {"limits": {"rate": "16 Mbit/s"}},
    "uplink": {"hosts": {"S": {"uplink_bytes_per_s": "16 Mbit/s"}}},
    "downlink": {"hosts": {"D": {"downlink_bytes_per_s": RATE}}},
    "cap": {"links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": "16 Mbit/s", "cap": True}]},
    "hours": {"timezone": "UTC", "limits": {"rate": "00:00 16 Mbit/s, 12:00 2 MB/s"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("limit", LIMITS)
def test_each_limit_is_kept(tmp_path, collection_of, limit):
    """Two seconds of data at the rate: in no second much more than it passes."""
    with (
        running(serving(tmp_path, "S", 2 * RATE)) as source,
        MeteredPort(source.address) as port,
    ):
        agents = {"S": (port.url, source.agent.fingerprint)}
        answer = dc.pull(collection_of(agents, **LIMITS[limit]), tmp_path / "into")
    assert answer.complete
    assert most_within(port.rows, 1.0) < 1.5 * RATE
    assert sum(n for _, n in port.rows) > 2 * RATE


def test_a_bandwidth_is_an_estimate_unless_it_is_a_cap(tmp_path, collection_of):
    """8 kbit/s are written: 300 kB at that rate would take five minutes."""
    links = [{"from": "S", "to": "D", "bandwidth_bytes_per_s": "8 kbit/s"}]
    with running(serving(tmp_path, "S", 300_000)) as source:
        agents = {"S": (source.agent.url, source.agent.fingerprint)}
        answer = dc.pull(collection_of(agents, links=links), tmp_path / "into")
    assert answer.complete
    assert answer.makespan_s < 60


@pytest.mark.slow
def test_two_sources_share_what_the_destination_takes(tmp_path, collection_of):
    with (
        running(serving(tmp_path, "S", RATE)) as s,
        running(serving(tmp_path, "T", RATE)) as t,
        MeteredPort(s.address) as of_s,
        MeteredPort(t.address) as of_t,
    ):
        agents = {
            "S": (of_s.url, s.agent.fingerprint),
            "T": (of_t.url, t.agent.fingerprint),
        }
        hosts = {"D": {"downlink_bytes_per_s": RATE}}
        assert dc.pull(collection_of(agents, hosts=hosts), tmp_path / "into").complete
    rows = [*of_s.rows, *of_t.rows]
    assert most_within(rows, 1.0) < 1.5 * RATE
    assert min(len(of_s.rows), len(of_t.rows)) > 10


class _Ranges(BaseHTTPRequestHandler):
    """One file by ranges, as web servers give it."""

    protocol_version = "HTTP/1.1"
    data = os.urandom(2 * RATE)

    def do_GET(self):
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        part = self.data[first : last + 1]
        self.send_response(206)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(self.data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_web_servers_keep_to_limits_too(tmp_path, collection_of):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ranges) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with MeteredPort(server.server_address) as port:
            web = {
                "url": f"http://127.0.0.1:{port.address[1]}/",
                "paths": ["file"],
                "plain_http": True,
            }
            collection = collection_of({}, servers={"W": web}, limits={"rate": RATE})
            answer = dc.pull(collection, tmp_path / "into")
        server.shutdown()
    assert answer.complete
    assert (tmp_path / "into/W/file").read_bytes() == _Ranges.data
    assert most_within(port.rows, 1.0) < 1.5 * RATE


@pytest.mark.slow
def test_waiting_for_a_limit_is_no_silence_of_the_source(tmp_path, collection_of):
    """16 sessions share 20 kB/s, so that each waits longer than patience for what it may take."""
    with running(serving(tmp_path, "S", 120_000)) as source:
        agents = {"S": (source.agent.url, source.agent.fingerprint)}
        limits = {"rate": 20_000, "patience_s": 4.0, "timeout_s": 20.0, "piece_bytes": 65536}
        answer = dc.pull(collection_of(agents, limits=limits), tmp_path / "into")
    assert answer.complete


def test_time_in_which_limits_hold_a_source_back_does_not_count():
    """Of 91 s of silence 30 s are of limits: 61 s are more than a patience of 60 s."""
    patience = Patience(["S"], 60.0)
    patience.stand_still("S", 30.0)
    patience.stand_still("another", 30.0)
    assert not patience.is_over("S", 89.0)
    assert patience.is_over("S", 91.0)
    assert patience.silent_s("S", 91.0) == 61.0


def test_a_core_gives_up_who_is_silent_and_not_whom_limits_hold_back():
    """Both bring nothing for two minutes, with 10 s of patience; of T more could be received."""
    work = {name: SourceWork((0,), (10,), frozenset([0])) for name in "ST"}
    core = CollectorCore(work, _Idle(), patience_s=10.0)
    core.start()
    for now_s in range(120):
        core.handle(CollectorTicked(float(now_s), held=frozenset("T")))
    assert [*core.todo.given_up] == ["S"]


class _Idle:
    """A controller that wants nothing."""

    finished = False

    def start(self):
        return []

    def handle(self, _):
        return []


def test_a_session_is_under_all_limits_of_its_route_and_shares_each(tmp_path):
    """S -> R -> D: S's uplink, the cap of S -> R, R's down- and uplink, D's downlink, the rate."""
    hosts = {
        "S": {"uplink_bytes_per_s": 1e6, "downlink_bytes_per_s": 1.0},
        "R": {"uplink_bytes_per_s": 2e6, "downlink_bytes_per_s": 3e6},
        "D": {"downlink_bytes_per_s": 4e6, "uplink_bytes_per_s": 1.0},
    }
    links = [
        {"from": "S", "to": "R", "bandwidth_bytes_per_s": 5e6, "cap": True},
        {"from": "R", "to": "D", "bandwidth_bytes_per_s": 1.0},
    ]
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "k",
        "agents": {n: {"url": "https://127.0.0.1:1", "ca": "ca.pem"} for n in ("S", "R")},
        "hosts": hosts,
        "links": links,
        "limits": {"rate": 6e6},
    }
    limits = RouteLimits(Collection.from_dict(tree, tmp_path))
    over, direct = limits.pacer_of("S", ("R",)), limits.pacer_of("S", ())
    of_over, of_direct = over._throttles, direct._throttles
    assert [each.bytes_per_s for each in of_over] == [6e6, 1e6, 5e6, 3e6, 2e6, 4e6]
    assert [each.bytes_per_s for each in of_direct] == [6e6, 1e6, 4e6]
    assert set(of_direct) < set(of_over)


@pytest.mark.slow
@pytest.mark.parametrize("connections", [1, 16])
def test_ten_seconds_carry_no_more_than_a_rate_and_five_per_cent(
    tmp_path, collection_of, connections
):
    """How much less comes a busy processor says; by a clock of its own `test_throttle` has that."""
    rate = 10_000_000
    with (
        running(serving(tmp_path, "S", 14 * rate)) as source,
        MeteredPort(source.address) as port,
    ):
        agents = {"S": (port.url, source.agent.fingerprint)}
        limits = {"rate": rate, "connections": connections}
        assert dc.pull(collection_of(agents, limits=limits), tmp_path / "into").complete
    assert most_within(port.rows, 10.0) <= 1.05 * 10 * rate
