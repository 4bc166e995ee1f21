"""Fan-out: a result or an exception for every name."""

import threading
import time

import pytest

from datacollect.net import fan_out as module
from datacollect.net.fan_out import Begun, fan_out


class Odd(BaseException):
    """Exception that no handler of exceptions sees."""


def answers(name):
    if name == "odd":
        raise Odd("not even an Exception")
    if name.startswith("bad"):
        raise ValueError(name)
    return name.upper()


def test_every_name_has_one_outcome():
    names = ["a", "bad 1", "b", "odd", "bad 2", "a"]
    found = fan_out(names, answers)
    assert found.keys() == set(names)
    assert (found["a"].result(), found["b"].result()) == ("A", "B")
    assert type(found["odd"].error) is Odd
    with pytest.raises(ValueError, match="bad 1"):
        found["bad 1"].result()


def test_who_takes_too_long_has_no_outcome():
    end = threading.Event()
    try:
        assert fan_out(["slow"], lambda _: end.wait(60), within_s=0.05) == {}
    finally:
        end.set()


def test_all_are_called_at_once():
    meet = threading.Barrier(50, timeout=60)
    found = fan_out(map(str, range(50)), lambda _: meet.wait() >= 0)
    assert all(outcome.result() for outcome in found.values())


def test_without_threads_every_name_still_has_an_outcome(monkeypatch):
    def start(self):
        if self.name in ("for-1", "for-3"):
            raise RuntimeError("can't start new thread")
        real(self)

    real = threading.Thread.start
    monkeypatch.setattr(module.threading.Thread, "start", start)
    found = fan_out(map(str, range(5)), str)
    assert {name for name, outcome in found.items() if outcome.error} == {"1", "3"}
    assert found.keys() == set("01234")


def test_outcomes_come_as_they_are_there():
    reports, slow = [], threading.Event()
    Begun("slow", lambda _: slow.wait(60), reports.append)
    Begun("fast", lambda _: 1, reports.append)
    deadline_s = time.monotonic() + 60
    while not reports and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert [outcome.name for outcome in reports] == ["fast"]
    slow.set()


def test_an_interruption_ends_the_wait(monkeypatch):
    class Interrupted:
        def put(self, outcome):
            pass

        def get(self, timeout):
            raise KeyboardInterrupt

    monkeypatch.setattr(module.queue, "SimpleQueue", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        fan_out(["a"], str)


def test_a_thread_that_dies_before_it_begins_has_an_outcome(monkeypatch):
    """As where memory runs out between its start and its first line."""
    real = threading.Thread.run

    def run(self):
        if self.name != "for-2":
            real(self)

    monkeypatch.setattr(module.threading.Thread, "run", run)
    monkeypatch.setattr(module, "LOOK_S", 0.05)
    found = fan_out(["1", "2", "3"], str)
    assert {name for name, outcome in found.items() if outcome.error} == {"2"}
    assert "can start no more threads" in str(found["2"].error)
