"""Experiment files, and the product of their axes."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from instances.small_experiments import METHOD, RATE, SCENARIO, TREE, experiment_of

import datacollect as dc
from datacollect.commands.json_schemas import experiment_schema
from datacollect.files.documents import read_tree
from datacollect.scenario.setting import build
from datacollect.study.seeds import Seeds

EXPERIMENTS = sorted(
    path
    for path in (Path(__file__).resolve().parents[2] / "experiments").glob("*.toml")
    if path.stem not in ("base", "lsl", "ruff")
)


def test_a_run_has_what_its_labels_say_and_its_seed():
    scenario = experiment_of().scenario_of(("500000",), ("direct",), 7)
    assert scenario.section("topology")["rate_bytes_per_s"] == 5e5
    assert scenario.section("method")["name"] == "direct"
    assert scenario.section("run")["seed"] == 7


def test_two_labels_of_the_same_run_are_refused():
    """One lane is the default: whose result would it be?"""
    lanes = {
        "name": "lanes",
        "values": [{"label": "plain"}, {"label": "one", "set": {"method.lanes": 1}}],
    }
    with pytest.raises(
        dc.ProblemError, match=r"lanes = 'plain'.* and lanes = 'one'.* the same run"
    ):
        experiment_of(axes=[lanes, METHOD])
    lanes["values"][1]["set"] = {"method.lanes": 2}
    assert len(experiment_of(axes=[lanes, METHOD]).settings()) == 2


def test_seeds_are_added_in_whole_batches():
    assert Seeds(first=1, batch=5, least=5, most=20).numbers() == [5, 10, 15, 20]
    assert Seeds(first=1, batch=5, least=7, most=12).numbers() == [10, 12]
    assert Seeds(first=3, batch=5, least=2, most=2).numbers() == [2]
    assert Seeds(first=3, batch=5, least=2, most=2).seeds(2) == [3, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": {"least": 5, "most": 4}}, r"seeds.most must be >= seeds.least \(5\), got 4"),
        ({"precision": {"half_width": 0}}, "precision.half_width must be a finite number > 0"),
        ({"precision": {"half_width": -0.1}}, "precision.half_width must be a finite number > 0"),
        ({"precision": {"confidence": 1.0}}, "precision.confidence must be > 0 and < 1, got 1.0"),
        ({"precision": {}, "seeds": {"least": 1}}, "seeds.least must be >= 2 with a precision"),
        ({"precision": {"of": ["makespan"]}}, "did you mean 'makespan_s'"),
        ({"seeds": {"batches": 5}}, "seeds.batches: unknown key; did you mean 'batch'"),
        ({"axes": [{**RATE, "values": []}]}, r"axes\[0\].values must be a list of one value"),
        ({"axes": [{**RATE, "key": "topology.rate_byte_per_s"}]},
         "run rate = '500000', seed 1: topology.rate_byte_per_s: unknown key; did you mean"),
        ({"axes": [{**RATE, "key": "topolgy.rate_bytes_per_s"}]}, "did you mean 'topology'"),
        ({"axes": [{**RATE, "values": [1e6, -1.0]}]},
         "run rate = '-1', seed 1: topology.rate_bytes_per_s must be a finite number"),
        ({"axes": [{**RATE, "values": [1e6, 1e6]}]}, "must have a label of its own, got '1e.06'"),
        ({"axes": [{**RATE, "values": [[1, 2]]}]}, r"axes\[0\].values\[0\] must have a label"),
        ({"axes": [{"name": "rate", "values": [1e6]}]}, "the axis has no key"),
        ({"axes": [{**RATE, "values": [{"label": "x"}]}]}, "value is missing, for the axis' key"),
        ({"axes": [RATE, RATE]}, r"axes\[1\].name must be unique"),
        ({"axes": [{**RATE, "name": "makespan_s"}]}, "must not be a column of the results"),
        ({"set": {"method": {"name": "direct"}}},
         'set.method must not replace a whole table, .* in quotes: "method.name" = ...'),
        ({"engine": "ns2"}, "engine must be one of ns3, fluid"),
        ({"panels": [{"label": "a", "x": "rat", "series": "method"}]},
         r"panels\[0\].x must name an axis, got 'rat'; did you mean 'rate'"),
        ({"panels": [{"label": "a", "x": "rate", "series": "method", "where": {"rate": "5"}}]},
         r"panels\[0\].where.rate must be a label of the axis 'rate', got '5'"),
        ({"axes": [{**METHOD, "values": [
            {"label": "a", "value": "direct", "only": {"rate": ["500000"]}}]}, RATE]},
         "must name an axis that is paired too"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_refused(changes, message):
    with pytest.raises(dc.ProblemError, match=message):
        experiment_of(**changes)


def test_an_experiment_without_a_scenario_is_refused():
    with pytest.raises(dc.ProblemError, match="either a scenario or grids, got neither"):
        dc.Experiment.from_dict(TREE)


def test_messages_begin_with_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('scenario = "none.toml"\n')
    with pytest.raises(dc.ProblemError, match=r"mine.toml: scenario: .*none.toml: no such file"):
        dc.Experiment.from_file(file)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_the_shipped_experiments_are_valid(path):
    experiment = dc.Experiment.from_file(path)
    assert experiment.name == path.stem
    assert experiment.panels
    jsonschema.validate(read_tree(path), experiment_schema())


def test_there_are_shipped_experiments():
    assert {"figure3", "figure4", "figure5", "figure6", "drift"} <= {p.stem for p in EXPERIMENTS}


def test_values_without_their_folder_of_data_are_refused_before_anything_runs(tmp_path):
    named = next(path for path in EXPERIMENTS if path.stem == "drift")
    with pytest.raises(dc.ProblemError, match="needs the folder of data; name it with --data"):
        dc.sweep(named, tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


def test_the_tree_of_an_experiment_names_every_default():
    tree = experiment_of().to_dict()
    assert tree["seeds"] == {"first": 1, "batch": 3, "least": 3, "most": 3}
    assert tree["scenario"]["topology"]["rate_bytes_per_s"] == 1e6
    assert [value["label"] for value in tree["axes"][1]["values"]] == ["500000", "1e+06"]
    assert TREE["axes"][0]["values"] == ["direct", "coordinated"]  # nothing was changed
    assert SCENARIO["name"] == "line"


def test_the_papers_probes_are_5_mb_whatever_the_data_unless_asked_otherwise():
    experiment = dc.Experiment.from_file(EXPERIMENTS[0].parent / "figure3.toml")
    assert experiment.scenario.section("estimates")["how"] == "mean"
    assert experiment.with_scale(0.1).scenario.probe_scale == 1.0
    assert experiment.with_scale(0.1).with_probe_scale(0.1).scenario.probe_scale == 0.1


def test_seeds_can_be_chosen_and_are_taken_in_their_order():
    experiment = experiment_of(seeds={"chosen": [4, 2, 9], "least": 3, "batch": 1})
    assert experiment.seeds.seeds(2) == [4, 2]
    assert experiment.to_dict()["seeds"]["chosen"] == [4, 2, 9]
    assert experiment.sha256 == experiment_of().sha256
    with pytest.raises(dc.ProblemError, match=r"must be <= 3, as seeds.chosen has, got 4"):
        experiment.with_seeds(4)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (
            {"chosen": [1, 2, 1], "least": 3},
            r"seeds.chosen\[2\]: seed 1 is listed twice; remove one",
        ),
        (
            {"chosen": [1, 2], "least": 3},
            "seeds.chosen must name at least 3 seeds, as many as seeds.least",
        ),
        ({"chosen": []}, "seeds.chosen must"),
    ],
)
def test_seeds_chosen_twice_or_too_few_are_refused(seeds, message):
    with pytest.raises(dc.ProblemError, match=message):
        experiment_of(seeds=seeds)


@pytest.mark.slow
def test_the_halves_are_the_first_ten_seeds_of_which_that_holds():
    """Direct's planned bytes over the two wires, from places, backlogs and routes alone."""
    experiment = dc.Experiment.from_file(EXPERIMENTS[0].parent / "halves.toml")
    scenario = experiment.scenario.with_values({"background.flows": 0})
    found = []
    for seed in range(1, 51):
        setting = build(scenario.with_values({"run.seed": seed}))
        network, node = setting.network, setting.network.host_node
        peering = setting.topology.wires_of_kind("peering").tolist()
        over = dict.fromkeys(peering, 0)
        for host, n_bytes in setting.backlog_bytes.items():
            # Wires 2 i and 2 i + 1 are the two ways of wire i.
            for wire in {w // 2 for w in network.path(node[host], node[setting.destination])}:
                if wire in over:
                    over[wire] += n_bytes
        if max(over.values()) <= 0.55 * sum(over.values()):
            found.append(seed)
    assert found == list(experiment.seeds.chosen[:3]) == [26, 28, 50]
