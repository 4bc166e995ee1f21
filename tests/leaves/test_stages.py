"""Stages tell their times and what solvers did in them; steps are counted by the outermost."""

from __future__ import annotations

import logging
import re

import pytest

from datacollect.files.stages import LOG, counting, listening, solving, stage


@pytest.fixture
def logged(caplog):
    """Return what has been logged since the last time, without times."""
    caplog.set_level(logging.DEBUG, logger=LOG.name)

    def logged():
        lines = [re.sub(r"[\d.e-]+ s\b", "T", record.getMessage()) for record in caplog.records]
        caplog.clear()
        return lines

    return logged


def solve(n_arcs, name="lemon"):
    with solving(lambda: name, n_arcs, f"a flow over {n_arcs} arcs"):
        pass


def test_a_stage_counts_the_programs_of_those_within(logged):
    with stage("planning"):
        solve(7)
        with stage("relaxing"):
            solve(9, "ortools")
    assert logged() == [
        "a flow over 7 arcs by lemon took T",
        "a flow over 9 arcs by ortools took T",
        "relaxing took T: 1 program by ortools in T, the largest a flow over 9 arcs",
        "planning took T: 2 programs by lemon, ortools in T, the largest a flow over 9 arcs",
    ]


def test_a_stage_that_fails_says_so(logged):
    with pytest.raises(ZeroDivisionError), stage("planning"):
        raise ZeroDivisionError
    assert logged() == ["planning ended without a result after T"]


def test_nobody_hears_of_stages_who_has_not_asked(capfd):
    with stage("planning"):
        solve(7)
    assert capfd.readouterr() == ("", "")


def test_steps_within_steps_are_not_told():
    heard = []
    with listening(lambda *step: heard.append(step)), counting(2, "methods") as step:
        for _ in range(2):
            with counting(5, "deadlines") as inner:
                inner()
            step()
    assert heard == [(0, 2, "methods"), (1, 2, "methods"), (2, 2, "methods"), (0, 0, "methods")]


def test_steps_after_an_error_are_told_again():
    """What has failed counts no more, and keeps nothing else from being heard."""
    heard = []
    with listening(lambda *step: heard.append(step)):
        with pytest.raises(ZeroDivisionError), counting(2, "methods"):
            raise ZeroDivisionError
        with counting(1, "files") as step:
            step()
    assert heard[1:] == [(0, 1, "files"), (1, 1, "files"), (0, 0, "files")]
