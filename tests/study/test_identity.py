"""Hashes of experiments and runs: what they count, and that they stay."""

from __future__ import annotations

from instances.small_experiments import METHOD, experiment_of

import datacollect as dc
from datacollect.study.identity import by_content, sha256_of


def test_the_hash_is_that_of_the_runs_and_not_of_how_many():
    one = experiment_of()
    assert experiment_of(seeds={"least": 9}).sha256 == one.sha256
    assert experiment_of(panels=[{"label": "a", "x": "rate", "series": "method"}]).sha256 == (
        one.sha256
    )
    assert experiment_of(scale=0.5).sha256 != one.sha256
    assert experiment_of(axes=[METHOD]).sha256 != one.sha256
    assert experiment_of(name="other").sha256 != one.sha256


def test_two_files_of_the_same_name_and_other_content_have_other_hashes(tmp_path):
    """What a scenario's problem file says counts, not what it is called."""
    problem = 'destination = "D"\n[hosts.S]\nbacklog_bytes = {}\n[hosts.D]\n'
    hashes = []
    for n_bytes in (10, 20):
        (tmp_path / "p.toml").write_text(problem.format(n_bytes))
        scenario = dc.Scenario.from_dict({"problem": "p.toml"}, tmp_path)
        hashes.append(experiment_of(axes=[METHOD], scenario=scenario).sha256)
    assert hashes[0] != hashes[1]
    assert sha256_of({"a": 1}) == sha256_of({"a": 1})


def test_hashes_stay_when_keys_are_added():
    """Runs are found by these hashes, and a folder of results goes on only with the same: a sweep
    of days would start again. Computed before ``estimates.shared`` and ``method.replan_s`` came.

    A new key keeps them if its default is None, which is left out of the tree that is hashed. Pin
    others only where old results have become wrong.
    """
    scenario = dc.Scenario.from_dict(
        {
            "topology": {"kind": "two-domains"},
            "hosts": {
                "destination": {"at": "A0"},
                "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
            },
        }
    )
    pinned = "8a2da781f0012d7c28dcd900288da3ad2b988585c2540787cfcedc0302cfea14"
    assert scenario.sha256 == pinned
    assert sha256_of(by_content(scenario)) == pinned
    experiment = dc.Experiment.from_dict(
        {"name": "pinned", "engine": "fluid", "axes": [METHOD]}, scenario=scenario
    )
    assert experiment.sha256 == "59af8f56db328d28d34f1fcab65bc05dc16ad04153f8bf7c24b4b44c1a7c55d0"
    for place, value in (
        ("estimates.shared", [{"wire": "B0-A0"}]),
        ("method.replan_s", 20.0),
        ("probe_scale", 1.0),
        ("transport.sack", False),
        ("transport.preset", "ns-2"),
        ("method.first", "relay"),
        ("method.scaled_slot_s", 100.0),
        ("run.control", "free"),
    ):
        assert scenario.with_values({place: value}).sha256 != pinned
