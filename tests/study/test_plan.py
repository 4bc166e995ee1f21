"""What a sweep has still to do: seeds, order, jobs that were lost."""

from __future__ import annotations

from instances.small_experiments import METHOD, experiment_of

from datacollect.study.plan import SweepPlan, is_precise
from datacollect.study.seeds import Precision


def test_the_half_width_is_students():
    """Of 1, 2, 3: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.3027: 2.4841 or 1.24205 x."""
    for half_width, reached in ((1.2421, True), (1.242, False)):
        wanted = Precision(half_width, 0.95, ("makespan_s",))
        assert is_precise([1.0, 2.0, 3.0], wanted) is reached


def test_the_dearest_settings_go_first():
    flows = {"name": "flows", "key": "background.flows", "values": [0, 60, 20]}
    plan = SweepPlan(experiment_of(axes=[METHOD, flows]))
    plan.begin()
    job = plan.next_job(n_workers=3)
    assert [group.setting for group in job] == [("60",)] * 3


def test_a_run_that_kills_its_worker_again_and_again_is_given_up():
    """Of two groups the first loss tells nothing; then each run goes alone, three times."""
    plan = SweepPlan(experiment_of(axes=[METHOD], seeds={"least": 2, "batch": 2}))
    plan.begin()
    both = plan.next_job(n_workers=1)
    assert [group.seed for group in both] == [1, 2]
    assert plan.lose_job(both) == []
    given_up = []
    for _ in range(4 * 3):
        (single,) = plan.next_job(n_workers=1)
        assert len(single.ways) == 1
        given_up += plan.lose_job([single])
    assert sorted(group.seed for group in given_up) == [1, 1, 2, 2]
