"""Greetings: with a ticket nobody reaches a service without TLS; neither side is heard there."""

from __future__ import annotations

import select
import socket
from contextlib import closing, suppress

import pytest
from instances.agents import received, relay_ticket, running, write_agent
from instances.greetings import SERVER_HELLO, client_hello, greet, received_whole

from datacollect.errors import ProblemError
from datacollect.net.connect import ESTABLISHED, connect_request
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.core.greetings import Awaited, Seen, seen_of

HELLO = client_hello()
CONNECT = connect_request("S2", "v4.public.abc_-.def")
# What clients of services begin with, and what only looks like TLS.
PLAIN = {
    "smtp": b"EHLO me\r\nMAIL FROM:<a@b>\r\n",
    "ssh": b"SSH-2.0-x\r\n",
    "redis": b"*1\r\n$8\r\nFLUSHALL\r\n",
    "redis, inline": b"FLUSHALL\r\n",
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "postgresql": bytes.fromhex("0000000804d2162f"),
    "ssl 2": bytes.fromhex("802e0100020015000000100100800200800300800400800500800600400700c0"),
    "alert": bytes.fromhex("15030100020100"),
    "data": bytes.fromhex("1703030005") + b"hello",
    "server's hello": SERVER_HELLO,
    "record of text": b"\x16\x03\x01\x00\x0aFLUSHALL\r\n",
    "hello of another length": HELLO[:6] + b"\0\0\x2a" + HELLO[9:],
    "short hello": b"\x16\x03\x01\x00\x06\x01\0\0\2\3\3\r\nFLUSHALL\r\n",
    "long record": b"\x16\x03\x01\xff\xff\x01\x00\xff\xfb\x03\x03" + b"x" * 70_000,
    "connect with a line more": CONNECT[:-2] + b"X: y\r\n\r\n",
    "connect by basic": CONNECT.replace(b"Bearer v4.public.abc_-.def", b"Basic dGlja2V0OnY0"),
    "connect without a ticket": b"CONNECT S2:443 HTTP/1.1\r\nHost: S2:443\r\n\r\n",
    "connect with any text": CONNECT.replace(b"abc_-", b"abc FLUSHALL"),
    "connect, older": CONNECT.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "connect without an end": b"CONNECT " + b"x" * 20_000,
}


# The rules alone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "then"), [(HELLO, Awaited.TLS_ANSWER), (CONNECT, Awaited.HTTP_ANSWER)]
)
def test_a_greeting_is_seen_once_it_is_whole_and_ends_where_it_ends(data, then):
    for n_bytes in range(1, len(data)):
        assert seen_of(Awaited.GREETING, data[:n_bytes]) is None, n_bytes
    assert seen_of(Awaited.GREETING, data) == Seen(len(data), then)
    assert seen_of(Awaited.GREETING, data + b"more") == Seen(len(data), then)


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_no_greeting_is_none_however_it_comes(name):
    """However little of it has come, nothing of it is passed on."""
    for n_bytes in range(1, len(PLAIN[name])):
        with suppress(ProblemError):
            assert seen_of(Awaited.GREETING, PLAIN[name][:n_bytes]) is None
    with pytest.raises(ProblemError):
        seen_of(Awaited.GREETING, PLAIN[name])


def test_a_change_of_any_byte_before_the_random_ones_is_seen():
    """But for the record's own version, and the lengths' bytes that make the same sum."""
    kept = set()
    for at in range(11):
        with suppress(ProblemError):
            seen_of(Awaited.GREETING, HELLO[:at] + bytes((HELLO[at] ^ 0x41,)) + HELLO[at + 1 :])
            kept.add(at)
    assert kept <= {2}


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (SERVER_HELLO, Seen(0, Awaited.ALL)),
        (bytes.fromhex("15030300020228"), Seen(0, Awaited.ALL)),  # handshake_failure
        (SERVER_HELLO[:5], None),
        (b"\x16", None),
    ],
)
def test_an_answer_of_tls_opens_the_way(data, seen):
    assert seen_of(Awaited.TLS_ANSWER, data) == seen


@pytest.mark.parametrize(
    "data",
    [b"220 mail\r\n", b"-ERR unknown\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x16x", HELLO],
)
def test_an_answer_of_anything_else_does_not(data):
    with pytest.raises(ProblemError, match="does not speak TLS"):
        seen_of(Awaited.TLS_ANSWER, data)


def test_the_answer_of_a_relay_ends_where_its_head_ends():
    for n_bytes in range(1, len(ESTABLISHED)):
        assert seen_of(Awaited.HTTP_ANSWER, ESTABLISHED[:n_bytes]) is None
    whole = Seen(len(ESTABLISHED), Awaited.GREETING)
    assert seen_of(Awaited.HTTP_ANSWER, ESTABLISHED + HELLO) == whole
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
    assert seen_of(Awaited.HTTP_ANSWER, refusal) == Seen(0, Awaited.END)
    for data in (b"220 mail\r\n", b"HTTP/1.1 2000 x\r\n\r\n", b"HTTP/1.1 " + b"x" * 20_000):
        with pytest.raises(ProblemError):
            seen_of(Awaited.HTTP_ANSWER, data)


# A thief with a ticket ------------------------------------------------------------------------


@pytest.fixture
def service():
    """A listener that stands for the next host, which may be anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        yield listener


@pytest.fixture
def relay(tmp_path, service):
    place = f"127.0.0.1:{service.getsockname()[1]}"
    path = write_agent(tmp_path, "R", connect_to={"T": place})
    with running(path) as agent:
        yield agent


@pytest.fixture
def ends(relay, service):
    """The thief's end of a connection through the relay, and the service's."""
    hop = RelayHop("R", relay.address, relay_ticket(["R"], "T"))
    near = open_route([hop], "T", ("unused", 1), deadline=Deadline(10))
    with near, closing(service.accept()[0]) as far:
        near.settimeout(10)
        far.settimeout(10)
        yield near, far


def ended(relay):
    return relay.logged("ended")[0]["why"]


@pytest.mark.parametrize("name", PLAIN)
def test_nothing_is_passed_on_that_is_no_greeting(relay, ends, name):
    near, far = ends
    near.sendall(PLAIN[name])
    told = received(near)
    assert received(far) == b""
    assert told.startswith(b"HTTP/1.1 421 ") or not told  # reset, with what it had not read
    assert "not passed on: " in ended(relay)


def test_a_service_that_speaks_first_is_neither_heard_nor_spoken_to(relay, ends):
    near, far = ends
    far.sendall(b"220 mail.example ESMTP\r\n")
    assert select.select([near], [], [], 10)[0], "nobody has noticed"
    with suppress(OSError):  # it is closed
        near.sendall(HELLO)
    told = received(near)
    assert b"220" not in told
    assert received(far) == b""
    assert "sends first" in ended(relay)


@pytest.mark.parametrize("answer", [b"-ERR unknown command\r\n", b"SSH-2.0-OpenSSH\r\n", b"\0"])
def test_a_service_that_does_not_answer_by_tls_gets_one_greeting_and_is_not_heard(
    relay, ends, answer
):
    near, far = ends
    near.sendall(HELLO + b"\r\nFLUSHALL\r\n")
    assert received_whole(far, len(HELLO)) == HELLO
    assert select.select([far], [], [], 0.3) == ([], [], []), "more than the greeting was passed on"
    far.sendall(answer)
    assert received(near) == b""
    assert received(far) == b""
    assert "the next host does not speak TLS" in ended(relay)


def test_what_follows_a_greeting_passes_once_tls_has_answered(ends):
    near, far = ends
    near.sendall(HELLO + b"early")
    assert received_whole(far, len(HELLO)) == HELLO
    far.sendall(SERVER_HELLO + b"and more")
    assert received_whole(far, 5) == b"early"
    near.shutdown(socket.SHUT_WR)
    assert received(far) == b""
    far.sendall(b".")
    far.close()
    assert received(near) == SERVER_HELLO + b"and more."


def test_greetings_pass_however_they_are_cut(ends):
    near, far = ends
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(0, len(HELLO), 97):
        near.sendall(HELLO[at : at + 97])
    assert received_whole(far, len(HELLO)) == HELLO
    for byte in SERVER_HELLO[:9]:
        far.sendall(bytes((byte,)))
    assert received_whole(near, 9) == SERVER_HELLO[:9]


@pytest.mark.slow
@pytest.mark.parametrize("begins", [b"", HELLO[:-1], b"CONNECT T"])
def test_who_drips_is_let_go(relay, ends, begins):
    near, far = ends
    near.sendall(begins)
    relay.let_pass(relay.agent._shell.head_s)
    assert received(near) == b""
    assert received(far) == b""
    assert ended(relay) == "no greeting from the client in time"


@pytest.mark.parametrize("begins", [b"", HELLO[:-1]])
def test_who_ends_without_a_greeting_has_said_nothing(relay, ends, begins):
    near, far = ends
    near.sendall(begins)
    near.shutdown(socket.SHUT_WR)
    if begins:  # the rest of it may still be on its way
        relay.let_pass(relay.agent._shell.head_s)
    assert received(far) == b""
    assert "without a greeting" in ended(relay) if not begins else relay.logged("ended")


def test_a_next_host_that_ends_is_told(relay, ends):
    near, far = ends
    near.sendall(HELLO)
    received_whole(far, len(HELLO))
    far.close()
    assert received(near) == b""
    assert "the next host closed the connection" in ended(relay)


def test_a_client_that_goes_before_it_is_answered_is_forgotten_at_once(relay, ends):
    near, far = ends
    near.sendall(HELLO)
    received_whole(far, len(HELLO))
    near.close()
    assert received(far) == b""
    assert "the client closed the connection" in ended(relay) or "failed" in ended(relay)


# Requests to connect onwards ------------------------------------------------------------------


def test_a_web_server_without_tls_says_no_more_than_how_it_refuses(relay, ends):
    """Its answer passes; what is asked over the same connection afterwards does not."""
    near, far = ends
    near.sendall(CONNECT)
    assert received_whole(far, len(CONNECT)) == CONNECT
    refusal = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 2\r\n\r\nno"
    far.sendall(refusal)
    assert received_whole(near, len(refusal)) == refusal
    near.sendall(b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n")
    assert select.select([far], [], [], 0.3) == ([], [], [])
    far.close()
    received(near)
    relay.logged("ended")


def test_after_a_relays_answer_a_greeting_is_asked_for_again(relay, ends):
    near, far = ends
    near.sendall(CONNECT)
    received_whole(far, len(CONNECT))
    far.sendall(ESTABLISHED)
    assert received_whole(near, len(ESTABLISHED)) == ESTABLISHED
    near.sendall(PLAIN["http"])
    assert received(far) == b""
    assert "this agent passes only TLS and CONNECT requests" in ended(relay)


def test_a_chain_of_relays_ends_in_tls(ends):
    near, far = ends
    for _ in range(3):
        near.sendall(CONNECT)
        assert received_whole(far, len(CONNECT)) == CONNECT
        far.sendall(ESTABLISHED)
        assert received_whole(near, len(ESTABLISHED)) == ESTABLISHED
    greet(near, far)


def test_a_relays_answer_and_a_clients_greeting_may_be_there_at_once(ends):
    near, far = ends
    near.sendall(CONNECT + HELLO)
    assert received_whole(far, len(CONNECT)) == CONNECT
    far.sendall(ESTABLISHED)
    assert received_whole(far, len(HELLO)) == HELLO
    far.sendall(SERVER_HELLO)
    whole = ESTABLISHED + SERVER_HELLO
    assert received_whole(near, len(whole)) == whole


# Servers without TLS --------------------------------------------------------------------------


def test_to_a_named_server_without_tls_everything_passes(tmp_path, service):
    place = f"127.0.0.1:{service.getsockname()[1]}"
    path = write_agent(tmp_path, "R", connect_to={"T": place}, more='plain_http_to = ["T"]')
    with running(path) as agent:
        hop = RelayHop("R", agent.address, relay_ticket(["R"], "T"))
        near = open_route([hop], "T", ("unused", 1), deadline=Deadline(10))
        with near, closing(service.accept()[0]) as far:
            far.sendall(b"first")
            assert near.recv(5) == b"first"
            agent.let_pass(agent.agent._shell.head_s)  # who is silent there is no thief
            near.sendall(PLAIN["http"])
            assert received_whole(far, len(PLAIN["http"])) == PLAIN["http"]


def test_only_hosts_that_are_connected_to_are_named_so(tmp_path):
    path = write_agent(
        tmp_path, "R", connect_to={"mirror": "t.example:80"}, more='plain_http_to = ["miror"]'
    )
    with pytest.raises(
        ProblemError, match=r"plain_http_to must name hosts of connect_to.*'mirror'"
    ):
        AgentConfig.from_file(path)


def test_many_greet_at_once(relay, service):
    """Some as they should, some not: none holds up another."""
    hop = [RelayHop("R", relay.address, relay_ticket(["R"], "T")) for _ in range(30)]
    pairs = []
    for each in hop:
        near = open_route([each], "T", ("unused", 1), deadline=Deadline(10))
        pairs.append((near, service.accept()[0]))
    good = []
    for number, (near, far) in enumerate(pairs):
        far.settimeout(10)
        near.settimeout(10)
        if number % 2:
            good.append(greet(near, far))
        else:
            near.sendall(PLAIN["redis"])
            assert received(far) == b""
    assert len(good) == 15
    for pair in pairs:
        for end in pair:
            end.close()
    relay.logged("ended", n=30)
