"""Blind relays over real sockets: half-closes, resets, budgets, bounded memory."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from contextlib import closing, suppress

import pytest
from instances.agents import (
    received,
    relay_ticket,
    running,
    sent_both_ways,
    session_with,
    source_ticket,
    write_agent,
)
from instances.greetings import SERVER_HELLO, client_hello, greet
from instances.ports import closed_port

from datacollect.errors import RefusedError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.transfer.agent.shell.splicing import pipe_bytes


@pytest.fixture
def target():
    """A listener that stands for the next host."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        yield listener


@pytest.fixture
def relay(tmp_path, target):
    place = f"127.0.0.1:{target.getsockname()[1]}"
    with running(write_agent(tmp_path, "R", connect_to={"T": place})) as agent:
        yield agent


def dial_relay(relay, name="T", **fields) -> socket.socket:
    hop = RelayHop("R", relay.address, relay_ticket(["R"], name, **fields))
    return open_route([hop], name, ("unused", 1), deadline=Deadline(10))


@pytest.fixture
def ends(relay, target):
    """Both ends of a connection through the relay, which have greeted each other."""
    with dial_relay(relay) as near, closing(target.accept()[0]) as far:
        far.settimeout(10)
        greet(near, far)
        yield near, far


def test_a_half_close_passes_on_and_the_other_half_goes_on(ends, relay):
    near, far = ends
    near.sendall(b"question")
    near.shutdown(socket.SHUT_WR)
    assert received(far) == b"question"
    far.sendall(b"answer")
    far.close()
    assert received(near) == b"answer"
    [record] = relay.logged("ended")
    greeted = len(client_hello()), len(SERVER_HELLO)
    assert (record["up_bytes"], record["down_bytes"]) == (8 + greeted[0], 6 + greeted[1])
    assert record["why"] == "both sides have ended"


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("from_near", [True, False])
def test_a_reset_passes_on(ends, relay, from_near):
    one, other = ends if from_near else ends[::-1]
    one.sendall(b"x")
    assert other.recv(1) == b"x"
    reset(one)
    with pytest.raises(ConnectionResetError):
        other.recv(1)
    assert "reset" in relay.logged("ended")[0]["why"]


def test_many_bytes_both_ways_at_once_arrive_as_they_were_sent(ends):
    sent_both_ways(*ends, 5_000_000)


@pytest.mark.slow
def test_a_receiver_that_waits_makes_the_sender_wait(ends):
    """What lies at a relay is bounded by its pipe and the sockets' buffers."""
    near, far = ends
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    near.settimeout(1.0)
    sent = 0
    with suppress(TimeoutError):
        while sent < 200 * 2**20:
            sent += near.send(bytes(2**20))
    assert sent < 40 * 2**20
    near.settimeout(10)
    thread = threading.Thread(target=near.shutdown, args=(socket.SHUT_WR,))
    thread.start()
    n_bytes, buffer = 0, bytearray(2**20)
    while part := far.recv_into(buffer):
        n_bytes += part
    thread.join()
    assert n_bytes == sent


def test_a_tickets_bytes_are_all_that_pass(relay, target):
    """Those of the greetings are among them."""
    with dial_relay(relay, most_bytes=100_000) as near, closing(target.accept()[0]) as far:
        far.settimeout(10)
        n_bytes = greet(near, far) + len(SERVER_HELLO)
        threading.Thread(target=lambda: _send_on(near), daemon=True).start()
        with suppress(ConnectionResetError):
            # A budget that is never spent would let it go on for ever.
            while n_bytes <= 100_000 and (part := far.recv(65536)):
                n_bytes += len(part)
    assert n_bytes <= 100_000
    [record] = relay.logged("ended")
    moved = record["up_bytes"] + record["down_bytes"]
    assert (moved, record["why"]) == (100_000, "its ticket's bytes are spent")


def _send_on(connection: socket.socket) -> None:
    try:
        while True:
            connection.sendall(bytes(65536))
    except OSError:
        pass


def test_a_ticket_cannot_be_used_twice_not_even_after_a_restart(tmp_path, target):
    path = write_agent(tmp_path, "R", connect_to={"T": f"127.0.0.1:{target.getsockname()[1]}"})
    token = relay_ticket(["R"], "T")
    for status in (200, 407):
        with running(path) as relay:
            hop = RelayHop("R", relay.address, token)
            if status == 200:
                open_route([hop], "T", ("unused", 1), deadline=Deadline(10)).close()
                relay.logged("relaying")
            with pytest.raises(RefusedError, match="has been used") as caught:
                open_route([hop], "T", ("unused", 1), deadline=Deadline(10))
            assert caught.value.status == 407


def test_a_next_host_that_is_not_there(tmp_path):
    with (
        closed_port() as port,
        running(write_agent(tmp_path, "R", connect_to={"T": f"127.0.0.1:{port}"})) as relay,
    ):
        with pytest.raises(RefusedError, match="T cannot be reached: Connection refused") as caught:
            dial_relay(relay)
        assert caught.value.status == 502


def test_a_name_that_leads_back_to_this_host_is_refused(tmp_path, target):
    place = f"localhost:{target.getsockname()[1]}"
    with running(write_agent(tmp_path, "R", connect_to={"T": place})) as relay:
        with pytest.raises(RefusedError, match="the name 'localhost' resolves to") as caught:
            dial_relay(relay)
        assert caught.value.status == 502


def test_agents_that_relay_to_each_other_make_no_circle(tmp_path):
    """R1 and R2 relay to each other: whoever asks for a circle needs a ticket that says so."""
    first = write_agent(tmp_path, "R2", connect_to={"R1": "127.0.0.1:1"})
    with running(first) as r2:
        write_agent(tmp_path, "R1", connect_to={"R2": r2.place})
        with running(tmp_path / "R1.toml") as r1:
            hops = [
                RelayHop("R1", r1.address, relay_ticket(["R1"], "R2")),
                RelayHop("R2", r2.address, relay_ticket(["R1", "R2"], "R1")),
            ]
            with pytest.raises(RefusedError, match="loop"):
                open_route(hops, "R1", ("unused", 1), deadline=Deadline(10))


def test_many_sessions_have_small_pipes_and_all_move(relay, target):
    """A hundred connections at once: what 32 MiB of pipes allow each, and every byte arrives."""
    assert pipe_bytes(100) == 131072
    dialled = []
    try:
        for i in range(100):
            near = dial_relay(relay)
            far = target.accept()[0]
            dialled.append((near, far))
            greet(near, far)
            near.sendall(i.to_bytes(2, "big") * 500)
        for i, (near, far) in enumerate(dialled):
            near.shutdown(socket.SHUT_WR)
            assert received(far) == i.to_bytes(2, "big") * 500
    finally:
        for pair in dialled:
            for end in pair:
                end.close()
    relay.logged("ended", n=100)


def test_withdrawn_keys_and_the_end_close_ways(tmp_path, target):
    path = write_agent(tmp_path, "R", connect_to={"T": f"127.0.0.1:{target.getsockname()[1]}"})
    with running(path) as relay:
        with dial_relay(relay) as near, closing(target.accept()[0]):
            path.write_text(path.read_text().replace("ed25519:", "x"))
            relay.agent.reread()
            deadline_s = time.monotonic() + 60
            while not relay.records or relay.records[-1]["what"] != "failed":
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            # A file that cannot be read changes nothing.
            assert (
                "collectors, operators and users could not be read again"
                in relay.records.pop()["why"]
            )
            path.write_text(path.read_text().replace("x", "ed25519:", 1))
            text = path.read_text()
            start = text.index("collectors")
            end = text.index("\n", start)
            path.write_text(text[:start] + "collectors = []" + text[end:])
            relay.agent.reread()
            with pytest.raises(ConnectionResetError):
                near.recv(1)
        assert relay.logged("ended")[0]["why"] == "its collector's key was withdrawn"


def test_a_file_that_cannot_be_read_to_its_end_holds_nobody_up(tmp_path, target):
    """A pipe lies in its place, which nobody writes to, as a disk that hangs would."""
    path = write_agent(tmp_path, "R", connect_to={"T": f"127.0.0.1:{target.getsockname()[1]}"})
    with running(path) as relay:
        text = path.read_text()
        path.unlink()
        os.mkfifo(path)
        relay.agent.reread()
        with dial_relay(relay) as near, target.accept()[0] as far:
            greet(near, far)
            near.sendall(b"goes on")
            assert far.recv(7) == b"goes on"
            # Asked again once the file is there, it counts; what hung before does not.
            pipe = os.open(path, os.O_RDWR)
            path.unlink()
            path.write_text(text[: text.index("collectors")] + "collectors = []\n" + _rest(text))
            relay.agent.reread()
            with pytest.raises(ConnectionResetError):
                near.recv(1)
            os.write(pipe, text.encode())
            os.close(pipe)


def _rest(text):
    """What follows the line of collectors."""
    return text[text.index("\n", text.index("collectors")) + 1 :]


def test_a_relay_that_is_lost_is_noticed_at_once(tmp_path):
    source = write_agent(tmp_path, "S1", serve="data")
    with running(source) as s1:
        relay = write_agent(tmp_path, "R", connect_to={"S1": s1.place}, more="limits={drain_s=0}")
        with running(relay) as r, session_with(s1, r) as session:
            session.inventory(source_ticket("S1"))
            r.agent.stop()
            r.logged("ended")
            with pytest.raises(Exception, match="S1: "):
                session.inventory()


def test_whatever_asking_for_a_name_raises_is_told_and_holds_nobody_up(relay, target, monkeypatch):
    """Not only what is expected: else its session would wait for an answer that never comes."""

    def fails(host, port):
        raise RuntimeError("a mistake")

    monkeypatch.setattr("datacollect.transfer.agent.shell.plain.addresses_of", fails)
    with pytest.raises(RefusedError, match="a mistake"):
        dial_relay(relay)
