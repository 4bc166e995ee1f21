"""Metrics of an agent: what moves is counted, to the byte, and labels never grow without end."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
from instances.agent_cores import START_S, at, core, establish, source, tls
from instances.agents import (
    relay_ticket,
    running,
    session_with,
    source_ticket,
    write_agent,
)
from instances.metrics import moved, read_metrics, samples
from instances.ports import free_port
from instances.timestamping import until
from transfer.agent.test_tunnel_core import agent as tunnelling_agent
from transfer.agent.test_tunnel_core import opened as opened_tunnel

from datacollect.errors import ProblemError
from datacollect.net.bounded_rows import OTHER
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.net.metrics import MOST_SERIES
from datacollect.transfer.agent.config.file import METRICS_LISTEN, AgentConfig
from datacollect.transfer.agent.core import events
from datacollect.transfer.agent.metrics import agent_families
from datacollect.transfer.protocol.messages import Read, WireSegment

OF_S = ("tests", "S", "source")  # in the order in which they are written
HASHED = ("datacollect_agent_hashed_bytes_total", *OF_S)
METRICS = '[metrics]\nlisten = "127.0.0.1:0"'


def told(agent) -> dict:
    return samples(read_metrics(agent.agent.metrics.url))


def test_each_counter_moves_by_exactly_what_was_moved(tmp_path):
    """S serves 3000 bytes and hashes 500; R relays 7 bytes to a server and 11 back."""
    served = write_agent(tmp_path, "S", serve="data", more=METRICS)
    (tmp_path / "data/a").write_bytes(b"x" * 5000)
    with running(served) as agent:
        before = told(agent)
        with session_with(agent) as session:
            ticket = source_ticket("S")
            [file] = session.inventory(ticket).files
            read = Read((WireSegment(file, 100, 3000),))
            session.send_read(read)
            session.receive_into(memoryview(bytearray(3000)))
            session.digests(Read((WireSegment(file, 0, 500),)))
            # Bytes are counted once they have left; who asked may have them by then.
            until(lambda: HASHED in moved(before, told(agent)), "the count of what was hashed")
            change = moved(before, told(agent))
    assert change == {
        ("datacollect_agent_down_bytes_total", *OF_S): 3000,
        HASHED: 500,
        ("datacollect_agent_sessions_total", *OF_S): 1,
        ("datacollect_agent_open_sessions", "source"): 1,
        ("datacollect_agent_connections_total",): 1,
    }


def test_what_is_relayed_is_counted_in_both_directions(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as target:
        target.settimeout(20)
        place = f"127.0.0.1:{target.getsockname()[1]}"
        more = f'plain_http_to = ["T"]\n{METRICS}'
        with running(write_agent(tmp_path, "R", connect_to={"T": place}, more=more)) as agent:
            hop = RelayHop("R", agent.address, relay_ticket(["R"], "T"))
            before = told(agent)
            with (
                open_route([hop], "T", ("unused", 1), deadline=Deadline(20)) as near,
                closing(target.accept()[0]) as far,
            ):
                # Where a host is reached without TLS, requests come first.
                asked = b"GET / HTTP/1.1\r\nHost: T\r\n\r\n"
                near.sendall(asked)
                assert far.recv(1000) == asked
                far.sendall(b"eleven byte")
                near.settimeout(20)
                assert near.recv(1000) == b"eleven byte"
            agent.logged("ended")
            change = moved(before, told(agent))
    labels = ("tests", "T", "relay")
    assert change.pop(("datacollect_agent_up_bytes_total", *labels)) == len(asked)
    assert change.pop(("datacollect_agent_down_bytes_total", *labels)) == 11
    assert change.pop(("datacollect_agent_sessions_total", *labels)) == 1
    assert change.pop(("datacollect_agent_connections_total",)) == 1
    assert change == {}


def counted(agent) -> dict:
    """Return what the core's totals say, as it would be told."""
    return {
        (family.name, *labels): value
        for family in agent_families(agent, "1", START_S)
        for labels, value in family.values.items()
    }


def test_an_answer_that_breaks_off_counts_what_has_left(tmp_path):
    agent = core(tmp_path)
    tls(agent)
    agent.handle(
        events.RequestRead(
            at(0), 1, "GET", "/v1/inventory", {"authorization": f"Bearer {source()}"}
        )
    )
    agent.handle(events.Sent(at(1), 1, 40))
    agent.handle(events.Passed(at(1), 1, 0, 77))  # as it goes: `Sent` counts it
    agent.handle(events.Ended(at(2), 1, "broke off", sent_bytes=2))
    assert counted(agent)["datacollect_agent_down_bytes", "source", "c1", "R"] == 42


def test_what_this_host_refuses_and_cannot_do_is_counted(tmp_path):
    agent = core(tmp_path, new_per_s=0.1)
    for number in range(1, 4):  # one may come at once
        agent.handle(events.Accepted(at(0), number, "a"))
    agent.handle(events.Ended(at(1), 1, "a fault", is_failure=True))
    found = counted(agent)
    assert found["datacollect_agent_refused", "none"] == 2
    assert found[("datacollect_agent_failed",)] == 1
    assert found[("datacollect_agent_connections",)] == 3


def test_of_many_collections_nothing_is_lost_and_no_more_is_told(tmp_path):
    """Whoever signs tickets names collections as he likes; a Prometheus keeps each for weeks."""
    agent = core(tmp_path, sessions=5000, sessions_per_address=5000, new_per_s=1e6)
    n = 400
    for number in range(1, n + 1):
        establish(agent, number, collection=f"c{number}\x1b")
        agent.handle(events.Passed(at(0), number, 3, 5))
    found = counted(agent)
    assert len(found) < MOST_SERIES
    for name, each in (("up_bytes", 3), ("down_bytes", 5), ("sessions", 1)):
        rows = {key: value for key, value in found.items() if key[0] == f"datacollect_agent_{name}"}
        assert sum(rows.values()) == n * each
        assert rows[f"datacollect_agent_{name}", "relay", r"c1\x1b", "S"] == each
        assert rows[f"datacollect_agent_{name}", OTHER, OTHER, OTHER] > 100 * each
    # What is counted in one row stays there.
    agent.handle(events.Passed(at(1), 1, 3, 5))
    assert counted(agent)["datacollect_agent_up_bytes", "relay", r"c1\x1b", "S"] == 6


@pytest.mark.parametrize(
    ("more", "listen"),
    [
        ("", None),
        ("[metrics]", METRICS_LISTEN),
        ('[metrics]\nlisten = "[::1]:9"', ("::1", 9)),
    ],
)
def test_metrics_are_told_where_the_file_says_and_on_loopback_unless_it_does(
    tmp_path, more, listen
):
    path = write_agent(tmp_path, "S", serve="data", more=more)
    assert AgentConfig.from_file(path).metrics == listen


def test_a_port_that_is_taken_ends_the_start_and_gives_all_back(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        more = f'[metrics]\nlisten = "127.0.0.1:{taken.getsockname()[1]}"'
        path = write_agent(tmp_path, "S", serve="data", more=more)
        refused = pytest.raises(ProblemError, match=r"metrics.listen: .*; choose another port")
        with refused, running(path):
            pass


def test_an_agent_whose_metrics_nobody_asks_for_tells_and_ends_as_ever(tmp_path):
    """Nor do those that are silent at its metrics keep it from its end."""
    port = free_port()  # nobody else is given it afterwards
    more = f'[metrics]\nlisten = "127.0.0.1:{port}"'
    with running(write_agent(tmp_path, "S", serve="data", more=more)) as agent:
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        told(agent)
    for each in silent:
        each.close()
    with pytest.raises(OSError, match="refused"):
        told(agent)


def test_tunnels_are_counted_like_what_is_relayed(tmp_path):
    """By the name of the service that they lead to."""
    one = tunnelling_agent(tmp_path)
    opened_tunnel(one, 1)
    one.handle(events.Passed(at(1), 1, 3, 5))
    found = counted(one)
    labels = ("tunnel", "c1", "ssh")
    assert found["datacollect_agent_sessions", *labels] == 1
    assert found["datacollect_agent_up_bytes", *labels] == 3
    assert found["datacollect_agent_down_bytes", *labels] == 5
    assert found["datacollect_agent_open_sessions", "tunnel"] == 1
