"""What an operator is told: once in a while, and nobody's flood."""

from __future__ import annotations

from datacollect.bistro.destination.run.event_run import MOST_LINES, SAY_AGAIN_S, SayingOnce

MONOTONIC = "datacollect.bistro.destination.run.event_run.time.monotonic"


def test_a_line_is_said_again_after_a_while(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(MONOTONIC, lambda: clock[0])
    told = []
    said = SayingOnce(told.append, ["north"])
    for clock[0] in (0.0, SAY_AGAIN_S - 1, SAY_AGAIN_S + 1):
        said("north: is away")
    assert told == ["north: is away"] * 2


def test_who_says_something_else_each_time_fills_no_log_and_hides_nobody(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(MONOTONIC, lambda: clock[0])
    told = []
    said = SayingOnce(told.append, ["north", "south"])
    for number in range(10 * MOST_LINES):
        said(f"given up: north: answers {number}")
    assert len(told) == MOST_LINES + 1
    assert told[-1] == "north: further messages about it within the hour are left out"
    said("south: is away")
    said("the table of loads: OSError")
    assert told[-2:] == ["south: is away", "the table of loads: OSError"]
    clock[0] = SAY_AGAIN_S + 1
    said("north: answers again")
    assert told[-1] == "north: answers again"
