"""Limits of each source."""

from __future__ import annotations

import pytest
from instances.hand_made import links
from instances.small_problems import MB, figure_1

import datacollect as dc
from datacollect.explanation import sources
from datacollect.problem.hosts import Held, Host
from datacollect.problem.problem import Problem


def test_a_source_that_binds_itself():
    """A alone needs 4 s of the 4 s; B shares the destination's links with it."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", MB), Host("D")], links("A -> D 1e6, B -> D 1e6"), "D"
    )
    plan = dc.coordinated(problem)
    first, second = dc.explain(problem, plan).sources
    assert (first.source, first.limited_by, first.alone_s) == ("A", "itself", 4.0)
    assert first.finish_s == plan.source_completion_s()["A"]
    assert second.source == "B"
    assert second.alone_s == 1.0


def test_data_held_elsewhere_belong_to_their_source():
    """1 MB of S lies at K already: alone, K sends it in 1 s while S sends 3 MB in 3 s."""
    problem = Problem.from_hosts(
        [Host("S", 4 * MB), Host("T", 2 * MB), Host("K"), Host("D")],
        links("S -> D 1e6, K -> D 1e6, T -> D 1e6"),
        "D",
        held=[Held("K", "S", 0, MB)],
    )
    by_source = {source.source: source for source in dc.explain(problem).sources}
    assert by_source["S"].n_bytes == 4 * MB
    assert by_source["S"].alone_s == pytest.approx(3.0)
    assert by_source["T"].alone_s == pytest.approx(2.0)


def test_in_large_problems_only_the_latest_are_solved_for_alone(monkeypatch):
    """What was not computed is not said."""
    monkeypatch.setattr(sources, "MOST_LINKS_SOLVED", 0)
    monkeypatch.setattr(sources, "FEWEST_SOURCES_SOLVED", 1)
    found = dc.explain(figure_1())
    assert [source.alone_s for source in found.sources] == [pytest.approx(0.5), None]
    assert found.text.count("alone it could finish at") == 1


def test_data_at_two_places_are_one_sources():
    """1 MB of S lies at K: K sends it in 1 s, S its own 3 MB in 3 s."""
    problem = Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("D")],
        links("S -> D 1e6, K -> D 1e6"),
        "D",
        held=[Held("K", "S", 0, MB)],
    )
    (source,) = dc.explain(problem, dc.direct(problem)).sources
    assert [(limit.name, limit.to_s) for limit in source.limits] == [
        ("link 'S' -> 'D'", pytest.approx(3.0)),
        ("link 'K' -> 'D'", pytest.approx(1.0)),
    ]
    assert "limited by the link 'S' -> 'D' (8 Mbit/s); from 0 s to 1 s by" in source.text
