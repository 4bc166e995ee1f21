"""Marks in pictures: periods, releases, what binds."""

from __future__ import annotations

import pytest
from instances.plotted import relayed

import datacollect as dc
from datacollect.pictures import marks
from datacollect.pictures.marks import marks_of
from datacollect.pictures.plot import plot_schedule


def two_phases() -> dc.Problem:
    """S sends 10 B/s for 10 s, then 5 B/s: its 150 bytes take 20 s. L's 50 are released at 4 s."""
    return dc.Problem.from_hosts(
        [dc.Host("S", 150), dc.Host("L", 50, release_s=4.0), dc.Host("D")],
        [dc.Link("S", "D", [10.0, 5.0]), dc.Link("L", "D", 10.0)],
        "D",
        periods_s=[0.0, 10.0],
    )


def test_periods_releases_and_what_binds_are_found():
    problem = two_phases()
    found = marks_of(problem, dc.direct(problem))
    assert found.periods_s == (10.0,)
    assert found.releases_s == {"L": 4.0}
    assert [(binding.text, binding.spans_s) for binding in found.binds] == [
        ("link 'S' -> 'D' (40 bit/s to 80 bit/s)", ((0.0, 20.0),)),
        ("link 'L' -> 'D' (80 bit/s)", ((4.0, pytest.approx(9.0)),)),
    ]
    assert found.binds_note == ""


@pytest.mark.slow
def test_the_figure_has_them_where_they_are():
    problem = two_phases()
    figure = plot_schedule(problem, dc.direct(problem))
    lines = {line.get_gid(): line for line in figure.axes[0].lines}
    assert list(lines["period"].get_xdata()) == [10, 10]
    assert list(lines["release"].get_xdata()) == [4]
    held = lines["binds link 'L' -> 'D' (80 bit/s)"]
    assert list(held.get_xdata()) == pytest.approx([4, 9])
    written = [text.get_text() for text in figure.axes[0].texts]
    assert "what binds" in written
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    legends += [
        text.get_text()
        for artist in figure.artists
        if hasattr(artist, "get_texts")
        for text in artist.get_texts()
    ]
    for words in ("what binds", "a period of the forecast begins", "data are released"):
        assert words in legends


def test_clock_times_stand_below_the_axis():
    """20 s from 20:00:00 on: every five seconds are too few ticks, so are fifteen."""
    tree = two_phases().to_dict() | {"start": "2026-11-22T20:00:00+01:00"}
    problem = dc.Problem.from_dict(tree | {"timezone": "Europe/Zurich"})
    figure = plot_schedule(problem, dc.direct(problem))
    clock = [text.get_text() for text in figure.axes[0].texts if text.get_gid() == "clock"]
    assert clock[:2] == ["20:00:00\nSun 22 Nov", "20:00:05"]
    assert "clock, Europe/Zurich" in [text.get_text() for text in figure.axes[0].texts]


def test_a_broken_schedule_is_drawn_without_what_binds():
    """The fixture's lower bound is wrong, and so is its sum of rates: nobody can say what binds."""
    problem, schedule = relayed()
    cheating = schedule.replace(makespan_s=21.0)
    assert "breaks a rule" in marks_of(problem, cheating).binds_note
    assert marks_of(problem, cheating).binds == ()


def test_large_plans_and_shared_out_connections_say_that_it_is_not_marked(monkeypatch):
    problem = two_phases()
    plan = dc.direct(problem)
    assert "connections" in marks_of(problem, plan.replace(connections=2)).binds_note
    monkeypatch.setattr(marks, "MOST_TRANSFERS", 1)
    assert "more than 1 transfers" in marks_of(problem, plan).binds_note


@pytest.mark.parametrize("method", [dc.direct, dc.coordinated])
def test_a_plan_that_moves_all_in_the_last_second_of_years_is_marked_and_explained(method):
    """Within a billionth of the makespan nothing is distinguished, and nothing fails."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 10**6, release_s=1e9), dc.Host("D")], [dc.Link("S", "D", 1e6)], "D"
    )
    plan = method(problem)
    assert marks_of(problem, plan).releases_s == {"S": 1e9}
    assert "released" in str(dc.explain(problem, plan))
    words = [text.get_text() for text in plot_schedule(problem, plan).axes[0].texts]
    assert "sends ≤ 8 Mbit/s" in words
