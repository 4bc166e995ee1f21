"""Tunnels over real sockets: from `dc.tunnel` over relays and an agent to a service, and back."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from instances.agents import KEY, received, running, write_agent
from instances.ports import closed_port
from instances.tunnels import collection_of, counting, echoing, service, tunnel_agent

import datacollect as dc
from datacollect.errors import InfeasibleError, ProblemError, RefusedError, TransferError
from datacollect.net.keys import PrivateKey, write_private_key

OTHER = PrivateKey(b"whom no agent of these tests has")


@pytest.fixture
def held():
    with ExitStack() as stack:
        yield stack


def world(held, folder, answer=counting, relays=(), links=(), **keys):
    """Start a service, its agent S1 and relays that lead to it and to each other; in this order."""
    place = held.enter_context(service(answer))
    agents = [held.enter_context(running(tunnel_agent(folder, {"echo": place}, **keys)))]
    for name in relays:
        leads = {each.name: each.place for each in agents}
        agents.append(held.enter_context(running(write_agent(folder, name, connect_to=leads))))
    return collection_of(folder, *agents, links=links), agents


def asked(tunnel) -> bytes:
    assert tunnel.socket.recv(100) == b"hello\n"
    tunnel.socket.sendall(b"x" * 1000)
    tunnel.socket.shutdown(socket.SHUT_WR)
    return received(tunnel.socket)


@pytest.mark.parametrize("via", [[], ["K1"], ["K2", "K1"]])
def test_a_service_that_speaks_first_and_answers_a_half_close(held, tmp_path, via):
    tree, agents = world(held, tmp_path, relays=["K1", "K2"])
    with dc.tunnel(tree, "S1:echo", via=via) as tunnel:
        assert tunnel.route == ("D", *via, "S1")
        assert asked(tunnel) == b"got 1000"
    assert tunnel.why is None
    [record] = agents[0].logged("ended")
    assert (record["up_bytes"], record["down_bytes"]) == (1000, 14)
    assert record["why"] == "both sides have ended"


def test_each_hop_says_its_buffers(held, tmp_path):
    tree, _ = world(held, tmp_path, relays=["K1"], limits="limits = { buffer_bytes = 65536 }")
    with dc.tunnel(tree, "S1:echo", via=["K1"], buffer_bytes=32_768) as tunnel:
        hops = tunnel.hops
        assert [(hop.start, hop.end) for hop in hops] == [
            ("D", "K1"),
            ("K1", "S1"),
            ("S1", "S1:echo"),
        ]
        # Linux grants twice what is asked for.
        assert (hops[0].start_side.asked_bytes, hops[0].start_side.send_bytes) == (32_768, 65_536)
        assert hops[0].end_side.asked_bytes is None
        assert (hops[1].end_side.asked_bytes, hops[1].end_side.receive_bytes) == (65_536, 131_072)
        assert hops[2].end_side is None
        assert all(hop.start_side.congestion and hop.start_side.window_bytes for hop in hops)
        assert hops.window_bytes == sum(hop.start_side.window_bytes for hop in hops)
        assert "buffers asked 65.54 kB" in str(hops)
        assert asked(tunnel) == b"got 1000"


@pytest.mark.parametrize("is_told", [False, True])
def test_to_a_service_beside_it_an_agent_does_not_pace_unless_it_is_told_to(
    held, tmp_path, is_told
):
    # The usual one is the one beside Reno that every user may ask for.
    usual = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    tree, _ = world(held, tmp_path, limits=f'congestion = "{usual}"' if is_told else "")
    with dc.tunnel(tree, "S1:echo") as tunnel:
        assert tunnel.hops[-1].start_side.congestion == (usual if is_told else "reno")
        assert asked(tunnel) == b"got 1000"


def test_the_route_is_the_widest_and_the_next_one_where_a_relay_is_gone(held, tmp_path):
    links = [("S1", "D", 1e6), ("S1", "K1", 5e6), ("K1", "D", 5e6), ("S1", "K2", 3e6)]
    links += [("K2", "D", 3e6)]
    told = []
    place = held.enter_context(service(counting))
    s1 = held.enter_context(running(tunnel_agent(tmp_path, {"echo": place})))
    k2 = held.enter_context(running(write_agent(tmp_path, "K2", connect_to={"S1": s1.place})))
    with running(write_agent(tmp_path, "K1", connect_to={"S1": s1.place})) as k1:
        tree = collection_of(tmp_path, s1, k1, k2, links=links)
        with dc.tunnel(tree, "S1:echo", tell=told.append) as tunnel:
            assert tunnel.route == ("D", "K1", "S1")
            assert asked(tunnel) == b"got 1000"
    with dc.tunnel(tree, "S1:echo", tell=told.append, strict=True) as tunnel:
        assert tunnel.route == ("D", "K2", "S1")
        assert asked(tunnel) == b"got 1000"
    assert told == []
    gone = f"https://127.0.0.1:{held.enter_context(closed_port())}"
    for name in ("K1", "K2"):
        tree["agents"][name]["url"] = gone
    with dc.tunnel(tree, "S1:echo", tell=told.append) as tunnel:
        assert tunnel.route == ("D", "S1")
        assert asked(tunnel) == b"got 1000"
    assert "falling back to the direct route to S1" in told[0]
    with pytest.raises(InfeasibleError, match="--strict"):
        dc.tunnel(tree, "S1:echo", strict=True)
    with pytest.raises(InfeasibleError, match="no route to S1:echo: K1: cannot be reached"):
        dc.tunnel(tree, "S1:echo", via=["K1"])


def test_relays_are_the_last_resort_where_no_link_is_known(held, tmp_path):
    """S1 is reached over K1 alone."""
    tree, _ = world(held, tmp_path, relays=["K1"])
    port = held.enter_context(closed_port())
    tree["agents"]["S1"]["url"] = f"https://127.0.0.1:{port}"
    with dc.tunnel(tree, "S1:echo") as tunnel:
        assert tunnel.route == ("D", "K1", "S1")
        assert asked(tunnel) == b"got 1000"
    with pytest.raises(InfeasibleError, match="S1: cannot be reached"):
        dc.tunnel(tree, "S1:echo", direct=True)


def test_a_relay_that_ends_resets_both_programs(held, tmp_path):
    over = threading.Event()

    def waiting(one: socket.socket) -> None:
        one.sendall(b"hello\n")
        try:
            one.recv(1)
        except ConnectionResetError:
            over.set()

    place = held.enter_context(service(waiting))
    s1 = held.enter_context(running(tunnel_agent(tmp_path, {"echo": place})))
    with running(write_agent(tmp_path, "K1", connect_to={"S1": s1.place})) as k1:
        tunnel = dc.tunnel(collection_of(tmp_path, s1, k1), "S1:echo", via=["K1"])
        assert tunnel.socket.recv(100) == b"hello\n"
    with pytest.raises(ConnectionResetError):
        tunnel.socket.recv(1)
    assert over.wait(10)
    with pytest.raises(TransferError, match="D → K1 → S1 → S1:echo: "):
        tunnel.wait()
    tunnel.close()


def test_a_service_that_resets_is_a_reset_here(held, tmp_path):
    def resetting(one: socket.socket) -> None:
        one.sendall(b"hello\n")
        one.recv(1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    tree, _ = world(held, tmp_path, resetting)
    with dc.tunnel(tree, "S1:echo") as tunnel:
        assert tunnel.socket.recv(100) == b"hello\n"
        tunnel.socket.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            tunnel.socket.recv(1)


def test_what_was_sent_arrives_where_the_block_ends_at_once(held, tmp_path):
    came = []

    def taking(one: socket.socket) -> None:
        came.append(len(received(one)))

    tree, agents = world(held, tmp_path, taking)
    with dc.tunnel(tree, "S1:echo") as tunnel:
        tunnel.socket.sendall(bytes(2_000_000))
    agents[0].logged("ended")
    assert came == [2_000_000]


def test_an_error_in_the_block_is_a_reset(held, tmp_path):
    over = threading.Event()

    def waiting(one: socket.socket) -> None:
        try:
            one.recv(1)
        except ConnectionResetError:
            over.set()

    tree, _ = world(held, tmp_path, waiting)
    with pytest.raises(KeyError), dc.tunnel(tree, "S1:echo"):
        raise KeyError
    assert over.wait(10)


def test_asyncio_takes_its_socket(held, tmp_path):
    tree, _ = world(held, tmp_path, echoing)

    async def talk(connection: socket.socket) -> bytes:
        reader, writer = await asyncio.open_connection(sock=connection)
        writer.write(b"question")
        writer.write_eof()
        data = await reader.read()
        writer.close()
        await writer.wait_closed()
        return data

    with dc.tunnel(tree, "S1:echo") as tunnel:
        assert asyncio.run(talk(tunnel.socket)) == b"question"
    assert tunnel.why is None


def test_tls_of_a_program_passes_within(held, tmp_path):
    from instances.tunnels import greeted_streams

    greeted_streams(tmp_path)  # writes a certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    def secret(one: socket.socket) -> None:
        with context.wrap_socket(one, server_side=True) as tls:
            tls.sendall(b"secret")

    tree, _ = world(held, tmp_path, secret)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    with dc.tunnel(tree, "S1:echo") as tunnel, client.wrap_socket(tunnel.socket) as tls:
        assert tls.recv(100) == b"secret"


def test_many_bytes_both_ways_over_two_relays(held, tmp_path):
    tree, _ = world(held, tmp_path, echoing, relays=["K1", "K2"])
    data = os.urandom(3_000_000)
    with dc.tunnel(tree, "S1:echo", via=["K2", "K1"]) as tunnel:

        def send() -> None:
            tunnel.socket.sendall(data)
            tunnel.socket.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        assert received(tunnel.socket) == data
        thread.join()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "S1"}, "a tunnel leads to AGENT:SERVICE, got 'S1'"),
        ({"to": "S1:"}, "AGENT:SERVICE"),
        ({"to": "S2:echo"}, r"one of the collection's agents \(K1, S1\), got 'S2'"),
        ({"to": "S1:a b"}, "the service"),
        ({"via": ["K9"]}, "got 'K9'; name one of these"),
        ({"via": ["K1", "K1"]}, "K1 is listed twice"),
        ({"via": ["S1"]}, "S1 is the host that the tunnel leads to"),
        ({"via": [f"K{i}" for i in range(9)]}, "at most 8 relays, got 9"),
        ({"via": "K1"}, "via must be a list"),
        ({"via": ["K1"], "direct": True}, "cannot be combined"),
        ({"direct": True, "strict": True}, "leave strict out"),
        ({"buffer_bytes": 100}, "buffer_bytes must be"),
        ({"to": "S1:smtp", "direct": True}, "in this agent's file names no service 'smtp'"),
    ],
)
def test_what_makes_no_tunnel(tmp_path_factory, options, message, two_agents):
    tree = dict(two_agents)
    if len(options.get("via", ())) > 2:
        tree["agents"] |= {f"K{i}": tree["agents"]["K1"] for i in range(9)}
    with pytest.raises(ProblemError, match=message):
        dc.tunnel(tree, **{"to": "S1:echo", **options})


@pytest.fixture(scope="module")
def two_agents(tmp_path_factory):
    with ExitStack() as stack:
        yield world(stack, tmp_path_factory.mktemp("two"), relays=["K1"])[0]


def test_another_certificate_is_bad_input(two_agents):
    agents = two_agents["agents"]
    agents = {**agents, "S1": {**agents["S1"], "fingerprint": agents["K1"]["fingerprint"]}}
    with pytest.raises(ProblemError, match="agents: S1: its certificate must have"):
        dc.tunnel({**two_agents, "agents": agents}, "S1:echo", direct=True)


def test_a_key_that_is_no_users_is_bad_input(two_agents, tmp_path):
    write_private_key(tmp_path / "other.key", OTHER)
    tree = {**two_agents, "key": str(tmp_path / "other.key")}
    with pytest.raises(ProblemError, match="not one of the agent's users; write the public key"):
        dc.tunnel(tree, "S1:echo", direct=True)


def test_an_agent_without_tunnels_is_named(two_agents):
    with pytest.raises(ProblemError, match="K1: has no tunnels; write \\[tunnel\\]"):
        dc.tunnel(two_agents, "K1:echo", direct=True)


def test_a_service_that_is_away_is_named(held, tmp_path):
    place = f"127.0.0.1:{held.enter_context(closed_port())}"
    s1 = held.enter_context(running(tunnel_agent(tmp_path, {"ssh": place})))
    with pytest.raises(RefusedError, match="ssh cannot be reached: Connection refused"):
        dc.tunnel(collection_of(tmp_path, s1), "S1:ssh")


def test_a_clock_that_was_set_costs_one_refusal(held, tmp_path, monkeypatch):
    """Tickets are written by the agent's time as it was asked first: it is asked again."""
    from datacollect.transfer.tunnel.tunnel import opener_of

    tree, agents = world(held, tmp_path)
    opener = opener_of(tree, "S1:echo")
    opener.open().opened.wire.close()
    shell = agents[0].agent._shell
    now = shell.now

    def later():
        reading = now()
        return type(reading)(reading.monotonic_s, reading.unix_s + 500)

    monkeypatch.setattr(shell, "now", later)
    opener.open().opened.wire.close()
    assert [each["status"] for each in agents[0].logged("refused")] == [407]


def test_a_user_that_is_taken_out_of_the_file_is_cut_off(held, tmp_path):
    tree, agents = world(held, tmp_path, echoing)
    with dc.tunnel(tree, "S1:echo") as tunnel:
        tunnel.socket.sendall(b"x")
        assert tunnel.socket.recv(1) == b"x"
        path = tmp_path / "S1.toml"
        path.write_text(path.read_text().replace(KEY.public, OTHER.public))
        agents[0].agent.reread()
        with pytest.raises(ConnectionResetError):
            tunnel.socket.recv(1)
    assert agents[0].logged("users")[0]["withdrawn"] == [KEY.public]
    assert agents[0].logged("ended")[0]["why"] == "its user's key was withdrawn"


def test_tunnels_count_in_the_limit_of_the_agent(held, tmp_path):
    """Two of them share it: 300 kB in all at 500 kB/s, of which a tenth of a second's at once."""
    tree, _ = world(held, tmp_path, limits="limits = { rate = 500_000 }")
    begun_s = time.monotonic()

    def fetch() -> None:
        with dc.tunnel(tree, "S1:echo") as tunnel:
            tunnel.socket.sendall(bytes(150_000))

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun_s >= 0.4


def test_no_more_bytes_than_the_table_allows(held, tmp_path):
    tree, agents = world(held, tmp_path, most_bytes=50_000)
    tunnel = dc.tunnel(tree, "S1:echo")
    with suppress(ConnectionError):
        for _ in range(1000):
            tunnel.socket.sendall(bytes(65_536))
    tunnel.close()
    [record] = agents[0].logged("ended")
    assert record["why"] == "its ticket's bytes are spent"
    assert record["up_bytes"] + record["down_bytes"] <= 50_000
