"""Packet pairs between agents over real sockets: what they tell, and to whom nothing is sent."""

from __future__ import annotations

import errno
import itertools
import json
import os
import socket
import time
from contextlib import closing, contextmanager

import pytest
from instances.agents import running, write_agent
from instances.measuring import OPERATOR, entry_of, measure_table, measuring
from instances.ports import free_port
from measuring.operator.modelled_wire import ModelledWire

from datacollect.measuring.agent import pair_receiving, pair_sending
from datacollect.measuring.agent.handlers import Measuring
from datacollect.measuring.agent.measure_config import measure_of
from datacollect.measuring.operator.packet_pairs import PairsSettings
from datacollect.measuring.operator.pair_tests import measure_pair
from datacollect.transfer.agent.config.file import AgentConfig

MBIT = 125_000.0
GREETINGS, GREETING = 6, 2**31


def udp_socket() -> socket.socket:
    made = socket.socket(type=socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made


def came(listener: socket.socket) -> list[bytes]:
    """Return all packets that have come."""
    found = []
    listener.settimeout(0.2)
    try:
        while True:
            found.append(listener.recv(2048))
    except TimeoutError:
        return found


@contextmanager
def pair(folder, sender=None, receiver=None):
    """S sends to D; keywords for their tables [measure]."""
    receiver = {"udp_port": free_port(), **(receiver or {})}
    with (
        measuring(folder, "D", **receiver) as to,
        measuring(folder, "S", {"D": to.place}, **(sender or {})) as by,
    ):
        yield by, to


def measured(by, to, **settings):
    return measure_pair(entry_of(by), entry_of(to), OPERATOR, PairsSettings(**settings))


def said(row) -> dict:
    return json.loads(row["settings"])


def used_bytes(agent) -> int:
    folder = agent.agent._config.file.parent
    rows = json.loads((folder / f"{agent.name}.measured").read_text())
    return sum(n_bytes for _, _, n_bytes in rows)


# What they tell ------------------------------------------------------------------------------


def test_an_idle_wire_is_all_available(tmp_path, monkeypatch):
    """1500 bytes take 2.4 ms at 5 Mbit/s; nobody is between the two of any pair."""
    ModelledWire(monkeypatch, 5 * MBIT)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert (row["ended"], row["tool"], row["loss"]) == ("done", "pairs", 0.0)
        assert row["capacity_bytes_per_s"] == pytest.approx(5 * MBIT)
        for column in ("", "low_", "high_"):
            found = row[f"bandwidth_{column}bytes_per_s"]
            assert found == pytest.approx(5 * MBIT, rel=0.01)
        assert (said(row)["pairs"], said(row)["packet_bytes"]) == (100, 1500)
        # Payload of 130 pairs and of the greetings, at both ends.
        assert used_bytes(by) == used_bytes(to) == 260 * 1472 + 3 * (1472 + 1252)


def between_six_of_ten(number) -> float:
    """Others' 1500 bytes between the packets of six pairs of ten, at 5 Mbit/s; not back to back."""
    is_second = number % 2 == 1
    return 0.0024 if 60 <= number < GREETING and is_second and (number // 2) % 10 < 6 else 0.0


@pytest.mark.parametrize(("half_width", "fewest", "most"), [(0.15, 240, 300), (0.1, 540, 640)])
def test_what_others_take_is_not_available(tmp_path, monkeypatch, half_width, fewest, most):
    """Of each ten pairs six have a packet of others between their two: 40 % are left.

    For a half of 15 % of these the interval needs 1.96² · 0.24 ÷ (0.15 · 0.4)² pairs: 256; for one
    of 10 % 576.
    """
    ModelledWire(monkeypatch, 5 * MBIT, others=between_six_of_ten)
    with pair(tmp_path) as (by, to):
        row = measured(by, to, half_width=half_width, seconds=60.0)
        assert row["bandwidth_bytes_per_s"] == pytest.approx(0.4 * 5 * MBIT, rel=0.05)
        width = row["bandwidth_high_bytes_per_s"] - row["bandwidth_bytes_per_s"]
        assert 0.9 * half_width < width / row["bandwidth_bytes_per_s"] <= 1.01 * half_width
        assert fewest <= said(row)["pairs"] <= most


def test_the_bytes_end_it_before_the_interval_is_narrow(tmp_path, monkeypatch):
    ModelledWire(monkeypatch, 5 * MBIT, others=between_six_of_ten)
    with pair(tmp_path) as (by, to):
        row = measured(by, to, most_bytes=500_000)
        assert row["ended"] == "done"
        assert said(row)["pairs"] < said(row)["pairs_needed"]
        assert used_bytes(by) <= 500_000


def test_bytes_for_too_few_pairs_are_said(tmp_path, monkeypatch):
    """50 000 bytes are greetings of 8172 and 14 pairs of 2944."""
    ModelledWire(monkeypatch, 5 * MBIT)
    with pair(tmp_path) as (by, to):
        row = measured(by, to, most_bytes=50_000)
        assert "at least 20 pairs that arrived, got 14" in row["ended"]


def test_bytes_for_the_capacity_alone_keep_it(tmp_path, monkeypatch):
    ModelledWire(monkeypatch, 5 * MBIT)
    with pair(tmp_path) as (by, to):
        row = measured(by, to, most_bytes=98_000)
        assert row["ended"].startswith("no packet pairs left with the wanted gap: the test's bytes")
        assert row["capacity_bytes_per_s"] == pytest.approx(5 * MBIT)


def test_above_100_mbit_the_capacity_alone_is_told_and_why(tmp_path, monkeypatch):
    ModelledWire(monkeypatch, 200 * MBIT)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert row["ended"] == "done"
        assert row["capacity_bytes_per_s"] == pytest.approx(200 * MBIT, rel=0.01)
        assert "bandwidth_bytes_per_s" not in row
        assert "above 100 Mbit/s" in said(row)["no_bandwidth"]
        assert said(row)["pairs"] == 0


def test_above_300_mbit_nothing_is_told(tmp_path, monkeypatch):
    ModelledWire(monkeypatch, 400 * MBIT)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert "cannot measure capacities above 300 Mbit/s" in row["ended"]
        assert "capacity_bytes_per_s" not in row


def test_nobody_is_put_to_sleep_by_a_path_that_is_said_to_be_slow(tmp_path, monkeypatch):
    """At 100 bytes per second a gap would be 15 s; the capacity is kept."""
    wire = ModelledWire(monkeypatch, 100.0)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert row["ended"].startswith("no packet pairs left with the wanted gap")
        assert row["capacity_bytes_per_s"] == pytest.approx(100.0)
    assert len(wire.left) == GREETINGS + 60


def test_a_sender_that_oversleeps_is_refused_and_its_capacity_kept(tmp_path, monkeypatch):
    """By nothing and by 0.6 ms in turn: nothing that it can learn to sleep less for."""
    late = itertools.cycle([0.0, 0.0006])
    ModelledWire(monkeypatch, 5 * MBIT, overslept_s=lambda: next(late))
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert "pairs left within 10% of the wanted gap of 2.4 ms, but 90% must" in row["ended"]
        assert row["capacity_bytes_per_s"] == pytest.approx(5 * MBIT)
        assert "bandwidth_bytes_per_s" not in row


@pytest.mark.slow
def test_lost_packets_are_said_and_their_pairs_left_out(tmp_path, monkeypatch):
    ModelledWire(monkeypatch, 5 * MBIT, is_lost=lambda number: number % 10 == 7)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert row["ended"] == "done"
        assert row["loss"] == pytest.approx(0.1, abs=0.01)
        assert said(row)["pairs_arrived"] == pytest.approx(0.8 * said(row)["pairs"], abs=1)
        assert row["bandwidth_bytes_per_s"] == pytest.approx(5 * MBIT, rel=0.01)


@pytest.mark.slow
def test_where_large_packets_do_not_arrive_smaller_ones_are_sent(tmp_path, monkeypatch):
    """Greetings are large and small in turn; the model knows no sizes: 1280 bytes take as long."""
    greetings = []

    def is_lost(number):
        if number >= GREETING:
            greetings.append(number)
        return number >= GREETING and len(greetings) % 2 == 1

    ModelledWire(monkeypatch, 5 * MBIT, is_lost=is_lost)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert (row["ended"], said(row)["packet_bytes"]) == ("done", 1280)
        assert row["capacity_bytes_per_s"] == pytest.approx(1280 / 0.0024)


def test_no_more_than_the_rate_on_average(tmp_path):
    """60 packets of 1500 bytes, and greetings, at 100 kB/s take 0.9 s; loopback is not told."""
    with pair(tmp_path, {"rate": 100_000}) as (by, to):
        begun_s = time.monotonic()
        row = measured(by, to)
        assert time.monotonic() - begun_s >= (58 * 1500 + 3 * 2780) / 100_000
        assert row["ended"] != "done"


# Where they do not arrive --------------------------------------------------------------------


@pytest.mark.parametrize("keys", [{"udp_port": 0}, {"udp_port": None}])
def test_without_a_port_it_is_said_what_to_write(tmp_path, keys):
    more = {name: value for name, value in keys.items() if value is not None}
    with (
        measuring(tmp_path, "D", **more) as to,
        measuring(tmp_path, "S", {"D": to.place}) as by,
    ):
        row = measured(by, to)
        assert row["ended"] == (
            "D: refuses: this agent accepts no UDP packets: [measure] of its file has no "
            "udp_port, or a 0; write one, open it in the firewall, and start the agent again"
        )
        assert used_bytes(by) == 0


@pytest.mark.slow
def test_a_port_that_another_uses_is_named(tmp_path):
    with udp_socket() as other:
        port = other.getsockname()[1]
        with pair(tmp_path, receiver={"udp_port": port}) as (by, to):
            row = measured(by, to)
            assert f"D: refuses: UDP port {port} of this host cannot be opened" in row["ended"]
            assert "write another udp_port" in row["ended"]
        assert came(other) == []


@pytest.mark.slow
@pytest.mark.parametrize("call", ["socket", "setsockopt", "bind"])
def test_a_socket_that_cannot_be_opened_is_a_reason(tmp_path, monkeypatch, call):
    """Each call that opens the receiver's fails in turn; TCP's sockets are others."""

    class Failing(socket.socket):
        def __init__(self, *fields, **more):
            if call == "socket" and fields[1:2] == (socket.SOCK_DGRAM,):
                raise OSError(errno.EMFILE, "Too many open files")
            super().__init__(*fields, **more)

        def setsockopt(self, *fields):
            if call == "setsockopt" and self.type == socket.SOCK_DGRAM:
                raise OSError(errno.ENOPROTOOPT, "Protocol not available")
            super().setsockopt(*fields)

        def bind(self, address):
            if call == "bind" and self.type == socket.SOCK_DGRAM:
                raise OSError(errno.EACCES, "Permission denied")
            super().bind(address)

    with pair(tmp_path) as (by, to):
        monkeypatch.setattr(pair_receiving.socket, "socket", Failing)
        row = measured(by, to)
        assert "of this host cannot be opened: " in row["ended"]
        monkeypatch.undo()
        assert measured(by, to)["loss"] == 0


@pytest.mark.slow
def test_a_firewall_that_drops_all_is_named_after_a_few_packets(tmp_path, monkeypatch):
    wire = ModelledWire(monkeypatch, 5 * MBIT, is_lost=lambda _: True)
    with pair(tmp_path) as (by, to):
        port = measure_of(to.agent._config).udp_port
        row = measured(by, to)
        assert row["ended"] == (
            f"D: none of 6 UDP packets to port {port} has arrived; open that UDP port for this "
            "host in the firewalls on the way, and forward it where a router translates addresses"
        )
    assert len(wire.left) == GREETINGS


def test_a_firewall_that_refuses_is_named(tmp_path, monkeypatch):
    """D closes its port when it has opened it: the kernel there refuses the packets."""
    original = pair_receiving.PairReceiver.__init__

    def closed(self, *fields):
        original(self, *fields)
        self.close()
        self._thread.join()

    monkeypatch.setattr(pair_receiving.PairReceiver, "__init__", closed)
    with pair(tmp_path) as (by, to):
        assert (
            measured(by, to)["ended"] == "D: its host refuses packets at the UDP port of the test"
        )


@pytest.mark.slow
def test_where_packets_stop_arriving_no_more_are_sent(tmp_path, monkeypatch):
    """After 260 of them, the pairs back to back and the first hundred: one train is the price."""
    wire = ModelledWire(
        monkeypatch,
        5 * MBIT,
        others=between_six_of_ten,
        is_lost=lambda number: 260 <= number < GREETING,
    )
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert row["ended"] == "done"
        assert said(row)["pairs_arrived"] == 100
    assert len(wire.left) <= GREETINGS + 260 + 200


# Hostile ends --------------------------------------------------------------------------------


def saying(*trees):
    """Return a handler that answers these in turn, whatever is asked, the last for ever."""
    left = list(trees)

    def answer(exchange):
        while exchange.read():
            pass
        tree = left.pop(0) if len(left) > 1 else left[0]
        exchange.answer(200, [], json.dumps(tree).encode())

    return answer


def nonce_of(exchange):
    from datacollect.measuring.agent.handlers import token_of
    from datacollect.net.keys import unverified_payload

    return json.loads(unverified_payload(token_of(exchange.headers["authorization"])))["nonce"]


def test_who_does_not_show_the_nonce_gets_no_packet(tmp_path):
    with udp_socket() as other:
        told = {"nonce": "A" * 22 + "==", "port": other.getsockname()[1]}
        with pair(tmp_path, receiver={"change": {"/measure/udp": saying(told)}}) as (by, to):
            assert measured(by, to)["ended"] == "D: its agent has not shown the nonce of the ticket"
        assert came(other) == []


@pytest.mark.parametrize("port", [None, 0, -1, 65_536, "7443", True])
def test_a_port_that_is_none_is_refused(tmp_path, port):
    def answer(exchange):
        exchange.read()
        told = {"nonce": nonce_of(exchange), "port": port}
        exchange.answer(200, [], json.dumps(told).encode())

    with pair(tmp_path, receiver={"change": {"/measure/udp": answer}}) as (by, to):
        assert measured(by, to)["ended"] == "D: its agent has named no port for the packets"


def test_who_names_a_port_that_is_not_its_own_gets_a_few_greetings_sent_there(tmp_path):
    """It says that all has arrived, but not the numbers, which nobody can guess."""
    with udp_socket() as victim:

        def answer(exchange):
            exchange.read()
            told = {"nonce": nonce_of(exchange), "port": victim.getsockname()[1]}
            exchange.answer(200, [], json.dumps(told).encode())

        arrivals = [[2**31 + i, i] for i in range(GREETINGS)]
        change = {"/measure/udp": answer, "/measure/arrived": saying({"arrivals": arrivals})}
        with pair(tmp_path, receiver={"change": change}) as (by, to):
            assert "of 6 UDP packets to port" in measured(by, to)["ended"]
        assert len(came(victim)) == GREETINGS


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"arrivals": "x"},
        {"arrivals": [[1]]},
        {"arrivals": [[1, "x"]]},
        {"arrivals": [[-1, 2]]},
        {"arrivals": [[1.5, 2]]},
        {"arrivals": [[True, 2]]},
        {"arrivals": [[2**70, 2]]},
        {"arrivals": [[1, 2]] * 1001},
    ],
)
def test_arrivals_that_are_none_end_the_test(tmp_path, told):
    with pair(tmp_path, receiver={"change": {"/measure/arrived": saying(told)}}) as (by, to):
        row = measured(by, to)
        assert row["ended"].startswith("D: malformed report on packets")
        assert used_bytes(by) <= 3 * (1472 + 1252)


def lying_to_the_operator(change):
    """D's agent tells the sender what is true, and the operator something else."""
    original = pair_receiving.PairReceiver.told

    def told(self, first, n, wait_s):
        tree = original(self, first, n, wait_s)
        # The sender waits; the operator asks when all is over.
        return change(tree) if wait_s == 0.0 and first == 0 else tree

    return told


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree | {"arrivals": [*tree["arrivals"], [10**6, 5]]},
        lambda tree: tree | {"arrivals": [*tree["arrivals"], tree["arrivals"][-1]]},
    ],
    ids=["never sent", "twice"],
)
def test_a_receiver_that_counts_what_was_not_sent_is_named(tmp_path, monkeypatch, change):
    ModelledWire(monkeypatch, 5 * MBIT)
    monkeypatch.setattr(pair_receiving.PairReceiver, "told", lying_to_the_operator(change))
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert row["ended"].startswith("D says that 261 packets have come, S has sent 260")
        assert "capacity_bytes_per_s" not in row


GOOD = {
    "ended": "done",
    "packet_bytes": 1500,
    "sent_packets": 40,
    "back_to_back_s": [1e-5] * 20,
    "sent_gaps_s": [],
}


@pytest.mark.parametrize(
    "odd",
    [
        {"packet_bytes": "x"},
        {"packet_bytes": 10**9},
        {"sent_packets": -1},
        {"sent_packets": True},
        {"back_to_back_s": [1e-5] * 21},
        {"back_to_back_s": 20},
        {"back_to_back_s": [[]]},
        {"sent_gaps_s": None},
        {"sent_gaps_s": [0.1]},
        {"sent_packets": 60, "sent_gaps_s": [-1]},
        {"sent_packets": 60, "sent_gaps_s": ["x"]},
        {"sent_packets": 60, "sent_gaps_s": [1e9]},
    ],
)
def test_what_no_sender_says_is_not_kept(tmp_path, odd):
    with pair(tmp_path, {"change": {"/measure/pairs": saying(GOOD | odd)}}) as (by, to):
        assert measured(by, to)["ended"] == ("S: malformed report on the packets of a test")


def test_a_sender_that_says_it_has_sent_and_has_not_is_refused_by_the_receiver(tmp_path):
    with pair(tmp_path, {"change": {"/measure/pairs": saying(GOOD)}}) as (by, to):
        assert measured(by, to)["ended"] == "D: refuses: no port has been opened for this test"


def test_a_clock_that_is_set_meanwhile_ends_the_test(tmp_path, monkeypatch):
    ModelledWire(monkeypatch, 5 * MBIT)
    original = pair_receiving.PairReceiver.told

    def told(self, *fields):
        self._clock_ns = lambda: self._began_ns + 2_000_000_000
        return original(self, *fields)

    monkeypatch.setattr(pair_receiving.PairReceiver, "told", told)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert row["ended"] == "the clock of D was set meanwhile; test again"
        assert "capacity_bytes_per_s" not in row


def test_strangers_packets_count_for_nothing(tmp_path, monkeypatch):
    """Others send to D's port all the time: of the wrong nonce, empty, long."""
    ModelledWire(monkeypatch, 5 * MBIT)
    with pair(tmp_path) as (by, to):
        place = ("127.0.0.1", measure_of(to.agent._config).udp_port)
        original = pair_receiving.PairReceiver.told
        foreign = []

        def told(self, *fields):
            with closing(socket.socket(type=socket.SOCK_DGRAM)) as other:
                for data in (b"", b"x" * 19, b"x" * 20, b"\0" * 1472, b"y" * 9000):
                    other.sendto(data, place)
            tree = original(self, *fields)
            foreign.append(tree["foreign"])
            return tree

        monkeypatch.setattr(pair_receiving.PairReceiver, "told", told)
        row = measured(by, to)
        assert (row["ended"], row["loss"]) == ("done", 0.0)
        assert row["bandwidth_bytes_per_s"] == pytest.approx(5 * MBIT, rel=0.01)
        assert max(foreign) >= 5
        assert used_bytes(to) == used_bytes(by)


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOBUFS, errno.EMSGSIZE, errno.EPERM])
def test_packets_that_cannot_be_sent_are_lost_packets(tmp_path, monkeypatch, number):
    """Each tenth: a full queue of the sender's host, say."""
    ModelledWire(monkeypatch, 5 * MBIT)
    original, calls = pair_sending._connected, itertools.count(1)

    class Failing(socket.socket):
        def send(self, data):
            if next(calls) % 10 == 0:
                raise OSError(number, os.strerror(number))
            return super().send(data)

    def connected(*fields):
        made = original(*fields)
        return Failing(fileno=made.detach())

    monkeypatch.setattr(pair_sending, "_connected", connected)
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        assert row["ended"] == "done"
        assert row["loss"] == pytest.approx(0.1, abs=0.01)
        assert row["bandwidth_bytes_per_s"] == pytest.approx(5 * MBIT, rel=0.01)


def test_ipv6(tmp_path, monkeypatch):
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as free:
            free.bind(("::1", 0))
            port = free.getsockname()[1]
    except OSError:
        pytest.skip("this host has no IPv6")
    ModelledWire(monkeypatch, 5 * MBIT)
    with six(tmp_path, "D", udp_port=port) as to:
        place = f"[::1]:{to.address[1]}"
        with six(tmp_path, "S", {"D": place}) as by:
            row = measured(by, to)
    assert (row["ended"], said(row)["packet_bytes"]) == ("done", 1500)
    assert row["capacity_bytes_per_s"] == pytest.approx(5 * MBIT)


@contextmanager
def six(folder, name, connect_to=None, **keys):
    """Run an agent that listens on IPv6 alone."""
    (folder / name).mkdir()
    more = measure_table(**keys)
    path = write_agent(folder / name, name, connect_to=connect_to, more=more)
    path.write_text(path.read_text().replace("127.0.0.1:0", "[::1]:0"))
    handlers = Measuring(AgentConfig.from_file(path), lambda _: None).handlers()
    with running(path, handlers) as agent:
        yield agent
