"""``datacollect simulate``: answers for people and programs, files, exit codes."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import datacollect as dc
from datacollect.commands.main import run
from datacollect.examples import example_files, scenario_names
from datacollect.scenario.setting import build
from datacollect.simulation.ns3 import process as ns3_process


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with the small scenario in it; caches stay out of home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert run(["example", "scenario_small"]) == 0
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run ``simulate`` as a fluid; return exit code, standard output and standard error."""

    def call(*arguments, engine="fluid"):
        capsys.readouterr()
        code = run(["simulate", "scenario_small.toml", "--engine", engine, *arguments])
        return code, *capsys.readouterr()

    return call


def test_people_read_makespan_sources_storage_and_background(here, call):
    code, out, err = call("--method", "best-path")
    assert (code, err) == (0, "")
    assert "scenario   scenario_small, seed 1" in out
    assert "measured/predicted" in out
    assert "collected  12 MB of 12 MB" in out
    assert all(f"\nS{i} " in out for i in (1, 2, 3))
    assert "others' at most" in out
    assert "background  flows" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_people_read_how_often_the_rest_was_planned_anew(here, call):
    file = here / "scenario_small.toml"
    tenth = file.read_text().replace("\n[topology]", "\nscale = 0.1\n[topology]")
    file.write_text(tenth + "\n[method]\nreplan_s = 0.5\n")
    code, out, err = call()
    assert (code, err) == (0, "")
    replanning = json.loads(call("--json")[1])["settings"]["replanning"]
    assert replanning["at_s"][:2] == [0.5, 1.0]
    assert f"re-planned  {replanning['replans']} times, at 0.5 s, 1 s" in out
    assert "open at once" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_programs_get_one_json_object(here, call):
    code, out, err = call("--json", "--method", "coordinated")
    assert (code, err) == (0, "")
    tree = json.loads(out)
    assert tree["complete"] is True
    assert tree["collected_bytes"] == 12_000_000
    ratio = tree["makespan_s"] / tree["predicted_makespan_s"]
    assert tree["measured_over_predicted"] == pytest.approx(ratio)
    assert max(tree["source_finish_s"].values()) == tree["makespan_s"]
    assert tree["settings"]["scenario"]["method"]["name"] == "coordinated"
    assert tree["settings"]["scenario"]["transport"]["syn_retries"] == 20


def test_same_seed_same_answer_another_differs(here, call):
    answers = [json.loads(call("--json", "--seed", seed)[1]) for seed in ("1", "1", "2")]
    times = [answer["makespan_s"] for answer in answers]
    assert times[0] == times[1] != times[2]


@pytest.mark.parametrize("tables", ["csv", "parquet"])
def test_files_say_what_the_answer_says(tables, here, call):
    code, out, _ = call("-o", "runs/one", "--tables", tables, "--json")
    assert code == 0
    tree = json.loads(out)
    folder = here / "runs/one"
    saved = json.loads((folder / "run.json").read_text())
    for answer in (tree, saved):  # processor times differ
        answer.pop("cpu_s")
    in_json = saved.pop("tables")
    assert saved.keys() == tree.keys()
    assert saved["makespan_s"] == tree["makespan_s"]
    read = pd.read_csv if tables == "csv" else pd.read_parquet
    routes = read(folder / f"routes.{tables}")
    assert routes.loc[routes["to"] == "D", "bytes"].sum() == pytest.approx(12_000_000, abs=20)
    for name, columns in in_json.items():
        table = read(folder / f"{name}.{tables}")
        assert list(columns) == list(table.columns)
        assert len(next(iter(columns.values()))) == len(table)
    assert in_json["storage"]["others_bytes"] == pytest.approx(
        read(folder / f"storage.{tables}")["others_bytes"].tolist()
    )
    assert {"storage", "background", "wires", "connections", "samples"} <= {
        file.stem for file in folder.iterdir()
    }
    # What was planned can be looked at, and carried out again.
    assert run(["check", str(folder / "problem.json"), str(folder / "schedule.json")]) == 0
    code, out, _ = call("--json", "--schedule", str(folder / "schedule.json"))
    assert json.loads(out)["makespan_s"] == tree["makespan_s"]


def test_a_run_over_the_limit_is_shown_as_far_as_it_got(here, call):
    code, out, err = call("--time-limit", "3", "--json", "-o", "part")
    assert code == 1
    tree = json.loads(out)
    assert tree["complete"] is False
    assert tree["makespan_s"] is None
    assert 0 < tree["collected_bytes"] < 12_000_000
    assert "incomplete" in err
    assert "--time-limit" in err
    assert json.loads((here / "part/run.json").read_text())["complete"] is False
    code, out, _ = call("--time-limit", "3")
    assert code == 1
    assert "makespan   incomplete (predicted" in out


def test_without_ns3_the_error_names_the_command_and_the_other_engine(here, call, monkeypatch):
    monkeypatch.setattr(ns3_process.importlib.util, "find_spec", lambda _: None)
    code, out, err = call(engine="ns3")
    assert (code, out) == (3, "")
    assert "scenario 'scenario_small'" in err
    assert "pip install" in err
    assert "[ns3]' (it needs a C++ compiler" in err
    assert "--engine fluid" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "fast"], "'direct', 'best-path', 'coordinated'"),
        (["--engine", "ns2"], "'ns3', 'fluid'"),
        (["--seed", "-1"], "'--seed'"),
        (["--time-limit", "0"], "run.time_limit_s must be a finite number of seconds > 0"),
        (["--schedule", "no.json"], "no.json: no such file"),
        (["--schedule", "no.json", "--method", "direct"], "cannot be combined"),
        (["-o", "scenario_small.toml"], "scenario_small.toml: cannot be made"),
    ],
)
def test_wrong_usage_is_bad_input(arguments, message, here, call):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_bad_scenario_is_named_with_its_file(here, call):
    file = here / "scenario_small.toml"
    file.write_text(file.read_text().replace("flows = 4", "flows = -4"))
    code, _, err = call()
    assert code == 2
    rule = "background.flows must be a whole number >= 0, got -4"
    assert f"error: scenario_small.toml: {rule}" in err


def test_a_problem_file_is_not_a_scenario(here, capsys):
    run(["example", "minimal"])
    assert run(["simulate", "minimal.toml", "--engine", "fluid"]) == 2
    assert "this is a problem; write a scenario" in capsys.readouterr().err


def test_background_that_nobody_meets_is_noted(here, call):
    (here / "scenario_small.toml").write_text(
        """
        [topology]
        kind = "line"
        n_nodes = 4
        rate_bytes_per_s = 1e6
        [hosts]
        destination = { at = "N0" }
        sources = [{ at = "N1", backlog_bytes = 1000 }]
        [background]
        pairs = [{ from = "N3", to = "N2" }]
        """
    )
    code, _, err = call()
    assert code == 0
    assert err.startswith("warning: background flow 0 (N3 -> N2) shares no wire")


def test_a_terminal_shows_progress(here, call, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = call("--json")
    assert code == 0
    json.loads(out)
    assert "building" in err or "simulating" in err or "reading" in err


@pytest.mark.parametrize("name", scenario_names())
def test_the_commands_in_an_example_s_comment_run(name, here, capsys):
    text = example_files(name)[f"{name}.toml"]
    lines = [line.removeprefix("#   ") for line in text.splitlines()]
    commands = [line.split()[1:] for line in lines if line.startswith("datacollect ")]
    assert len(commands) == 3
    for command in commands:
        assert run(command) == 0
    assert "error" not in capsys.readouterr().err


def test_the_small_scenario_shows_what_its_first_line_says():
    """Coordination pays there, but less than the plan promises: its routes share wires."""
    file = example_files("scenario_small")["scenario_small.toml"]
    runs = {
        method: dc.simulate(tomllib.loads(file), engine="fluid", method=method)
        for method in ("direct", "coordinated")
    }
    assert runs["coordinated"].makespan_s < 0.9 * runs["direct"].makespan_s
    assert runs["coordinated"].makespan_s > runs["coordinated"].settings["predicted_makespan_s"]


def test_the_base_scenario_is_the_paper_s():
    scenario = dc.Scenario.from_file(Path(__file__).parents[2] / "experiments/base.toml")
    setting = build(scenario)
    assert setting.topology.n_nodes == 152 + 8
    assert sum(setting.backlog_bytes.values()) == 350_000_000
    assert all(25e6 <= size <= 75e6 for size in setting.backlog_bytes.values())
    assert len(setting.backlog_bytes) == 7
    assert len(setting.network.background) == 60
    run = dc.simulate(scenario.with_values({"scale": 0.1}), engine="fluid")
    assert run.complete


# With ns-3, where it is installed ----------------------------------------------------------------


@pytest.fixture
def idle_line(ns3):
    """1 MB over a wire of 2.5 Mbit/s, 10 ms, without loss: queues hold all of it."""
    queue = {"queue_packets": 1000}
    return dc.Scenario.from_dict(
        {
            "topology": {
                "kind": "line",
                "n_nodes": 2,
                "rate_bytes_per_s": 312_500,
                "delay_s": 0.01,
                **queue,
            },
            "hosts": {
                "access": {"rate_bytes_per_s": 1.25e8, "delay_s": 0.0, **queue},
                "destination": {"at": "N1"},
                "sources": [{"at": "N0", "backlog_bytes": 1_000_000}],
            },
            "estimates": {"probe_bytes": 1_000_000, "repeats": 1},
        }
    )


@pytest.fixture
def ns3():
    if find_spec("ns3") is None:
        from conftest import NO_NS3

        pytest.skip(NO_NS3)


def test_packets_take_what_arithmetic_says_and_the_plan_promised(idle_line):
    """1 MB and 54 bytes for each 1448: 3.319 s, and 30 ms until the first byte is there."""
    run = dc.simulate(idle_line, method="direct")
    expected = 1_000_000 * 1502 / 1448 / 312_500
    assert run.makespan_s == pytest.approx(expected + 0.03, rel=0.01)
    # The probe was the same transfer.
    assert run.settings["predicted_makespan_s"] == pytest.approx(run.makespan_s, rel=0.01)
    exact = dc.simulate(idle_line.with_values({"estimates.kind": "exact"}))
    assert exact.settings["predicted_makespan_s"] == pytest.approx(exact.makespan_s, rel=0.03)


def test_methods_meet_the_same_background(ns3, here):
    scenario = dc.Scenario.from_file("scenario_small.toml").with_values(
        {"estimates.kind": "exact", "scale": 0.1, "run.warm_up_s": 5.0}
    )
    runs = [dc.simulate(scenario, method=method) for method in ("direct", "coordinated")]
    before = [run.background[run.background["phase"] == "before"] for run in runs]
    assert (before[0]["goodput_bytes_per_s"] > 0).any()
    pd.testing.assert_frame_equal(*before, check_exact=True)
    assert all(run.complete and run.collected_bytes == 1_200_000 for run in runs)
