"""The socket of a test: foreign packets, packets that come twice, the kernel's stamps, ends."""

from __future__ import annotations

import errno
import socket
import threading
import time
from contextlib import closing, contextmanager

import pytest
from instances.measuring import OPERATOR
from instances.ports import free_port

from datacollect.errors import RefusedError
from datacollect.measuring.agent import pair_receiving
from datacollect.measuring.agent.host_tests import RunningTest
from datacollect.measuring.agent.pair_receiving import PairReceiver, set_clock_ns
from datacollect.measuring.agent.pair_sending import Alarm, punctual
from datacollect.measuring.plan.measure_tickets import MeasureTicket
from datacollect.measuring.probes.pair_packets import FIRST_GREETING, number_of, packet
from datacollect.net.udp import greeting_number

NONCE, OTHER = "A" * 22 + "==", "B" * 21 + "A=="


def running(most_bytes=10**6, until_s=60.0) -> RunningTest:
    ticket = MeasureTicket(
        OPERATOR.public, "f2", "f1", "f2", ("pairs",), most_bytes, 0.0, 60.0, NONCE
    )
    return RunningTest(ticket, time.monotonic() + until_s)


@contextmanager
def receiving(test, host="127.0.0.1", **more):
    """Yield a receiver at a free port, and a socket that is connected to it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    port = free_port()
    receiver = PairReceiver((host, port), NONCE, test.took, test.over, **more)
    with closing(receiver), socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.connect((host, port))
        yield receiver, sender


def test_foreign_packets_are_counted_and_nothing_else():
    test = running()
    with receiving(test) as (receiver, sender):
        for data in (b"", b"x", b"x" * 1472, packet(OTHER, 3, 1472), packet(NONCE, 3, 20)[:19]):
            sender.send(data)
        sender.send(packet(NONCE, 4, 1472))
        told = receiver.told(0, 1, 10.0)
        assert [number for number, _ in told["arrivals"]] == [4]
        assert (told["foreign"], told["twice"], told["n_arrivals"]) == (5, 0, 1)
        assert test.received_bytes == 1472


def test_of_packets_that_come_twice_the_first_counts():
    with receiving(running()) as (receiver, sender):
        for number in (0, 1, 0, 1, 1, 2):
            sender.send(packet(NONCE, number, 100))
        arrivals = receiver.told(0, 3, 10.0)["arrivals"]
        assert [number for number, _ in arrivals] == [0, 1, 2]
        assert receiver.n_twice == 3
        stamps_ns = [ns for _, ns in arrivals]
        assert stamps_ns == sorted(stamps_ns)


def test_the_kernel_stamps_when_a_packet_comes_not_when_it_is_read(monkeypatch):
    """The reader is held up at the first packet; all come meanwhile."""
    original, have_come = pair_receiving.number_of, threading.Event()

    def slow(data, nonce):
        assert have_come.wait(30.0)
        return original(data, nonce)

    monkeypatch.setattr(pair_receiving, "number_of", slow)
    with receiving(running()) as (receiver, sender):
        for number in range(3):
            sender.send(packet(NONCE, number, 100))
        time.sleep(0.3)  # the kernel may be a little late itself on a busy machine
        come_ns = time.time_ns()
        have_come.set()
        arrivals = receiver.told(0, 3, 10.0)["arrivals"]
        assert len(arrivals) == 3
        assert all(ns <= come_ns for _, ns in arrivals)


def test_who_asks_learns_what_has_come_since():
    with receiving(running()) as (receiver, sender):
        for number in range(5):
            sender.send(packet(NONCE, number, 100))
        assert len(receiver.told(0, 5, 10.0)["arrivals"]) == 5
        assert [number for number, _ in receiver.told(3, 100, 0.0)["arrivals"]] == [3, 4]
        assert receiver.told(5, 1, 0.05)["arrivals"] == []


def test_no_more_is_taken_than_the_ticket_says():
    test = running(most_bytes=250)
    with receiving(test) as (receiver, sender):
        for number in range(4):
            sender.send(packet(NONCE, number, 100))
        receiver._thread.join(10.0)
        assert not receiver._thread.is_alive()
        assert [number for number, _ in receiver.told(0, 4, 0.5)["arrivals"]] == [0, 1]


@pytest.mark.parametrize("how", ["over", "closed"])
def test_the_port_is_free_when_the_test_has_ended(how):
    """Also for a test that begins at once."""
    test = running()
    with receiving(test) as (receiver, sender):
        test.over.set() if how == "over" else receiver.close()
        again = running()
        with closing(PairReceiver(sender.getpeername(), NONCE, again.took, again.over)) as after:
            sender.send(packet(NONCE, 1, 100))
            with_refusal = after.told(0, 1, 0.5)["arrivals"]
            if not with_refusal:  # what the port's closing has refused is the sender's to repeat
                sender.send(packet(NONCE, 1, 100))
            assert after.told(0, 1, 10.0)["n_arrivals"] == 1
        assert receiver.arrivals == []


def test_ipv6():
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    try:
        with receiving(running(), "::1") as (receiver, sender):
            sender.send(packet(NONCE, 7, 100))
            assert receiver.told(0, 1, 10.0)["arrivals"][0][0] == 7
    except (OSError, RefusedError):
        pytest.skip("this host has no IPv6")


def test_a_clock_that_is_set_is_noticed_and_one_that_drifts_is_not():
    ahead_ns = [10**18]
    with receiving(running(), clock_ns=lambda: ahead_ns[0]) as (receiver, _):
        ahead_ns[0] += 200_000
        assert not receiver.told(0, 1, 0.0)["clock_was_set"]
        ahead_ns[0] -= 2_000_000
        assert receiver.told(0, 1, 0.0)["clock_was_set"]
    assert abs(set_clock_ns() - (time.time_ns() - time.monotonic_ns())) < 1e11


@pytest.mark.slow
def test_calls_that_fail_cost_a_packet_at_most(monkeypatch):
    """The n-th reading fails, for each of the first four: what else comes is kept."""

    class Failing(socket.socket):
        fails_at, calls = 0, 0

        def recvmsg(self, *fields):
            Failing.calls += 1
            found = super().recvmsg(*fields)
            if Failing.calls == Failing.fails_at:
                raise OSError(errno.EIO, "Input/output error")
            return found

    monkeypatch.setattr(pair_receiving.socket, "socket", Failing)
    for fails_at in range(1, 5):
        Failing.fails_at, Failing.calls = fails_at, -(10**9)
        with receiving(running()) as (receiver, sender):
            Failing.calls = 0
            for number in range(8):
                sender.send(packet(NONCE, number, 100))
            assert len(receiver.told(0, 7, 10.0)["arrivals"]) >= 7


def test_numbers_of_greetings_are_no_pairs_and_seldom_the_same():
    numbers = {greeting_number(FIRST_GREETING) for _ in range(100)}
    assert len(numbers) > 90
    assert all(2**31 <= number < 2**32 for number in numbers)
    assert number_of(packet(NONCE, max(numbers), 1472), NONCE) == max(numbers)


def test_a_thread_is_as_urgent_after_a_train_as_before(monkeypatch):
    """Also where it may not be urgent."""
    import os

    before = os.sched_getscheduler(0)
    with punctual():
        pass
    assert os.sched_getscheduler(0) == before

    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with punctual():
        assert os.sched_getscheduler(0) == before


def test_who_was_woken_late_goes_to_sleep_for_less(monkeypatch):
    """Sleeps that last 80 us too long are cut by so much, after a few of them."""
    from types import SimpleNamespace

    from datacollect.measuring.agent import pair_sending

    now_ns = [0]

    def read():
        now_ns[0] += 100
        return now_ns[0]

    def sleep(seconds):
        now_ns[0] += int(seconds * 1e9) + 80_000

    monkeypatch.setattr(pair_sending, "time", SimpleNamespace(monotonic_ns=read, sleep=sleep))
    alarm, late_ns = Alarm(), []
    for _ in range(20):
        due_ns = now_ns[0] + 1_000_000
        alarm.sleep_until(due_ns)
        late_ns.append(now_ns[0] - due_ns)
    assert late_ns[0] == pytest.approx(50_000, abs=1000)
    assert max(late_ns[-5:]) < 1000
    assert min(late_ns) >= 0
