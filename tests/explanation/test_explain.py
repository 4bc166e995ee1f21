"""Explanations as a whole."""

from __future__ import annotations

import pytest
from instances.hand_made import links
from instances.small_problems import figure_1, relay
from instances.words import flat

import datacollect as dc
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem


def test_figure_1(linear_solver):
    """Two wires of 8 Mbit/s let 2 MB through in 1 s; one of them wider by 1 Mbit/s: 16/17 s.

    Without the wire to D, S1 and S2 send 1 MB/s each to D and 1 MB/s together to K: 2/3 s.
    Alone, S1 has 1 MB/s to D and 1 MB/s through K: half a second.
    """
    found = dc.explain(figure_1(), solver=linear_solver)
    assert found.lower_bound_s == pytest.approx(1.0)
    assert [(i.from_s, i.to_s, i.rate_bytes_per_s) for i in found.binds] == [
        pytest.approx((0.0, 1.0, 2e6))
    ]
    wires = {r.names[0]: (r.saves_s, r.saves_unlimited_s) for r in found.advice.alone}
    assert wires.keys() == {"shared bottleneck 'N1-D'", "shared bottleneck 'hosts-K'"}
    for gain in wires.values():
        assert gain == pytest.approx((1 / 17, 1 / 3), rel=1e-4)
    assert [source.alone_s for source in found.sources] == pytest.approx([0.5, 0.5])
    assert {source.limited_by for source in found.sources} == {"binding cut"}
    assert found.plan is None
    assert "1 Mbit/s more saves 0.05882 s" in flat(found.text)


def test_nothing_to_move():
    problem = Problem.from_hosts([Host("S"), Host("D")], links("S -> D 1"), "D")
    found = dc.explain(problem)
    assert found.binds == found.sources == found.advice.alone == ()
    assert "There is nothing to move" in found.text


def test_a_plan_for_another_problem():
    plan = dc.direct(figure_1())
    found = dc.explain(relay(), plan).plan
    assert [part.cause for part in found.parts] == ["other"]
    assert "another problem" in found.parts[0].text
    assert found.binds == found.advice.tried == ()


def test_a_plan_that_breaks_a_rule():
    """6 MB over a link of 1 MB/s in less than 6 s."""
    plan = dc.direct(relay())
    columns = {
        name: getattr(plan.columns, name)
        for name in ("route", "hop", "offset_bytes", "n_bytes", "start_s", "streams")
    }
    hasty = type(plan.columns)(**columns, finish_s=plan.columns.finish_s / 2)
    found = dc.explain(relay(), plan.replace(columns=hasty, makespan_s=3.0)).plan
    assert [part.cause for part in found.parts] == ["other"]
    assert "breaks a rule: link 'S' -> 'D'" in found.parts[0].text
    assert found.binds == found.advice.tried == ()


def test_a_method_of_others():
    plan = dc.direct(relay()).replace(method="by hand")
    explained = dc.explain(relay(), plan)
    found, text = explained.plan, flat(explained.text)
    assert [(part.cause, part.seconds) for part in found.parts] == [("other", pytest.approx(4.0))]
    assert "'by hand' is not one of this program's" in found.parts[0].text
    assert "0 s to 6 s: link 'S' -> 'D' (8 Mbit/s) holds back 'S'" in text
    assert "at its end the link 'S' -> 'D' (8 Mbit/s) is full on its way" in text
    assert "Not computed: method 'by hand'" in text
