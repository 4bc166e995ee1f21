"""One failing connection ends neither the loop nor the others."""

from __future__ import annotations

import os

from datacollect.transfer.agent.shell import loop as loop_module
from datacollect.transfer.agent.shell.loop import READABLE, Loop


def test_what_fails_is_told_and_watched_no_more():
    failed, seen = [], []
    loop = Loop(lambda: None, failed.append)
    bad, good = os.pipe(), os.pipe()

    def fails(_=None):
        raise RuntimeError("a bug")

    def works(_):
        seen.append(os.read(good[0], 10))
        loop.forget(good[0])
        loop.run_soon(loop.finish)

    loop.watch(bad[0], READABLE, fails)
    loop.watch(good[0], READABLE, works)
    loop.run_soon(fails)
    os.write(bad[1], b"x")
    os.write(good[1], b"y")
    loop.run()
    assert seen == [b"y"]
    assert [str(error) for error in failed] == ["a bug", "a bug"]
    for number in (*bad, *good):
        os.close(number)
    loop.run_soon(fails)  # too late, and harmless


def test_ticks_come_while_nothing_else_does(monkeypatch):
    monkeypatch.setattr(loop_module, "TICK_S", 0.01)
    ticks = []

    def tick():
        ticks.append(1)
        if len(ticks) == 2:
            loop.finish()

    loop = Loop(tick, ticks.append)
    loop.run()
    assert len(ticks) == 2


def test_what_is_to_be_called_later_comes_in_order_of_time(monkeypatch):
    monkeypatch.setattr(loop_module, "TICK_S", 60.0)
    calls = []
    loop = Loop(lambda: None, calls.append)

    def begin():
        loop.run_later(0.03, lambda: calls.append("last"))
        loop.run_later(0.03, loop.finish)
        loop.run_later(0.01, lambda: calls.append("first"))
        loop.run_later(0.0, lambda: calls.append("at once"))

    loop.run_soon(begin)
    loop.run()
    assert calls == ["at once", "first", "last"]
