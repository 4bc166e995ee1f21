"""Strangers and liars at an agent's port: refused, logged, and the agent goes on."""

from __future__ import annotations

import base64
import json
import os
import random
import socket
import ssl
import time
from contextlib import ExitStack, suppress

import pytest
from instances.agents import (
    KEY,
    RunningAgent,
    received,
    relay_ticket,
    running,
    session_with,
    source_ticket,
    write_agent,
)
from instances.how_many import many

from datacollect.net.keys import new_private_key, sign_token
from datacollect.net.tickets import ASSERTIONS, Ticket, sign_ticket
from datacollect.net.tls import client_context
from datacollect.transfer.agent.shell import serving

LIMITS = "[limits]\nnew_per_s = 100000\nsessions_per_address = 100000\n"


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """An agent that serves a file beside a secret, and relays to nobody who is there."""
    folder = tmp_path_factory.mktemp("agent")
    path = write_agent(folder, "S1", serve="data", connect_to={"T": "127.0.0.1:1"}, more=LIMITS)
    (folder / "data/a").write_bytes(b"0123456789")
    (folder / "secret").write_text("secret")
    with running(path) as agent:
        yield agent
        # After all that was done to it here, it still serves.
        with session_with(agent) as session:
            assert len(session.inventory(source_ticket("S1")).files) == 1


def plain(agent: RunningAgent, raw: bytes, timeout_s: float = 20.0) -> bytes:
    """Send bytes without TLS; return what comes back."""
    with socket.create_connection(agent.address, timeout=timeout_s) as connection:
        with suppress(OSError):
            connection.sendall(raw)
        return received(connection)


def over_tls(agent: RunningAgent, raw: bytes) -> bytes:
    """Send bytes over TLS, with a good ticket where that is asked; return the answer."""
    raw = raw.replace(b"<ticket>", source_ticket("S1").encode())
    with (
        socket.create_connection(agent.address, timeout=60) as connection,
        client_context().wrap_socket(connection) as tls,
    ):
        tls.sendall(raw)
        with suppress(OSError):
            socket.socket.shutdown(tls, socket.SHUT_WR)
        with suppress(OSError):
            return received(tls)
        return b""


def connect(token: str, target: str = "T:443", more: str = "") -> bytes:
    return (
        f"CONNECT {target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer {token}\r\n{more}\r\n"
    ).encode()


def web_token(algorithm: str) -> str:
    """A JSON web token that names its own algorithm."""
    parts = ({"alg": algorithm, "typ": "JWT"}, {"iss": KEY.public, "aud": "S1"})
    texts = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join([*texts, ""])


def tokens() -> dict[str, str]:
    """Tokens that count nowhere here, by what is wrong with them."""
    now_s, stranger = time.time(), new_private_key()
    good = Ticket(KEY.public, "S1", "relay", "c", now_s, now_s + 30, egress="T", agents=("S1",))
    payload = sign_ticket(good, KEY)
    body = payload.removeprefix("v4.public.")
    return {
        "none": "",
        "nonsense": "abc",
        "forged": sign_ticket(good, stranger),
        "changed": payload[:-5] + ("AAAAA" if payload[-5:] != "AAAAA" else "BBBBB"),
        "expired": relay_ticket(["S1"], "T", issued_s=now_s - 100, expires_s=now_s - 50),
        "misrouted": relay_ticket(["S2"], "T"),
        "of the other kind": source_ticket("S1"),
        "other purpose": sign_token(KEY, b"{}", "something else"),
        "no ticket": sign_token(KEY, b"{}", ASSERTIONS["relay"]),
        "old version": "v2.public." + body,
        "other purpose of paseto": "v4.local." + body,
        "web token, none": web_token("none"),
        "web token, HS256": web_token("HS256"),
        "long": "v4.public." + "A" * 8000,
    }


@pytest.mark.parametrize("name", tokens())
def test_tokens_that_open_no_way(agent, name):
    token = tokens()[name]
    answer = plain(agent, connect(token))
    assert answer.startswith((b"HTTP/1.1 407 ", b"HTTP/1.1 400 "))
    if token:
        assert token.encode() not in answer
        assert all(token not in json.dumps(record) for record in agent.records)


@pytest.mark.parametrize("name", tokens())
def test_tokens_that_read_nothing(agent, name):
    token = tokens()[name]
    token = relay_ticket(["S1"], "T") if name == "of the other kind" else token
    raw = f"GET /v1/inventory HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    assert over_tls(agent, raw.encode()).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT T HTTP/1.1\r\n\r\n",
        b"CONNECT T:443\r\n\r\n",
        b"CONNECT T:443 HTTP/2.0\r\n\r\n",
        b"CONNECT  T:443 HTTP/1.1\r\n\r\n",
        b"CONNECT T:443:443 HTTP/1.1\r\n\r\n",
        b"CONNECT user@T:443 HTTP/1.1\r\n\r\n",
        b"CONNECT http://T:443/ HTTP/1.1\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\nHost: x\n\n\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\r\n Host: folded\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\r\nHost : x\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\r\nHost: x\x00\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"CONNECT T:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"CONNECT T:443 HTTP/1.1\r\nX:" + b" " * 16_000 + b"\x01\r\n\r\n",
        b"\x15" * 16_384,
        b"\r\n\r\n",
    ],
)
def test_requests_that_could_be_read_in_two_ways_are_refused(agent, raw):
    assert plain(agent, raw).startswith(b"HTTP/1.1 400 ")


MALFORMED = (400, 411, 413, 431, 501)
POST = b"POST /v1/confirm HTTP/1.1\r\nHost: x\r\n"
# `over_tls` puts a ticket in: one that is made here would expire before a late test.
GOOD = b"Authorization: Bearer <ticket>\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /v1/agent HTTP/1.1\r\n\r\n",
        b"GET /v1/agent HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /v1/confirm HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/confirm HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        b"GET /v1/agent HTTP/1.1\r\nHost: x\r\nX-\x00: 1\r\n\r\n",
        b"GET /v1/agent HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
        b"GET /v1/inventory HTTP/1.1\r\nHost: x\r\n" + GOOD + GOOD + b"\r\n",
        b"GET /v1/files/a HTTP/1.1\r\nHost: x\r\n"
        + GOOD
        + b"Range: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n",
        b"POST /v1/read HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"
        + b"[" * 5_000_000,
    ],
)
def test_malformed_requests_over_tls_end_the_session(agent, raw, monkeypatch):
    monkeypatch.setattr(serving, "LINGER_S", 30.0)  # whoever sends may be slow
    answer = over_tls(agent, raw + b"GET /v1/agent HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200 OK" not in answer
    assert not answer or answer.startswith(
        tuple(f"HTTP/1.1 {status} ".encode() for status in MALFORMED)
    )


@pytest.mark.parametrize("token", [b"", GOOD])
@pytest.mark.parametrize("target", [b"/v1/agent", b"/v1/read", b"/", b"/v1/files/no", b"x:443"])
def test_a_head_that_is_asked_for_is_answered_by_a_head(agent, target, token):
    """Whatever the answer is, and the session goes on, or ends as it says."""
    head = b"HEAD " + target + b" HTTP/1.1\r\nHost: x\r\n" + token + b"\r\n"
    answer = over_tls(agent, head + b"GET /v1/agent HTTP/1.1\r\nHost: x\r\n\r\n")
    first, _, rest = answer.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 40")
    assert rest.startswith(b"HTTP/1.1 200 ") or (not rest and b"Connection: close" in first)


def test_a_body_by_chunks_smuggles_no_second_request(agent):
    """Both framings at once: read by one of them, the body would hold another request."""
    inner = b"GET /v1/inventory HTTP/1.1\r\nHost: x\r\n" + GOOD + b"\r\n"
    head = b"POST /v1/confirm HTTP/1.1\r\nHost: x\r\n" + GOOD
    raw = head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner
    assert over_tls(agent, raw).count(b"HTTP/1.1 200") == 0


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "a/../../secret",
        "/etc/passwd",
        "%2fetc%2fpasswd",
    ],
)
def test_paths_out_of_the_folder(agent, path):
    raw = b"GET /v1/files/" + path.encode() + b" HTTP/1.1\r\nHost: x\r\n" + GOOD + b"\r\n"
    assert over_tls(agent, raw).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 "))


@pytest.mark.slow
def test_slow_clients_are_let_go_and_hinder_nobody(tmp_path):
    """Fifty that drip a head, fifty that say nothing, fifty that greet and ask for nothing."""
    connections, held = [], ExitStack()
    path = write_agent(tmp_path, "S1", serve="data", more=LIMITS)
    agent = held.enter_context(running(path))
    try:
        for i in range(150):
            connection = socket.create_connection(agent.address, timeout=20)
            connections.append(connection)
            if i % 3 == 1:
                connection.sendall(b"CONNECT T:443 HTTP/1.1\r\nX: ")
            elif i % 3 == 2:
                connection.sendall(b"\x16\x03\x01")
        with session_with(agent) as session:
            assert session.agent().name == "S1"
        for connection in connections:
            connection.sendall(b"a")
        agent.let_pass(agent.agent._shell.head_s)
        for connection in connections:
            received(connection)  # it ends, or this raises TimeoutError
    finally:
        for connection in connections:
            connection.close()
        held.close()


def test_old_tls_is_refused(agent):
    context = client_context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(agent.address, timeout=60) as connection,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(connection)


# Fuzz ----------------------------------------------------------------------------------------


def fuzzed(random_: random.Random, seeds: list[bytes]) -> bytes:
    """Return a request with some bytes changed, cut, doubled, or taken from another."""
    raw = bytearray(random_.choice(seeds))
    for _ in range(random_.randint(1, 6)):
        at = random_.randrange(len(raw) + 1)
        kind = random_.randrange(5)
        if kind == 0 and at < len(raw):
            raw[at] = random_.randrange(256)
        elif kind == 1:
            raw[at:at] = random_.randbytes(random_.randint(1, 8))
        elif kind == 2:
            del raw[at : at + random_.randint(1, 30)]
        elif kind == 3:
            raw[at:at] = raw[random_.randrange(len(raw) + 1) :][:40]
        else:
            raw[at:at] = random_.choice(seeds)[random_.randrange(30) :][:60]
    return bytes(raw)


def fuzz(agent: RunningAgent, n: int, seed: int) -> None:
    """Send fuzzed requests, with TLS and without; nothing may be answered that should not be."""
    random_ = random.Random(seed)
    stale = relay_ticket(["S1"], "T", issued_s=1.0, expires_s=2.0)
    plain_seeds = [connect(stale), connect("v4.public.x", "127.0.0.1:22"), os.urandom(50)]
    body = b'{"segments":[["a",10,1,1,0,10]]}'
    lines = b"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + stale.encode()
    tls_seeds = [
        b"GET /v1/inventory?after=a&most=5 " + lines + b"\r\n\r\n",
        b"POST /v1/read " + lines + f"\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body,
        b"GET /v1/files/a " + lines + b"\r\nRange: bytes=0-4\r\n\r\n",
    ]
    for i in range(n):
        if i % 8:
            raw = fuzzed(random_, plain_seeds)
            with socket.create_connection(agent.address, timeout=20) as connection:
                with suppress(OSError):
                    connection.sendall(raw)
                    connection.shutdown(socket.SHUT_WR)
                answer = received(connection)
        else:
            answer = over_tls(agent, fuzzed(random_, tls_seeds))
        assert not answer.startswith(b"HTTP/1.1 200"), (seed, i)
        assert b"0123456789" not in answer, (seed, i)


def test_some_hundred_fuzzed_requests(agent):
    fuzz(agent, 400, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + many(20)))
def test_many_fuzzed_requests(agent, seed):
    fuzz(agent, 5000, seed)
