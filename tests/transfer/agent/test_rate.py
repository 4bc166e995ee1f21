"""The rate of an agent: one for all that it sends, receives and relays, whoever asks for it."""

import os
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest
from instances.agents import (
    received,
    relay_ticket,
    running,
    session_with,
    source_ticket,
    write_agent,
)
from instances.greetings import SERVER_HELLO, client_hello, greet
from instances.metered import MeteredPort, most_within

from datacollect.errors import ProblemError, TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.protocol.messages import Read, WireSegment

RATE = 2_000_000
# Small buffers: what the counter has not read yet, where it pauses, comes at once thereafter.
BUFFERS = "buffer_bytes = 32_768"
LIMITED = f'[limits]\n{BUFFERS}\nrate = "{RATE * 8 // 10**6} Mbit/s"'
N_BYTES = RATE
READ_BYTES = 4 * 2**20


@pytest.fixture
def source(tmp_path):
    """An agent that serves a file, relays to T, and has a rate."""
    with socket.create_server(("127.0.0.1", 0)) as target:
        target.settimeout(20)
        place = f"127.0.0.1:{target.getsockname()[1]}"
        path = write_agent(tmp_path, "S", serve="data", connect_to={"T": place}, more=LIMITED)
        (tmp_path / "data/file").write_bytes(os.urandom(N_BYTES))
        with running(path) as agent:
            yield agent, target


def fetch(agent, port, n_bytes=N_BYTES):
    """Fetch the file as a collector does, over a port that counts."""
    with session_with(agent, address=port.address) as session:
        [entry] = session.inventory(source_ticket(agent.name)).files
        buffer, got = memoryview(bytearray(READ_BYTES)), 0
        while got < n_bytes:
            session.send_read(Read((WireSegment(entry, got, min(READ_BYTES, n_bytes - got)),)))
            got += session.receive_into(buffer).n_bytes
        return got


def relayed(agent, port, target, n_bytes):
    """Take bytes from the next host through the agent's relay, over a port that counts."""
    hop = RelayHop(agent.name, port.address, relay_ticket([agent.name], "T"))
    with ExitStack() as held:
        near = held.enter_context(open_route([hop], "T", ("unused", 1), deadline=Deadline(10)))
        far = held.enter_context(closing(target.accept()[0]))
        greet(near, far)
        sending = threading.Thread(target=lambda: (far.sendall(bytes(n_bytes)), far.close()))
        sending.start()
        near.settimeout(30)
        n_received = len(received(near))
        sending.join(10)
    return n_received


@pytest.mark.slow
def test_two_collectors_at_once_share_the_rate(source):
    agent, _ = source
    with MeteredPort(agent.address) as port:
        threads = [threading.Thread(target=fetch, args=(agent, port)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sum(n for _, n in port.rows) > 2 * N_BYTES
    assert most_within(port.rows, 1.0) < 1.5 * RATE


@pytest.mark.slow
def test_what_is_served_and_what_is_relayed_share_the_rate(source):
    agent, target = source
    got = []
    with MeteredPort(agent.address) as port:
        threads = [
            threading.Thread(target=lambda: got.append(fetch(agent, port))),
            threading.Thread(target=lambda: got.append(relayed(agent, port, target, N_BYTES))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert got == [N_BYTES, N_BYTES]
    assert most_within(port.rows, 1.0) < 1.5 * RATE


def test_relayed_bytes_of_both_directions_share_the_rate(source):
    """What goes up counts as what comes down: together they take twice as long."""
    agent, target = source
    hop = RelayHop("S", agent.address, relay_ticket(["S"], "T"))
    with (
        open_route([hop], "T", ("unused", 1), deadline=Deadline(10)) as near,
        closing(target.accept()[0]) as far,
    ):
        greet(near, far)
        n_bytes, got, begun_s = RATE // 2, {}, time.monotonic()

        def exchange(end, name):
            sending = threading.Thread(target=end.sendall, args=(bytes(n_bytes),))
            sending.start()
            left = n_bytes
            while left:
                left -= len(end.recv(65536))
            sending.join(10)
            got[name] = time.monotonic() - begun_s

        threads = [
            threading.Thread(target=exchange, args=ends) for ends in ((near, "up"), (far, "down"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    # What may come at once is a tenth of a second of it.
    assert max(got.values()) > 0.85


def test_a_ticket_s_bytes_end_a_relay_with_a_rate_too(source):
    agent, target = source
    hop = RelayHop("S", agent.address, relay_ticket(["S"], "T", most_bytes=10_000))
    with (
        open_route([hop], "T", ("unused", 1), deadline=Deadline(10)) as near,
        closing(target.accept()[0]) as far,
    ):
        greet(near, far)
        left = 10_000 - len(client_hello()) - len(SERVER_HELLO)
        far.sendall(bytes(left))
        near.settimeout(10)
        assert len(received(near)) == left
    [record] = agent.logged("ended")
    assert record["why"] == "its ticket's bytes are spent"


def test_a_half_close_and_an_end_pass_on_under_a_rate(source):
    agent, target = source
    hop = RelayHop("S", agent.address, relay_ticket(["S"], "T"))
    with (
        open_route([hop], "T", ("unused", 1), deadline=Deadline(10)) as near,
        closing(target.accept()[0]) as far,
    ):
        far.settimeout(10)
        greet(near, far)
        near.sendall(b"question")
        near.shutdown(socket.SHUT_WR)
        assert received(far) == b"question"
        far.sendall(b"answer")
        far.close()
        near.settimeout(10)
        assert received(near) == b"answer"
    [record] = agent.logged("ended")
    assert record["why"] == "both sides have ended"


def test_an_agent_that_waits_for_its_turn_ends_when_it_is_told_to(tmp_path):
    path = write_agent(tmp_path, "S", serve="data", more="[limits]\nrate = 1000")
    (tmp_path / "data/file").write_bytes(bytes(1_000_000))
    with running(path) as agent, MeteredPort(agent.address) as port:
        thread = threading.Thread(target=_failing, args=(agent, port), daemon=True)
        thread.start()
        while agent.agent._shell.throttle.owe(0) < 1.0:  # somebody waits
            time.sleep(0.05)
        # It must end within seconds, see `running`.
        agent.agent.stop()
        agent.agent.stop()
        thread.join(20)
        assert not thread.is_alive()


def _failing(agent, port):
    with suppress(TransferError):
        fetch(agent, port, 1_000_000)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("[limits]\nrate = 0", "limits.rate must be a finite number .* > 0, got 0"),
        (
            '[limits]\nrate = "08:00 1 MB/s, 20:00 1 GB/s"',
            'limits.rate: hours of the day need the zone .* add timezone = "Europe/Zurich"',
        ),
        ('timezone = "Europe/Zürich"', "must be an IANA name .* did you mean"),
        ('timezone = "UTC"\n[limits]\nrate = "8:00 fast"', "limits.rate must be a finite number"),
    ],
)
def test_a_rate_that_means_nothing_is_refused(tmp_path, more, message):
    path = write_agent(tmp_path, "S", serve="data", more=more)
    with pytest.raises(ProblemError, match=message):
        AgentConfig.from_file(path)


def test_the_remedy_for_hours_without_a_zone_works(tmp_path):
    more = 'timezone = "Europe/Zurich"\n[limits]\nrate = "08:00 1 MB/s, Sa Su 1 GB/s"'
    path = write_agent(tmp_path, "S", serve="data", more=more)
    assert max(AgentConfig.from_file(path).limits.rate.bytes_per_s) == 1e9


def test_without_a_rate_nothing_is_counted(tmp_path):
    with running(write_agent(tmp_path, "S", serve="data")) as agent:
        assert agent.agent._shell.throttle is None


@pytest.mark.slow
def test_ten_seconds_carry_no_more_than_the_rate_and_five_per_cent_whoever_asks(tmp_path):
    """Two who fetch and one who takes from the next host, 15 s in all, at 32 Mbit/s.

    How much less passes a busy processor says; by a clock of its own `test_throttle` has that.
    """
    rate = 4_000_000
    with socket.create_server(("127.0.0.1", 0)) as target:
        target.settimeout(20)
        place = f"127.0.0.1:{target.getsockname()[1]}"
        path = write_agent(
            tmp_path,
            "S",
            serve="data",
            connect_to={"T": place},
            more=f"[limits]\n{BUFFERS}\nrate = {rate}",
        )
        (tmp_path / "data/file").write_bytes(os.urandom(5 * rate))
        with running(path) as agent, MeteredPort(agent.address) as port:
            acts = [
                lambda: fetch(agent, port, 5 * rate),
                lambda: fetch(agent, port, 5 * rate),
                lambda: relayed(agent, port, target, 5 * rate),
            ]
            threads = [threading.Thread(target=act) for act in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
    assert sum(n for _, n in port.rows) > 15 * rate
    assert most_within(port.rows, 10.0) <= 1.05 * 10 * rate
