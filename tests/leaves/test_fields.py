"""Whole files: one of another kind is named as such; how each is read is tested in its room."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.problem.fields import PROBLEM
from datacollect.scenario.fields import SCENARIO
from datacollect.schedule.data.fields import SCHEDULE
from datacollect.study.fields import EXPERIMENT
from datacollect.transfer.pull.config.fields import COLLECTION


@pytest.mark.parametrize(
    ("document", "tree", "message"),
    [
        (PROBLEM, {"transfers": []}, "this is a schedule; name the problem file first"),
        (PROBLEM, {"format": "datacollect-agent/1"}, "this is an agent; `datacollect example"),
        (SCHEDULE, {"topology": {}}, "this is a scenario; `datacollect plan -o`"),
        (SCENARIO, {"destination": "D", "hosts": {}}, "this is a problem; write a scenario with"),
        (EXPERIMENT, {"topology": {}, "hosts": {}}, "this is a scenario"),
        (COLLECTION, {"format": "datacollect-problem/1"}, "got 'datacollect-problem/1': this is a"),
    ],
)
def test_a_file_of_another_kind_is_named_as_such(document, tree, message):
    with pytest.raises(dc.ProblemError, match=message):
        document.read(tree)


def test_a_later_version_of_the_same_kind_is_no_other_kind():
    with pytest.raises(dc.ProblemError, match=r"must be \"datacollect-problem/1\", got .*/2'"):
        PROBLEM.read({"format": "datacollect-problem/2"})


def test_an_experiment_has_its_files_name_unless_it_says_another(tmp_path):
    file = tmp_path / "halves.toml"
    file.write_text('engine = "fluid"\n')
    assert EXPERIMENT.from_file(file, lambda tree, _: EXPERIMENT.read(tree))["name"] == "halves"
