"""Plan of a sweep: seeds, order, jobs that were lost."""

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
    jobs = [plan.next_job(n_workers=3) for _ in range(3)]
    assert [[group.setting for group in job] for job in jobs] == [[("60",)]] * 3


def done(plan, setting, seed, cpu_s):
    """Rows of a setting's runs by both methods."""
    return [
        {"method": treatment, "seed": seed, "cpu_s": cpu_s, "probes_cpu_s": 0.0, **setting}
        for (treatment,) in plan.experiment.treatments()
    ]


def test_jobs_of_fluid_runs_take_seconds():
    """One group while nobody knows how long runs take; then as many as take five seconds."""
    for cpu_s, n_groups in ((0.001, 59), (0.5, 5), (1.0, 3), (60.0, 1)):
        plan = SweepPlan(experiment_of(axes=[METHOD], seeds={"least": 60, "batch": 60, "most": 60}))
        plan.begin()
        first = plan.next_job(n_workers=1)
        assert [group.seed for group in first] == [1]
        plan.add_rows(done(plan, {}, 1, cpu_s))
        plan.end_job(first)
        assert len(plan.next_job(n_workers=1)) == n_groups


def test_a_run_that_kills_its_worker_again_and_again_is_given_up():
    """Of two groups the first loss tells nothing; then each run goes alone, three times."""
    plan = SweepPlan(experiment_of(axes=[METHOD], seeds={"least": 3, "batch": 3}))
    plan.add_rows(done(plan, {}, 1, 0.1))
    plan.begin()
    both = plan.next_job(n_workers=1)
    assert [group.seed for group in both] == [2, 3]
    assert plan.lose_job(both) == []
    given_up = []
    for _ in range(4 * 3):
        (single,) = plan.next_job(n_workers=1)
        assert len(single.treatments) == 1
        given_up += plan.lose_job([single])
    assert sorted(group.seed for group in given_up) == [2, 2, 3, 3]
