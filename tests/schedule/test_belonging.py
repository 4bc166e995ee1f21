"""A schedule that was made for other hosts or other data is refused wherever it is used."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc
from datacollect.schedule.data.use import plan_money


def problem_of(source="S", relay="K", n_bytes=30, destination="D"):
    grid = [[0, 1.0, 5.0, 0], [0, 0, 0, 5.0], [0, 0, 0, 5.0], [0, 0, 0, 0]]
    names = [source, "X", relay, destination]
    return dc.Problem.from_matrix(names, grid, [n_bytes, 0, 0, 0], destination)


PLAN = dc.coordinated(problem_of(), chunk_s=0.5)
PROGRESS = {"format": "datacollect-progress/1", "at_s": 1.0, "held": []}
FOREIGN = [
    (problem_of(source="S1"), "host 'S' of its route S -> (K|X) .*is unknown; did you mean 'S1'"),
    (problem_of(relay="L"), "host 'K' of its route S -> K -> D is unknown"),
    (problem_of(destination="E"), "it leads to 'D', the problem's destination is 'E'"),
    (problem_of(n_bytes=20), "it moves byte 29 of 'S', whose backlog is 20 bytes"),
]
USES = {
    "plot_schedule": lambda problem: dc.plot_schedule(problem, PLAN),
    "replan": lambda problem: dc.replan(problem, PLAN, PROGRESS),
    "plan_money": lambda problem: plan_money(
        problem.replace(price_per_gb=np.ones(problem.n_links)), PLAN
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("problem", "message"), FOREIGN)
def test_a_foreign_schedule_is_refused(use, problem, message):
    with pytest.raises(
        dc.ProblemError, match=f"does not belong to the problem: {message}.*; give the problem that"
    ):
        USES[use](problem)


@pytest.mark.parametrize("use", USES)
def test_bandwidths_may_have_changed_since(use):
    problem = problem_of()
    USES[use](problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s / 2))


def test_writing_to_the_table_leaves_the_schedule_alone():
    problem = problem_of()
    plan = dc.coordinated(problem)
    table, before = plan.transfers, plan.to_dict()
    table.loc[0, "bytes"] = 7
    table["start_s"] = 0.0
    del table["finish_s"]
    for name in ("bytes", "finish_s"):
        with pytest.raises(ValueError, match="read-only"):
            plan.transfers[name].to_numpy()[0] = 1
    plan.peak_storage_bytes["K"] = -1
    assert plan.to_dict() == before
    assert plan.transfers["bytes"].tolist() == plan.columns.n_bytes.tolist()
    assert plan.peak_storage_bytes.get("K", 0) >= 0
    plan.check(problem)


def test_writing_to_the_columns_that_a_schedule_was_made_of_leaves_it_alone():
    plan = PLAN
    mine = {name: getattr(plan.columns, name).copy() for name in dc.Transfers._kinds()}
    other = plan.replace(columns=dc.Transfers(**mine))
    mine["n_bytes"][0] = 1
    other.check(problem_of())
    with pytest.raises(ValueError, match="read-only"):
        other.columns.n_bytes[0] = 1
