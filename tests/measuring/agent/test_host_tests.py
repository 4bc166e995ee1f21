"""The lease of a host, and what the agent admits."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from instances.measuring import OPERATOR, token_of

from datacollect.errors import RefusedError
from datacollect.measuring.agent.host_tests import HostTests
from datacollect.measuring.agent.measure_config import MeasureConfig
from datacollect.measuring.plan.host_lease import Granted, Wait
from datacollect.net.keys import PrivateKey

HOLDING = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def config(tmp_path):
    return MeasureConfig(
        frozenset([OPERATOR.public]),
        ("tcp",),
        10**7,
        None,
        None,
        None,
        tmp_path / "used",
        tmp_path / "lock",
    )


@pytest.fixture
def tests(config):
    return host_tests(config)


def host_tests(config, fingerprint="f1"):
    found = HostTests(config, config.used)
    found._fingerprint = fingerprint
    return found


def ticket(tests, **fields):
    return tests.admit(token_of("f1", "f1", "f2", **fields))


def is_locked(path) -> bool:
    code = "import fcntl,sys; fcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_a_lease_is_one_tests_at_a_time_and_the_kernel_knows(tests, config):
    one, two = ticket(tests), ticket(tests)
    assert isinstance(tests.ask(one, 1, 30.0), Granted)
    assert is_locked(config.lock)
    answer = tests.ask(two, 1, 30.0)
    assert isinstance(answer, Wait)
    assert answer.wait_s <= 30.0
    with pytest.raises(RefusedError, match="is not leased for the test"):
        tests.begin(two, "tcp")
    tests.give_back(one, 1)
    assert not is_locked(config.lock)
    assert isinstance(tests.ask(two, 1, 30.0), Granted)


def test_a_lease_ends_by_its_time_alone(tests, config):
    one = ticket(tests)
    tests.ask(one, 1, 3.0)
    test = tests.begin(one, "tcp")
    assert test.over.wait(30.0)
    with pytest.raises(RefusedError, match="lease has ended"):
        test.took(1)
    assert not is_locked(config.lock)
    assert isinstance(tests.ask(ticket(tests), 1, 1.0), Granted)


def test_another_process_of_this_host_may_hold_it_until_it_is_killed(tests, config):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(config.lock)], stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        one = ticket(tests)
        assert isinstance(tests.ask(one, 1, 30.0), Wait)
        holder.kill()
        holder.wait()
        assert isinstance(tests.ask(one, 1, 30.0), Granted)


def test_a_lease_returned_twice_ends_nobody_elses(tests):
    one, two = ticket(tests), ticket(tests)
    tests.ask(one, 1, 30.0)
    tests.give_back(one, 1)
    tests.ask(two, 1, 30.0)
    tests.give_back(one, 1)
    assert tests.running(two).ticket == two


def test_the_bytes_of_an_hour_are_spent_once(tests, config):
    one = ticket(tests, most_bytes=9 * 10**6)
    tests.ask(one, 1, 30.0)
    tests.begin(one, "tcp").took(8 * 10**6)
    tests.give_back(one, 1)
    after = host_tests(config)  # as after a restart
    with pytest.raises(RefusedError, match="2000000 of the 10000000 of bytes_per_hour") as caught:
        after.ask(ticket(after, most_bytes=3 * 10**6), 1, 30.0)
    assert caught.value.status == 429
    assert isinstance(after.ask(ticket(after, most_bytes=2 * 10**6), 1, 30.0), Granted)


def test_a_test_is_not_run_again_with_the_same_ticket(tests, config):
    one = ticket(tests)
    tests.ask(one, 1, 30.0)
    tests.begin_once(one, "tcp")
    with pytest.raises(RefusedError, match="has been run"):
        tests.begin_once(one, "tcp")
    tests.give_back(one, 1)
    for again in (tests, host_tests(config)):
        again.ask(one, 2, 30.0)
        with pytest.raises(RefusedError, match="has been used"):
            again.begin_once(one, "tcp")
        again.give_back(one, 2)


def test_no_more_comes_or_goes_than_the_ticket_says(tests):
    one = ticket(tests, most_bytes=1000)
    tests.ask(one, 1, 30.0)
    test = tests.begin(one, "tcp")
    assert [test.take_to_send(600), test.take_to_send(600), test.take_to_send(600)] == [600, 400, 0]
    test.took(1000)
    with pytest.raises(RefusedError, match="more bytes arrived"):
        test.took(1)


def test_who_receives_by_the_ticket_is_not_made_to_send(config):
    receiver = host_tests(config, "f2")
    one = receiver.admit(token_of("f2", "f1", "f2"))
    receiver.ask(one, 1, 30.0)
    with pytest.raises(RefusedError, match="the other host send"):
        receiver.begin_once(one, "tcp")


def test_tools_are_those_of_the_agent_and_of_the_ticket(tests):
    with pytest.raises(RefusedError, match="'ping' is not one of this agent's: tcp"):
        ticket(tests, tools=("ping",))
    one = ticket(tests)
    tests.ask(one, 1, 30.0)
    with pytest.raises(RefusedError, match="the ticket is for tcp, not for ping"):
        tests.begin(one, "ping")


@pytest.mark.parametrize("token", [None, "", "x", "v4.public.AAAA", "v4.public." + "A" * 200])
def test_without_a_ticket_there_is_nothing(tests, token):
    with pytest.raises(RefusedError) as caught:
        tests.admit(token)
    assert caught.value.status == 401


def test_tickets_forged_or_for_another_end_do_not_count(tests):
    forger = PrivateKey(b"the key of somebody else in here")
    for token in (token_of("f1", "f1", "f2", forger), token_of("f2", "f1", "f2")):
        with pytest.raises(RefusedError) as caught:
            tests.admit(token)
        assert caught.value.status == 401


def test_tests_keep_the_hours_of_the_host(config):
    hour = time.localtime().tm_hour
    now = host_tests(replace(config, hours=(hour, (hour + 2) % 24 or 24)))
    assert ticket(now).sender == "f1"
    later = host_tests(replace(config, hours=((hour + 2) % 24, (hour + 4) % 24 or 24)))
    with pytest.raises(RefusedError, match="tests run from"):
        ticket(later)


# Several tests with one lease ----------------------------------------------------------------


def test_a_lease_is_for_as_many_tests_as_were_asked_for(tests):
    """To f2 and to f3 at once, by tickets with one nonce; each has its bytes, and half the rate."""
    nonce = "A" * 22 + "=="
    one, two, three = (
        tests.admit(token_of("f1", "f1", far, nonce=nonce, most_bytes=1000))
        for far in ("f2", "f3", "f4")
    )
    tests.ask(one, 1, 30.0, 2)
    first, second = tests.begin_once(one, "tcp"), tests.begin_once(two, "tcp")
    assert [first.n_beside, second.n_beside] == [2, 2]
    assert [first.take_to_send(2000), second.take_to_send(600)] == [1000, 600]
    with pytest.raises(RefusedError, match="the lease is for 2 tests at once"):
        tests.begin_once(three, "tcp")
    with pytest.raises(RefusedError, match="has been run"):
        tests.begin_once(two, "tcp")
    tests.give_back(one, 1)
    assert first.over.is_set()
    assert second.over.is_set()
    # What was sent counts, and none of them is run again.
    assert tests._used.left_bytes(time.time()) == 10**7 - 1600
    tests.ask(two, 2, 30.0, 2)
    with pytest.raises(RefusedError, match="has been used"):
        tests.begin_once(two, "tcp")


def test_a_lease_for_one_is_for_one(tests):
    nonce = "A" * 22 + "=="
    one, two = (tests.admit(token_of("f1", "f1", far, nonce=nonce)) for far in ("f2", "f3"))
    tests.ask(one, 1, 30.0)
    tests.begin_once(one, "tcp")
    with pytest.raises(RefusedError, match="the lease is for 1 tests at once"):
        tests.begin_once(two, "tcp")


def test_an_operator_whose_key_is_withdrawn_loses_the_test_that_runs(tests, config):
    one = ticket(tests)
    tests.ask(one, 1, 30.0)
    test = tests.begin(one, "tcp")
    tests.trust(frozenset([OPERATOR.public]))
    assert not test.over.is_set()
    tests.trust(frozenset())
    assert test.over.is_set()
    assert not is_locked(config.lock)
    with pytest.raises(RefusedError, match="not one of the agent's operators"):
        ticket(tests)
    tests.trust(frozenset([OPERATOR.public]))
    assert isinstance(tests.ask(ticket(tests), 1, 30.0), Granted)


def test_a_host_whose_lock_fails_says_so_and_makes_nobody_wait(tests, monkeypatch):
    def failing(_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("datacollect.measuring.agent.host_tests.take_lock", failing)
    with pytest.raises(RefusedError, match="lock, cannot be taken: No locks available") as caught:
        tests.ask(ticket(tests), 1, 30.0)
    assert caught.value.status == 503


def test_a_lease_that_nothing_would_end_is_not_given(tests, config, monkeypatch):
    """Where no thread can be started the host is free again at once."""

    def failing(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Timer, "start", failing)
        with pytest.raises(RefusedError, match="cannot start another test now"):
            tests.ask(ticket(tests), 1, 30.0)
    assert not is_locked(config.lock)
    assert isinstance(tests.ask(ticket(tests), 1, 30.0), Granted)
