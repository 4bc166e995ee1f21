"""Many strangers at a time, silent, dripping, talkative: others are served, memory is small."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import NO_PROC
from instances.agents import received, running, session_with, source_ticket, write_agent

from datacollect.net.tls import client_context
from datacollect.transfer.agent.shell import plain, serving
from datacollect.transfer.sources.agent.session import connect

POST = b"POST /v1/confirm HTTP/1.1\r\nHost: x\r\n"


def greeted(address) -> ssl.SSLSocket:
    return client_context().wrap_socket(socket.create_connection(address, timeout=20))


def test_silent_connections_of_one_address_leave_others_their_room(tmp_path):
    """1100 of them, with the usual limits: 1000 in all, 600 from one address."""
    path = write_agent(tmp_path, "S1", serve="data", more="limits = { new_per_s = 1e6 }\n")
    with running(path) as agent, contextlib.ExitStack() as open_:
        for _ in range(1100):
            connection = open_.enter_context(socket.socket())
            connection.settimeout(20)
            with contextlib.suppress(ConnectionResetError):  # refused already
                connection.connect(agent.address)
        # All were counted when the last of them is refused.
        agent.logged("refused")
        with socket.socket() as other:
            other.bind(("127.0.0.2", 0))
            other.settimeout(20)
            other.connect(agent.address)
            with client_context().wrap_socket(other) as tls:
                tls.sendall(b"GET /v1/agent HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert received(tls).startswith(b"HTTP/1.1 200 ")


def test_silent_connections_of_two_addresses_give_way_to_whoever_comes(tmp_path):
    """1000 of them, all that the usual limits allow for."""
    path = write_agent(tmp_path, "S1", serve="data", more="limits = { new_per_s = 1e6 }\n")
    with running(path) as agent, contextlib.ExitStack() as open_:

        def come(host: str) -> socket.socket:
            connection = open_.enter_context(socket.socket())
            connection.bind((host, 0))
            connection.settimeout(20)
            connection.connect(agent.address)
            return connection

        silent = [come(f"127.0.0.{2 + i % 2}") for i in range(1000)]
        for host in ("127.0.0.2", "127.0.0.4", "127.0.0.4"):
            tls = open_.enter_context(client_context().wrap_socket(come(host)))
            tls.sendall(b"GET /v1/agent HTTP/1.1\r\nHost: x\r\n\r\n")
            assert tls.recv(100).startswith(b"HTTP/1.1 200 ")
        assert {each["why"] for each in agent.logged("refused")} == {
            "it was idle, and its place was needed"
        }
        # The oldest is the first.
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""


def test_whoever_hears_a_reason_without_tls_above_the_limit(tmp_path):
    more = "limits = { sessions_per_address = 2 }\n"
    with (
        running(
            write_agent(tmp_path, "R", serve="data", connect_to={"T": "127.0.0.1:1"}, more=more)
        ) as agent,
        contextlib.ExitStack() as open_,
    ):
        for _ in range(2):
            known = open_.enter_context(greeted(agent.address))
            token = source_ticket("R").encode()
            known.sendall(
                b"GET /v1/inventory HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                + token
                + b"\r\n\r\n"
            )
            assert known.recv(20).startswith(b"HTTP/1.1 200 ")
        with socket.create_connection(agent.address, timeout=10) as third:
            third.sendall(b"CONNECT T:443 HTTP/1.1\r\n\r\n")
            answer = received(third)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"too many connections from there; try again later" in answer


@pytest.mark.slow
def test_whoever_drips_is_let_go_in_time(tmp_path):
    """A byte every 0.1 s, which no time-out of a system call notices; five seconds for all of it.

    Whom the agent does not let go drips on for a minute, and says so.
    """
    path = write_agent(tmp_path, "S1", serve="data", more="limits = { head_s = 5.0 }\n")
    with running(path) as agent:
        known = greeted(agent.address)
        known.sendall(
            b"GET /v1/inventory HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            + source_ticket("S1").encode()
            + b"\r\n\r\n"
        )
        assert known.recv(20).startswith(b"HTTP/1.1 200 ")
        drips = {
            "head": (socket.create_connection(agent.address), b"C"),
            "greeting": (socket.create_connection(agent.address), b"\x16\x03\x01\x02\x00\x01"),
            "first request": (greeted(agent.address), b"GET / HTTP/1.1\r\nX: "),
            "second request": (known, b"GET / HTTP/1.1\r\nX: "),
        }
        let_go, until_s = {}, time.monotonic() + 60

        def drip(name, connection, begin):
            let_go[name] = True  # also where the agent resets the connection
            with contextlib.suppress(OSError):
                connection.sendall(begin)
                while time.monotonic() < until_s:
                    connection.settimeout(0.1)
                    try:
                        if not connection.recv(65536):
                            break
                    except TimeoutError:
                        connection.sendall(b"a")
                else:
                    let_go[name] = False
            connection.close()

        threads = [
            threading.Thread(target=drip, args=(name, *what)) for name, what in drips.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert let_go == dict.fromkeys(drips, True)


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    path = write_agent(folder, "S1", serve="data")
    (folder / "data/a").write_bytes(b"0123456789")
    with running(path) as agent:
        yield agent


@pytest.mark.parametrize("more", [b"", b"Authorization: Bearer v4.public.x\r\n"])
@pytest.mark.parametrize("expects", [b"", b"Expect: 100-continue\r\n"])
def test_no_body_is_waited_for_before_a_ticket_counts(agent, more, expects):
    """It is announced and never sent: the refusal comes at once."""
    with greeted(agent.address) as tls:
        tls.sendall(POST + more + expects + b"Content-Length: 1000000\r\n\r\n")
        answer = received(tls)
    assert answer.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("target", [b"/v1/agent", b"/v1/nothing", b"/v1/files/a"])
def test_no_body_is_waited_for_where_none_has_a_place(agent, target):
    with greeted(agent.address) as tls:
        tls.sendall(b"PUT " + target + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n")
        assert received(tls).split(b" ")[1] in (b"404", b"405")


def test_who_sends_a_body_without_a_ticket_still_reads_why_it_is_refused(agent, monkeypatch):
    monkeypatch.setattr(serving, "LINGER_S", 30.0)  # whoever sends may be slow
    with greeted(agent.address) as tls:
        tls.sendall(POST + b"Content-Length: 1000000\r\n\r\n" + b"[" * 1_000_000)
        assert b"the ticket does not count: no ticket is given" in received(tls)


def test_a_body_in_many_small_parts_arrives(agent):
    body = b'{"files":[["a",10,1,1]]}'
    token = f"Authorization: Bearer {source_ticket('S1')}\r\n".encode()
    with greeted(agent.address) as tls:
        tls.sendall(POST + token + b"Connection: close\r\n")
        tls.sendall(b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n")
        for i in range(len(body)):
            tls.sendall(body[i : i + 1])
        answer = received(tls)
    assert answer.endswith(b'{"changed":["a"],"gone":[],"unreadable":[]}')


def resident_mb(number: int) -> float:
    """Return what a process has in memory."""
    status = Path(f"/proc/{number}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason=NO_PROC)
@pytest.mark.parametrize(
    "begin",
    [
        POST + b"Content-Length: 1048576\r\n\r\n" + b"[" * 2**20,
        POST + b"X: " + b"a" * 15_000,
    ],
    ids=["a megabyte of body", "a head without end"],
)
def test_strangers_take_little_memory(tmp_path, begin):
    """300 at a time, each with a megabyte that it wants read: 300 MB, were they believed."""
    path = write_agent(tmp_path, "S1", serve="data")
    command = [sys.executable, "-m", "datacollect", "agent", str(path), "--json"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
        contextlib.ExitStack() as open_,
    ):
        try:
            address = "127.0.0.1", int(json.loads(process.stdout.readline())["url"].split(":")[-1])
            greeted(address).close()  # what is made once is there
            before_mb = resident_mb(process.pid)

            def come():
                with contextlib.suppress(OSError):
                    tls = open_.enter_context(greeted(address))
                    tls.sendall(begin)

            threads = [threading.Thread(target=come) for _ in range(300)]
            for thread in threads:
                thread.start()
            most_mb = before_mb
            while any(thread.is_alive() for thread in threads):
                most_mb = max(most_mb, resident_mb(process.pid))
                time.sleep(0.01)
            most_mb = max(most_mb, resident_mb(process.pid))
        finally:
            process.kill()
    assert most_mb - before_mb < 40


class FullListener:
    """A listener for whose connections no file descriptor is left."""

    def __init__(self, listener):
        self.fileno, self.close, self.tried_s = listener.fileno, listener.close, []

    def accept(self):
        self.tried_s.append(time.monotonic())
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.slow
def test_an_agent_out_of_file_descriptors_tries_again_now_and_then(tmp_path):
    """About twice a second, with a line in the log each time, and serves as soon as it can."""
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        listener = agent.agent._shell._listener
        full = agent.agent._shell._listener = FullListener(listener)
        with socket.create_connection(agent.address, timeout=10) as connection:
            failures = agent.logged("failed", n=3)
            agent.agent._shell._listener = listener
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert received(connection).startswith(b"HTTP/1.1 400 ")
        # However late each of them was, none came sooner than half a second after the last.
        assert all(b - a > 0.4 for a, b in pairwise(full.tried_s))
        assert len(agent.logged("failed")) == len(full.tried_s)
        assert failures[0]["why"].startswith("cannot accept: Too many open files: this process may")
        assert "ulimit -" in failures[0]["why"]
        agent.records.clear()


# IPv6 ----------------------------------------------------------------------------------------


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


NO_IPV6 = "no IPv6 here: its loopback is switched off"
needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason=NO_IPV6)


@needs_ipv6
@pytest.mark.parametrize("listen", ["[::1]:0", "[::]:0"])
def test_an_agent_listens_by_ipv6(tmp_path, listen):
    path = write_agent(tmp_path, "S1", serve="data", more="limits = { sessions_per_address = 1 }\n")
    path.write_text(path.read_text().replace("127.0.0.1:0", listen))
    (tmp_path / "data/a").write_bytes(b"x")
    with running(path) as agent:
        port = agent.address[1]
        assert agent.agent.url == f"https://{listen[:-2]}:{port}"
        session = connect(
            [], "S1", ("::1", port), client_context(), agent.agent.fingerprint, timeout_s=10
        )
        with session:
            [file] = session.inventory(source_ticket("S1")).files
            assert file.path == "a"
            with pytest.raises(OSError):  # noqa: PT011 - reset, or at an end, as it comes
                greeted(("::1", port))
        records = agent.logged("refused")
        assert {record["from"] for record in records} == {"::1"}


def test_the_zone_of_an_address_reaches_the_kernel():
    """Without its number a link-local address is none: the kernel answers EINVAL."""
    assert plain._numeric(("fe80::1%lo", 5)) == ("fe80::1", 5, 0, socket.if_nametoindex("lo"))
    assert plain._numeric(("192.0.2.1", 5)) == ("192.0.2.1", 5)


@needs_ipv6
def test_a_relay_reaches_the_next_host_by_ipv6(tmp_path):
    path = write_agent(tmp_path, "S1", serve="data")
    path.write_text(path.read_text().replace("127.0.0.1:0", "[::1]:0"))
    with running(path) as s1:
        relay = write_agent(tmp_path, "R", connect_to={"S1": f"[::1]:{s1.address[1]}"})
        with running(relay) as r, session_with(s1, r) as session:
            assert session.agent().name == "S1"
