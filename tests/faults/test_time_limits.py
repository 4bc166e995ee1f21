"""Slowness is no verdict, a hang is one: what was late is tried again with ten times the time."""

from __future__ import annotations

import sys
import time

import pytest
from faults import copies
from faults.copies import DONE, SAID, Trial
from faults.experiments import SHIM, Experiment
from faults.judge import may_be_slowness
from faults.laboratory import carry_out_all
from faults.time_limits import Late, Waiting, are_longer, carried_out, limit_s, longer

EXPERIMENT = Experiment(
    target="one", injector=SHIM, call="os.open", kind="a.py:b", error="EIO", n=1
)


def judged(tmp_path, run, **how):
    trial = Trial("one", lambda _: None, run, **how)
    return trial.judged(EXPERIMENT, tmp_path / "0")


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(copies, "LIMIT_S", 0.3)


def test_limits_are_longer_in_second_tries_alone():
    assert (limit_s(2), are_longer()) == (2, False)
    with longer():
        assert (limit_s(2), are_longer()) == (20, True)
    assert (limit_s(2), are_longer()) == (2, False)


def test_a_pause_in_which_nobody_could_look_does_not_count(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    waiting = Waiting(1.0)
    now[0] += 400.0  # whoever waits was stopped
    assert not waiting.is_over()
    for _ in range(17):
        now[0] += 0.05
        assert not waiting.is_over()
    now[0] += 0.1
    assert waiting.is_over()


@pytest.mark.usefixtures("hurried")
def test_a_copy_that_is_slow_is_not_called_stuck(tmp_path):
    def run(_folder, _generation):
        time.sleep(0.6)
        return DONE

    assert judged(tmp_path, run) == ""


@pytest.mark.usefixtures("hurried")
def test_a_copy_that_hangs_is_stuck_with_more_time_too(tmp_path):
    def run(_folder, generation):
        time.sleep(60 if generation else 0)
        return DONE

    assert "it is stuck, with 10 times the time" in judged(tmp_path, run)


def test_patience_that_ended_is_no_verdict(tmp_path):
    def run(_folder, generation):
        return DONE if generation == 0 or limit_s(1) > 1 else SAID

    assert judged(tmp_path, run) == ""


def test_what_says_no_with_more_time_too_breaks_a_rule(tmp_path):
    assert "then 3" in judged(tmp_path, lambda *_: SAID)


def test_what_is_late_within_a_copy_is_tried_again(tmp_path):
    def run(_folder, _generation):
        if not are_longer():
            raise Late("no agents come")
        return DONE

    assert judged(tmp_path, run) == ""


def test_what_is_wrong_has_no_second_try(tmp_path):
    tries = []

    def wrong(_folder):
        tries.append(1)
        return "bytes are lost"

    assert judged(tmp_path, lambda *_: DONE, wrong=wrong) == "bytes are lost"
    assert len(tries) == 1


@pytest.mark.parametrize(
    ("found", "may_be"),
    [
        ((), False),
        ((("a", "had not ended after 40 s"),), True),
        ((("e", "status: had not ended after 40 s"), ("g", "again: exit 1")), True),
        ((("?", "the experiment itself failed: AssertionError: S1 is not ready"),), True),
        ((("g", "again: exit 1"), ("d", "W/c has its name and is not whole")), False),
        ((("e", "status says complete; 1 files are not there"),), False),
    ],
)
def test_what_may_be_slowness(found, may_be):
    assert may_be_slowness(found) == may_be


class Bench:
    """A bench whose experiments find what they are told to, first and again."""

    def __init__(self, first, again):
        self.first, self.second, self.n_at_work, self.trace = first, again, 0, []

    def carry_out(self, experiment):
        self.trace.append(("first", experiment))
        return Result(experiment, self.first.get(experiment, ()))

    def again(self, experiment):
        self.trace.append(("again", experiment))
        return Result(experiment, self.second.get(experiment, ()))


class Result:
    def __init__(self, key, findings):
        self.key, self.findings = key, findings


def test_what_may_have_been_slow_is_tried_again_in_the_end_and_that_counts():
    late, wrong = (("g", "again: exit 1"),), (("d", "not whole"),)
    bench = Bench({"slow": late, "hangs": late, "wrong": wrong}, {"hangs": late})
    taken = []
    for _ in carry_out_all([bench], ["slow", "wrong", "hangs", "well"], taken.append):
        pass
    assert bench.trace[4:] == [("again", "slow"), ("again", "hangs")]
    assert {result.key: result.findings for result in taken} == {
        "slow": (),
        "wrong": wrong,
        "hangs": late,
        "well": (),
    }


def test_what_may_have_been_slow_stays_to_be_done_where_time_is_up():
    bench = Bench({"slow": (("g", "again: exit 1"),)}, {})
    taken, until_s = [], time.monotonic() + 0.2

    def carry_out(experiment, real=bench.carry_out):
        time.sleep(0.3)
        return real(experiment)

    bench.carry_out = carry_out
    for _ in carry_out_all([bench], ["slow"], taken.append, until_s=until_s):
        pass
    assert taken == []


def test_a_command_is_carried_out_or_late():
    done = carried_out([sys.executable, "-c", "print('well')"], 60.0)
    assert (done.returncode, done.stdout) == (0, "well\n")
    with pytest.raises(Late, match="has not ended"):
        carried_out(["sleep", "60"], 0.1)


def test_what_is_planned_is_counted_by_a_run_that_has_ended_well(tmp_path):
    """A machine that stands still for a while makes one run fail, and not all that depend on it."""
    n_runs = tmp_path / "n"
    n_runs.write_text("")

    def run(_folder, _generation):
        with n_runs.open("a") as file:
            file.write("x")
        return SAID if n_runs.read_text() == "x" else DONE

    assert Trial("one", lambda _: None, run)._plan(tmp_path) == []
    assert n_runs.read_text() == "xx"
