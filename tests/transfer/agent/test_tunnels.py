"""Tunnels at an agent's door: strangers, silent ones, half-closed ones, odd greetings."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time

import pytest
from instances.agents import KEY, received, running, write_agent
from instances.tunnels import counting, echoing, service, tunnel_agent

from datacollect.errors import RefusedError, TransferError
from datacollect.net.agent_entries import AgentEntry
from datacollect.net.connect import connect_request
from datacollect.net.deadline import Deadline
from datacollect.net.keys import PrivateKey
from datacollect.net.tickets import Ticket, sign_ticket
from datacollect.net.tls import client_context
from datacollect.transfer.agent.shell.tunnelling import TunnelSession
from datacollect.transfer.protocol.tunnel import TUNNEL_PROTOCOL
from datacollect.transfer.tunnel.asking import ask_for_tunnel

STRANGER = PrivateKey(b"whom none of the agents here has")


def pass_ticket(key=KEY, kind="tunnel", **fields) -> str:
    now_s = time.time()
    values = {"issued_s": now_s, "expires_s": now_s + 50, "egress": "echo", **fields}
    return sign_ticket(Ticket(key.public, "S1", kind, "tests", **values), key)


def asked(agent, token: str, name: str = "echo"):
    entry = AgentEntry("S1", agent.address, agent.agent.fingerprint)
    tls = client_context(protocol=TUNNEL_PROTOCOL)
    return ask_for_tunnel([], entry, tls, name, token, Deadline(10))


@pytest.fixture
def place():
    with service(echoing) as place:
        yield place


@pytest.fixture
def agent(tmp_path, place):
    with running(tunnel_agent(tmp_path, {"echo": place})) as agent:
        yield agent


def greeted(agent, protocol=TUNNEL_PROTOCOL) -> ssl.SSLSocket:
    plain = socket.create_connection(agent.address, timeout=10)
    return client_context(protocol=protocol).wrap_socket(plain)


def status_of(tls: ssl.SSLSocket) -> bytes:
    return received(tls).split(b" ")[1]


@pytest.mark.parametrize("kind", ["relay", "source"])
@pytest.mark.parametrize("key", [KEY, STRANGER], ids=["ours", "stranger"])
def test_only_tunnel_tickets_of_users_open_one(agent, kind, key):
    with pytest.raises(RefusedError, match="the ticket does not count") as caught:
        asked(agent, pass_ticket(key, kind))
    assert caught.value.status == 407


def test_a_ticket_opens_one_tunnel(agent):
    token = pass_ticket()
    asked(agent, token).wire.close()
    with pytest.raises(RefusedError, match="it has been used"):
        asked(agent, token)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n",
        b"CONNECT echo HTTP/1.1\r\n\r\n",
        b"\r\n\r\n",
        b"\x00" * 100 + b"\r\n\r\n",
        b"CONNECT echo HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        b"A" * 16_384,
    ],
)
def test_what_is_no_request_with_a_ticket_is_refused(agent, request_):
    with greeted(agent) as tls:
        tls.sendall(request_)
        assert status_of(tls) in (b"400", b"407")


def test_who_speaks_before_the_answer_is_not_heard(agent):
    """Nothing reaches the service that came before its ticket was judged."""
    with greeted(agent) as tls:
        tls.sendall(connect_request("echo", pass_ticket()) + b"more")
        assert received(tls) == b""
    assert not [record for record in agent.records if record["what"] == "relaying"]


def test_http_is_served_beside_tunnels(agent):
    with greeted(agent, "http/1.1") as tls:
        tls.sendall(b"GET /v1/agent HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert received(tls).startswith(b"HTTP/1.1 200 ")
    with greeted(agent, "something/else") as tls:
        assert tls.selected_alpn_protocol() is None
        tls.sendall(b"GET /v1/agent HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert received(tls).startswith(b"HTTP/1.1 200 ")


def test_a_greeting_in_many_small_parts_is_one(agent):
    """Its end comes late: nobody looks again and again, and it is a tunnel all the same."""
    tls = client_context(protocol=TUNNEL_PROTOCOL)
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    stream = tls.wrap_bio(into, out, server_hostname="s1")
    with contextlib.suppress(ssl.SSLWantReadError):
        stream.do_handshake()
    hello = out.read()
    with socket.create_connection(agent.address, timeout=10) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (hello[:1], hello[1:4], hello[4:7], hello[7:100], hello[100:]):
            plain.sendall(part)
            time.sleep(0.02)
        while True:
            into.write(plain.recv(65_536))
            with contextlib.suppress(ssl.SSLWantReadError):
                stream.do_handshake()
                break
    assert stream.selected_alpn_protocol() == TUNNEL_PROTOCOL


@pytest.mark.parametrize("n_bytes", [1, 3, 5, 50])
def test_a_greeting_that_is_broken_off_ends_the_session(agent, n_bytes):
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60)
    with socket.create_connection(agent.address, timeout=10) as plain:
        plain.sendall(hello[:n_bytes])
        plain.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while plain.recv(100):
                pass


def test_a_tunnel_that_is_cut_off_in_its_request_leaves_nothing(agent):
    for part in (b"", b"CONNECT ec"):
        with greeted(agent) as tls:
            tls.sendall(part)
    deadline_s = time.monotonic() + 60
    while agent.agent._shell._core.sessions and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert agent.agent._shell._core.sessions == {}


@pytest.mark.slow
def test_a_thousand_silent_connections_leave_users_their_tunnels(tmp_path, place):
    """A part without a byte, others after TLS's greeting, or within their request."""
    limits = "limits = { new_per_s = 1e6 }"
    path = tunnel_agent(tmp_path, {"echo": place}, limits=limits)
    with running(path) as agent, contextlib.ExitStack() as open_:
        opened = asked(agent, pass_ticket())
        open_.callback(opened.wire.close)
        for i in range(1000):
            connection = open_.enter_context(socket.socket())
            connection.bind((f"127.0.0.{2 + i % 2}", 0))
            connection.settimeout(20)
            connection.connect(agent.address)
            if i % 10 == 0:
                tls = client_context(protocol=TUNNEL_PROTOCOL).wrap_socket(connection)
                open_.enter_context(tls)
                tls.sendall(b"CONNECT e" if i % 20 == 0 else b"")
            elif i % 10 == 1:
                connection.sendall(b"\x16\x03\x01\x02")
        for _ in range(3):
            other = asked(agent, pass_ticket())
            other.wire.close()
        # The one that was open before goes on.
        opened.stream.write(b"still there")
        opened.wire.sendall(opened.stream.to_send())
        opened.wire.settimeout(10)
        opened.stream.feed(opened.wire.recv(65_536))
        block = memoryview(bytearray(100))
        assert bytes(block[: opened.stream.read_into(block)]) == b"still there"


@pytest.mark.slow
def test_three_hundred_half_closed_tunnels_end_by_themselves(tmp_path):
    """Their service goes on for ever, and says nothing: only time ends them."""

    is_over = threading.Event()

    def silent(one: socket.socket) -> None:
        while one.recv(100):
            pass
        is_over.wait(60)

    limits = "limits = { new_per_s = 1e6 }"
    with (
        service(silent) as place,
        running(
            tunnel_agent(
                tmp_path, {"echo": place}, limits=limits, most_connections=300, half_idle_s=2.0
            )
        ) as agent,
        contextlib.ExitStack() as open_,
    ):
        for _ in range(300):
            opened = asked(agent, pass_ticket())
            open_.callback(opened.wire.close)
            opened.stream.end()
            opened.wire.sendall(opened.stream.to_send())
        records = agent.logged("ended", within_s=60, n=300)
        assert {record["why"] for record in records} == {"no data for too long"}
        # And their places are free again.
        asked(agent, pass_ticket()).wire.close()
        is_over.set()


def test_more_tunnels_than_the_table_allows_are_told_so(tmp_path, place):
    with running(tunnel_agent(tmp_path, {"echo": place}, most_connections=1)) as agent:
        first = asked(agent, pass_ticket())
        with pytest.raises(RefusedError, match="as many tunnels are open as") as caught:
            asked(agent, pass_ticket())
        assert caught.value.status == 429
        first.wire.close()


def test_damaged_bytes_are_a_reset_to_the_service(tmp_path):
    """What a relay changes is noticed, and never handed on."""
    came = []

    def taking(one: socket.socket) -> None:
        try:
            while data := one.recv(100):
                came.append(data)
            came.append(b"end")
        except ConnectionResetError:
            came.append(b"reset")

    with service(taking) as place, running(tunnel_agent(tmp_path, {"echo": place})) as agent:
        opened = asked(agent, pass_ticket())
        opened.stream.write(b"words")
        opened.wire.sendall(opened.stream.to_send())
        opened.stream.write(b"more words")
        raw = bytearray(opened.stream.to_send())
        raw[-1] ^= 1
        opened.wire.sendall(raw)
        agent.logged("ended")
        opened.wire.close()
        until_s = time.monotonic() + 60
        while came[-1:] != [b"reset"] and time.monotonic() < until_s:
            time.sleep(0.01)
        assert b"".join(came) in (b"wordsreset", b"reset")


def test_an_agent_that_was_never_asked_for_tunnels_is_no_tunnel(tmp_path):
    with (
        running(write_agent(tmp_path, "S1", serve="data")) as agent,
        pytest.raises(TransferError, match="has no tunnels"),
    ):
        asked(agent, pass_ticket())


def test_half_closed_by_the_service(tmp_path):
    """It answers and ends; the client goes on, and is heard."""
    with service(counting) as place, running(tunnel_agent(tmp_path, {"echo": place})) as agent:
        opened = asked(agent, pass_ticket())
        opened.stream.end()
        opened.wire.sendall(opened.stream.to_send())
        agent.logged("relaying")
        data, block = b"", memoryview(bytearray(100))
        while not opened.stream.is_ended:
            n_bytes = opened.stream.read_into(block)
            data += block[:n_bytes]
            if not n_bytes and not opened.stream.is_ended:
                opened.stream.feed(opened.wire.recv(65_536))
        opened.wire.close()
        assert data == b"hello\ngot 0"
        assert agent.logged("ended")[0]["why"] == "both sides have ended"


def test_a_client_that_is_gone_before_its_answer_is_no_end_to_the_service(tmp_path, monkeypatch):
    """The service has been connected to; that nobody speaks to it then is a reset."""
    over = threading.Event()

    def waiting(one: socket.socket) -> None:
        try:
            one.recv(1)
        except ConnectionResetError:
            over.set()

    def fails(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(TunnelSession, "_say", fails)
    with service(waiting) as place, running(tunnel_agent(tmp_path, {"echo": place})) as agent:
        with pytest.raises(TransferError):
            asked(agent, pass_ticket())
        assert over.wait(10)
