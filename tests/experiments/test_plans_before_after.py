"""Ten problems before and after: what the table says is what plans do."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SITES = "12 sites, one of 10 bytes, a full downlink"


@pytest.fixture(scope="module")
def experiment(scripts):
    return scripts("plans_before_after")


def test_there_are_ten_problems(experiment):
    assert len(experiment.PROBLEMS) == 10


def test_twelve_sites_fill_the_downlink(experiment, capsys):
    """330 GB and 10 bytes at 100 MB/s: 3300 s, however they are planned."""
    experiment.main(["--only", SITES, "--repeats", "1"])
    head, _, before, now = capsys.readouterr().out.splitlines()
    assert head.startswith("| problem | planned | first source | median | last |")
    for line in (before, now):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[4:8] == ["55 min 00 s", "12", "1", "1.0000"]


def test_another_checkout_plans_in_a_process_of_its_own(experiment):
    """This repository beside itself: all but the times is the same."""
    name = "50 released one by one over a relay"
    old = experiment.in_checkout(REPOSITORY, [name], 1)[name]
    new = experiment.measured(name, experiment.dc.coordinated, 1)
    assert {**old, "planning_s": 0.0} == {**new, "planning_s": 0.0}


def test_a_folder_without_the_package_is_refused(experiment, tmp_path):
    with pytest.raises(SystemExit, match="holds no package datacollect"):
        experiment.in_checkout(tmp_path, [SITES], 1)
