"""Explanations in words, in at most 80 columns, and as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.hand_made import links
from instances.small_problems import MB, two_sources
from instances.strategies import problems
from instances.words import flat

import datacollect as dc
from datacollect.problem.hosts import Host, SharedBottleneck
from datacollect.problem.problem import Problem


def test_the_text_speaks_of_the_plan_first_and_of_coordination_last():
    problem = two_sources((4, 1), (4, 2), downlink=2.5e6)
    text = dc.explain(problem, dc.direct(problem)).text
    headings = [line for line in text.splitlines() if line.startswith(("What", "Sources"))]
    assert headings == [
        "What binds when, in this plan",
        "What to relax first, in this plan",
        "Sources, the last to finish first",
        "What binds when, if all were coordinated",
        "What to relax first, if all were coordinated",
    ]
    assert "0 s to 4 s: link 'A' -> 'D' (8 Mbit/s) holds back 'A'" in flat(text)


def test_of_many_rivals_the_first_are_listed():
    """Thirty sources share D's downlink."""
    hosts = [*(Host(f"S{i}", MB) for i in range(30)), Host("D", downlink_bytes_per_s=1e6)]
    into = ", ".join(f"S{i} -> D 1e6" for i in range(30))
    problem = Problem.from_hosts(hosts, links(into), "D")
    first = dc.explain(problem, dc.direct(problem)).sources[0]
    assert first.n_shared_with == 29
    assert len(first.shared_with) == 20
    assert "shared with 'S1', 'S2', 'S3', 'S4' … 'S29' (29 hosts)" in first.text


@pytest.mark.slow
@given(problem=problems(), data=st.data())
def test_the_text_of_any_plan_fits_and_its_tree_is_json(problem, data):
    method, shape = data.draw(
        st.sampled_from(
            [
                (dc.direct, {}),
                (dc.direct, {"at_a_time": 1, "time_slot_s": 0.5}),
                (dc.best_path, {}),
                (dc.best_path, {"slot_s": 1.0}),
                (dc.coordinated, {"slot_s": 1.0}),
                (dc.coordinated, {"deadline_s": 40.0}),
                (dc.coordinated, {"deadline_s": 40.0, "prefer": "storage", "slot_s": 1.0}),
            ]
        )
    )
    try:
        plan = method(problem, **shape)
    except dc.InfeasibleError:
        return
    found = dc.explain(problem, plan)
    assert max(map(len, found.text.splitlines())) <= 80
    tree = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    # What programs have read since the first version is still there.
    first = {"lower_bound_s", "bottleneck", "binds", "relax", "sources", "plan"}
    assert set(tree) == {*first, "cautious_lower_bound_s"}
    assert set(tree["relax"]) == {"alone", "pairs", "n_candidates", "text"}
    assert {"method", "makespan_s", "excess_s", "parts"} <= set(tree["plan"])
    known = {"source", "n_bytes", "finish_s", "alone_s", "limited_by", "text"}
    assert all(known <= set(source) for source in tree["sources"])
    assert all(part.keys() == {"cause", "seconds", "text"} for part in tree["plan"]["parts"])


def test_long_lists_are_shortened_in_text_only():
    hosts = [Host(f"S{i}", i) for i in range(1, 31)]
    into = ", ".join(f"S{i} -> D 1" for i in range(1, 31))
    found = dc.explain(Problem.from_hosts([*hosts, Host("D")], links(into), "D"))
    assert "and 24 more intervals" in found.text
    assert "and 22 more sources" in found.text
    assert len(found.to_dict()["binds"]) == len(found.to_dict()["sources"]) == 30


def test_of_many_shared_bottlenecks_one_is_named():
    """Five sources, each behind a wire of its own: all wires bind together."""
    hosts = [*(Host(f"S{i}", MB) for i in range(5)), Host("D")]
    wires = [SharedBottleneck(f"wire{i}", 1e6, [(f"S{i}", "D")]) for i in range(5)]
    into = ", ".join(f"S{i} -> D 2e6" for i in range(5))
    found = dc.explain(Problem.from_hosts(hosts, links(into), "D", shared=wires))
    first = found.binds[0].bottleneck
    assert "'wire0' (8 Mbit/s) and 4 more shared bottlenecks" in first.text


@given(problem=problems())
def test_the_text_fits_and_the_tree_is_json(problem):
    try:
        found = dc.explain(problem)
    except dc.InfeasibleError:
        assume(False)
    assert max(map(len, found.text.splitlines())) <= 80
    tree = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert tree["lower_bound_s"] == found.lower_bound_s
    assert {source["source"] for source in tree["sources"]} == set(problem.sources)
    assert str(found) == found.text
