"""The command `replan`."""

from __future__ import annotations

import json

import pytest
from instances.replanned import held_tree, plan_over_k, relay_problem
from instances.small_problems import MB

import datacollect as dc
from datacollect.commands.main import run


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """The relay problem, its plan over K, and the progress after 3 s, as files."""
    monkeypatch.chdir(tmp_path)
    problem, plan = relay_problem(), plan_over_k(chunk_s=1.0)
    (tmp_path / "problem.json").write_text(json.dumps(problem.to_dict()))
    plan.to_file(tmp_path / "plan.json")
    progress = dc.Progress.from_schedule(problem, plan, 3.0)
    tree = progress.to_dict(problem) | {"lost_hosts": ["K"]}
    (tmp_path / "progress.json").write_text(json.dumps(tree))
    return tmp_path


FILES = ("problem.json", "plan.json", "progress.json")


def test_the_command_writes_a_schedule_that_check_accepts(collection, capsys):
    written = ("-o", "rest.json", "--problem-output", "rest-problem.json")
    assert run(["replan", *FILES, *written, "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["at_s"] == 3.0
    assert answer["lower_bound_s"] == pytest.approx(1.5)
    assert "note: 1 MB lost with 'K' must be sent again from 'S'" in err
    assert run(["check", "rest-problem.json", "rest.json"]) == 0
    assert capsys.readouterr().out.startswith("valid")


def test_the_command_tells_people_too(collection, capsys):
    assert run(["replan", *FILES, "--chunk", "0", "--stability", "0"]) == 0
    out, _ = capsys.readouterr()
    assert "lower bound   1.5 s" in out


@pytest.mark.parametrize(
    ("edit", "options", "code", "message"),
    [
        ({"at_s": -1}, (), 2, "progress.json: at_s must be a finite number of seconds >= 0"),
        ({"held": [held_tree(offset=8 * MB)]}, (), 2, "progress.json: progress: held data of 'S'"),
        ({"lost_hosts": ["S"]}, (), 1, "lie at 'S' only"),
        ({}, ("--stability", "-1"), 2, "0.01 is 1 %"),
        ({}, ("--problem-output", "rest.toml"), 2, "must name a .json file"),
        ({}, ("--problem-output", "plan.json"), 2, "would overwrite the input"),
        ({}, ("-o", "progress.json"), 2, "would overwrite the input"),
        ({}, ("--slot", "1", "--chunk", "1"), 2, "cannot be combined"),
    ],
)
def test_the_command_says_what_is_wrong(edit, options, code, message, collection, capsys):
    tree = json.loads((collection / "progress.json").read_text())
    (collection / "progress.json").write_text(json.dumps(tree | edit))
    assert run(["replan", *FILES, *options]) == code
    assert message in capsys.readouterr().err.replace("\n", " ")
