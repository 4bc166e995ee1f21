"""A sweep ends with the same table however it is carried out, interrupted, or hurt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from conftest import NO_DASK, NO_PROC
from small_experiments import (
    METHOD,
    SMALL_JOBS,
    experiment_of,
    files_of,
    set_small_jobs,
    without_times,
)

import datacollect as dc
from datacollect.cli import run as run_command
from datacollect.errors import NotWrittenError
from datacollect.experiment import Precision
from datacollect.run_rows import COLUMNS
from datacollect.run_store import RunStore
from datacollect.scenario import naming
from datacollect.sweep_plan import SweepPlan, is_precise


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """The table of an undisturbed sweep in one process."""
    return dc.sweep(experiment_of(), tmp_path_factory.mktemp("serial"), workers=0)


def test_every_run_of_the_product_has_a_row(serial):
    """2 methods x 2 rates x 3 seeds; the only link is used by both methods alike."""
    assert len(serial) == 12
    assert serial["key"].is_monotonic_increasing
    assert serial["key"].nunique() == 12
    assert list(serial) == ["rate", *COLUMNS]
    assert serial.groupby(["method", "rate"])["seed"].apply(sorted).tolist() == [[1, 2, 3]] * 4
    assert serial["complete"].all()
    bytes_over_rate = serial["collected_bytes"] / serial["rate"].astype(float)
    assert serial["makespan_s"].tolist() == pytest.approx(bytes_over_rate.tolist())
    assert (serial["storage_mean"] == 1.0).all()


def test_all_ways_of_a_seed_meet_the_same_backlog(serial):
    backlogs = serial.groupby(["rate", "seed"])["collected_bytes"]
    assert (backlogs.min() == backlogs.max()).all()
    assert serial.groupby("seed")["collected_bytes"].first().nunique() == 3


def test_a_second_start_runs_nothing_and_returns_the_same(tmp_path, monkeypatch):
    first = dc.sweep(experiment_of(), tmp_path, workers=0)
    monkeypatch.setattr("datacollect.sweep_jobs.carry_out", None)
    again = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(first, pd.read_parquet(tmp_path / "results.parquet"))


def test_more_seeds_and_other_parts_are_added_to_what_is_there(tmp_path, serial):
    part = dc.sweep(experiment_of(), tmp_path, workers=0, seeds_most=1, only={"rate": ["500000"]})
    assert len(part) == 2
    whole = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(whole), without_times(serial))


def test_half_written_and_foreign_files_are_left_out_and_made_again(tmp_path, serial):
    dc.sweep(experiment_of(), tmp_path, workers=0)
    shards = sorted((tmp_path / "shards").glob("*.parquet"))
    shards[0].write_bytes(shards[0].read_bytes()[:100])
    (tmp_path / "runs" / "abc.json").write_text('{"format": "datacollect-sweep-run/1", "row": ')
    (tmp_path / "runs" / "abd.json").write_text('{"format": "datacollect-sweep-run/1", "row": {}}')
    (tmp_path / "runs" / ".x.json.1.tmp").write_text("{")
    again = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(again), without_times(serial))


def test_a_run_that_fails_is_noted_and_stops_no_other(tmp_path, serial):
    """A node that the line does not have: only building the network finds out."""
    place = {"name": "at", "key": "hosts.destination.at", "values": ["N1", "N7"]}
    experiment = experiment_of(axes=[METHOD, place])
    table = dc.sweep(experiment, tmp_path, workers=0)
    assert set(table["at"]) == {"N1"}
    assert len(table) == 6
    notes = [json.loads(file.read_text()) for file in (tmp_path / "failed").glob("*.json")]
    assert len(notes) == 6
    assert {note["seed"] for note in notes} == {1, 2, 3}
    assert all("hosts.destination.at" in note["reason"] for note in notes)
    assert all(note["labels"]["at"] == "N7" for note in notes)


def test_failed_runs_are_tried_again_when_asked(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise dc.SimulationError("out of luck")

    with monkeypatch.context() as luck:
        luck.setattr("datacollect.sweep_jobs.carry_out", fail)
        assert dc.sweep(experiment_of(), tmp_path, workers=0).empty
    assert dc.sweep(experiment_of(), tmp_path, workers=0).empty
    assert len(dc.sweep(experiment_of(), tmp_path, workers=0, retry_failed=True)) == 12
    assert not list((tmp_path / "failed").iterdir())


def test_a_folder_of_another_experiment_is_refused_and_left_alone(tmp_path):
    dc.sweep(experiment_of(), tmp_path, workers=0)
    before = {name: (tmp_path / name).read_bytes() for name in files_of(tmp_path)}
    others = {
        "holds results of the experiment 'small', not 'other'": experiment_of(name="other"),
        "of the name 'small': scenario differ": experiment_of(scale=0.5),
        "of the name 'small': axes differ": experiment_of(axes=[METHOD]),
    }
    for message, other in others.items():
        with pytest.raises(dc.ProblemError, match=message):
            dc.sweep(other, tmp_path, workers=0)
    assert {name: (tmp_path / name).read_bytes() for name in files_of(tmp_path)} == before


def test_results_of_other_versions_are_not_mixed(tmp_path, monkeypatch):
    dc.sweep(experiment_of(), tmp_path, workers=0)
    older = {"datacollect": "0.0.1", "numpy": "1.0"}
    monkeypatch.setattr("datacollect.sweep_jobs.versions", lambda: older)
    with pytest.raises(dc.ProblemError, match=r"results of datacollect .*, here is 0\.0\.1"):
        dc.sweep(experiment_of(), tmp_path, workers=0)


def test_one_sweep_at_a_time_in_a_folder(tmp_path):
    messages = []

    def meanwhile(_):
        try:
            dc.sweep(experiment_of(), tmp_path, workers=0)
        except dc.ProblemError as error:
            messages.append(str(error))

    dc.sweep(experiment_of(), tmp_path, workers=0, progress=meanwhile)
    assert "another sweep is running in this folder" in messages[0]


def test_a_sweep_that_is_refused_leaves_the_folder_as_it_is(tmp_path):
    """Another number of seeds is no other experiment; but the folder is another sweep's now."""
    before = []

    def meanwhile(_):
        text = (tmp_path / "experiment.json").read_text()
        with pytest.raises(dc.ProblemError, match="another sweep is running"):
            dc.sweep(experiment_of(), tmp_path, workers=0, seeds_most=9)
        before.append((tmp_path / "experiment.json").read_text() == text)

    dc.sweep(experiment_of(), tmp_path, workers=0, progress=meanwhile)
    assert before
    assert all(before)


def test_a_copy_of_the_folder_elsewhere_is_not_taken_for_it(tmp_path):
    """A worker on another machine may have a folder of the same name and experiment."""
    for name in ("here", "elsewhere"):
        dc.sweep(experiment_of(), tmp_path / name, workers=0, seeds_most=1)
    token = json.loads((tmp_path / "here" / "experiment.json").read_text())["token"]
    store = RunStore(tmp_path / "here", "any", (), token)
    assert store.is_here()
    assert not replace(store, folder=tmp_path / "elsewhere").is_here()
    dc.sweep(experiment_of(), tmp_path / "here", workers=0)
    assert store.is_here()


def test_a_disk_that_is_full_while_measuring_is_no_fault_of_the_run(tmp_path, monkeypatch):
    def measure(*_, **__):
        with naming("method"):
            raise NotWrittenError("probes: cannot be written: No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("datacollect.sweep_jobs.carry_out", measure)
        with pytest.raises(dc.ProblemError, match="No space left"):
            dc.sweep(experiment_of(), tmp_path, workers=0)
    assert not list((tmp_path / "failed").iterdir())
    assert len(dc.sweep(experiment_of(), tmp_path, workers=0)) == 12


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(dc.ProblemError, match="folder of results cannot be made"):
        dc.sweep(experiment_of(), tmp_path / "file" / "out", workers=0)


def test_a_full_disk_ends_the_sweep_and_leaves_earlier_results(tmp_path):
    """Files of more than 2 kB cannot be written, as if the disk were full."""
    first = dc.sweep(experiment_of(), tmp_path, workers=0, seeds_most=1)
    done = run_script(
        """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
try:
    dc.sweep(experiment_of(), sys.argv[1], workers=0)
except dc.ProblemError as error:
    print(error)
""",
        tmp_path,
    )
    assert "cannot be written: File too large" in done
    table = pd.read_parquet(tmp_path / "results.parquet")
    assert len(table) == len(first) == 4
    assert len(dc.sweep(experiment_of(), tmp_path, workers=0)) == 12


# Precision ----------------------------------------------------------------------------------


def test_the_half_width_is_students():
    """Of 1, 2, 3: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.3027: 2.4841 or 1.24205 x."""
    for half_width, reached in ((1.2421, True), (1.242, False)):
        wanted = Precision(half_width, 0.95, ("makespan_s",))
        assert is_precise([1.0, 2.0, 3.0], wanted) is reached


def test_seeds_are_added_until_every_method_is_precise(tmp_path):
    """Backlogs are uniform from 1 to 9 MB, so makespans vary by half of their mean."""
    seeds = {"batch": 4, "least": 4, "most": 40}
    experiment = experiment_of(seeds=seeds, precision={"half_width": 0.3})
    table = dc.sweep(experiment, tmp_path, workers=0)
    wanted = experiment.precision
    for _, rows in table.groupby("rate"):
        n = rows["seed"].nunique()
        assert n % 4 == 0
        assert n < 40
        for k in range(4, n + 1, 4):
            first = rows[rows["seed"] <= k].groupby("method")["makespan_s"]
            assert first.apply(lambda s: is_precise(s.tolist(), wanted)).all() == (k == n)
    within = dc.sweep(experiment_of(seeds=seeds), tmp_path, workers=0, seeds_most=4)
    pd.testing.assert_frame_equal(within, table)  # nothing is lost by asking for less


def test_the_number_of_seeds_is_bounded(tmp_path):
    seeds = {"batch": 2, "least": 2, "most": 5}
    experiment = experiment_of(seeds=seeds, precision={"half_width": 1e-9})
    assert set(dc.sweep(experiment, tmp_path, workers=0)["seed"]) == {1, 2, 3, 4, 5}


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


# Processes ----------------------------------------------------------------------------------


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import datacollect as dc
from small_experiments import experiment_of, RATE, METHOD
if __name__ == "__main__":
"""


def script_of(code, folder):
    """Write a script, which spawned processes can load again."""
    path = folder.with_name(f"{folder.name}.py")
    tests = str(Path(__file__).resolve().parents[1])
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    path.write_text(SCRIPT.format(tests=tests) + lines)
    return [sys.executable, str(path), str(folder)]


def run_script(code, folder):
    done = subprocess.run(
        script_of(code, folder), capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_make_the_same_table(tmp_path, serial):
    table = dc.sweep(experiment_of(), tmp_path, workers=2)
    pd.testing.assert_frame_equal(without_times(table), without_times(serial))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """The table of a longer sweep, undisturbed: 2 methods x 2 rates x 60 seeds."""
    return dc.sweep(many_seeds(), tmp_path_factory.mktemp("many"), workers=0)


def many_seeds():
    return experiment_of(seeds={"least": 60})


def workers_of(pid):
    """Return the processes for runs that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if b"spawn_main" in command_of(int(child))]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_until(condition, what):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"waited a minute: {what}")


# Thirty jobs, at most four to a pause: it takes over a second after the first are finished.
PAUSING_SWEEP = f"""
import time
import datacollect.sweep_plan, datacollect.sweeping
datacollect.sweep_plan.FLUID_RUNS, datacollect.sweeping.TELL_S = {SMALL_JOBS}
experiment = experiment_of(seeds={{'least': 60}})
dc.sweep(experiment, sys.argv[1], workers=2, progress=lambda _: time.sleep(0.2))
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason=NO_PROC)


@needs_proc
def test_a_killed_worker_loses_only_what_it_had_in_hand(tmp_path, many, monkeypatch):
    set_small_jobs(monkeypatch)
    killed = []

    def kill_one(now):
        if now.done and not killed:
            killed.append(workers_of(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    table = dc.sweep(many_seeds(), tmp_path, workers=2, progress=kill_one)
    pd.testing.assert_frame_equal(without_times(table), without_times(many))
    assert killed
    assert not list((tmp_path / "failed").iterdir())


@needs_proc
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_killed_or_interrupted_goes_on_at_the_next_start(tmp_path, many, how):
    folder = tmp_path / "out"
    script = script_of(PAUSING_SWEEP, folder)
    with subprocess.Popen(script, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: list(folder.glob("shards/*.parquet")), "for the first results")
        workers = workers_of(process.pid)
        process.send_signal(how)
        assert process.wait(timeout=30) != 0
    wait_until(lambda: not any(map(command_of, workers)), "for its workers to end")
    n_kept = sum(len(pd.read_parquet(file)) for file in folder.glob("shards/*.parquet"))
    assert 0 < n_kept < len(many)
    if how == signal.SIGINT:
        assert len(pd.read_parquet(folder / "results.parquet")) == n_kept
    table = dc.sweep(many_seeds(), folder, workers=0)
    pd.testing.assert_frame_equal(without_times(table), without_times(many))


# The command --------------------------------------------------------------------------------


@pytest.fixture
def experiment_file(tmp_path):
    (tmp_path / "line.toml").write_text(
        """
topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }
hosts = { destination = { at = "N1" }, sources = [{ name = "S", at = "N0" }] }
backlog = { least_bytes = 1_000_000, most_bytes = 9_000_000 }
""",
        encoding="utf-8",
    )
    path = tmp_path / "rates.toml"
    path.write_text(
        """
scenario = "line.toml"
engine = "fluid"
seeds = { least = 2 }
[[axes]]
name = "method"
key = "method.name"
paired = true
values = ["direct", "coordinated"]
[[axes]]
name = "rate"
key = "topology.rate_bytes_per_s"
values = [500_000, 1_000_000]
""",
        encoding="utf-8",
    )
    return path


def test_the_command_runs_a_part_and_says_what_is_there(experiment_file, tmp_path, capsys):
    out = str(tmp_path / "out")
    command = ["sweep", str(experiment_file), "-o", out, "--workers", "0", "--only"]
    assert run_command([*command, "rate=500000", "--only", "method=direct"]) == 0
    captured = capsys.readouterr()
    assert "2 in" in captured.out
    assert "1 of 1 finished" in captured.out
    assert "2 runs done, 0 to do" not in captured.out
    assert run_command([*command, "rate=500000,1000000"]) == 0
    assert "8 in" in capsys.readouterr().out


def test_the_command_fails_where_runs_failed(experiment_file, tmp_path, capsys):
    text = experiment_file.read_text()
    experiment_file.write_text(
        text.replace("engine", 'set = {"hosts.destination.at" = "N9"}\nengine')
    )
    command = ["sweep", str(experiment_file), "-o", str(tmp_path / "out"), "--workers", "0"]
    assert run_command(command) == 3
    captured = capsys.readouterr()
    assert "failed    8" in captured.out
    assert "hosts.destination.at" in captured.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "rate"], "--only must be AXIS=LABEL,LABEL, got 'rate'"),
        (["--only", "rat=1"], "did you mean 'rate'"),
        (["--workers", "2", "--dask", "tcp://localhost:1"], "exclude each other"),
        (["--dask", "tcp://127.0.0.1:1"], "no Dask scheduler answers at 'tcp://127.0.0.1:1'"),
    ],
)
def test_bad_usage_exits_with_2(experiment_file, tmp_path, capsys, options, message, monkeypatch):
    monkeypatch.setattr("datacollect.sweep_pools.DASK_TIMEOUT_S", 1)
    if options[0] == "--dask":
        pytest.importorskip("distributed", reason=NO_DASK)
    command = ["sweep", str(experiment_file), "-o", str(tmp_path / "out"), *options]
    assert run_command(command) == 2
    assert message in capsys.readouterr().err


# Measured tables ----------------------------------------------------------------------------


def test_problems_are_drawn_from_tables_and_judged_on_later_ones(tmp_path):
    """One link from S to D: planned at 8 Mbit/s, really 4: 1 MB takes 2 s instead of 1."""
    header = "src,dst,received_bps\n"
    (tmp_path / "early.csv").write_text(header + "A,B,8e6\nB,A,8e6\n")
    (tmp_path / "late.csv").write_text(header + "A,B,4e6\nB,A,3e6\nB,A,5e6\n")
    tree = {
        "engine": "fluid",
        "grids": {
            "planned_csv": "{data}/early.csv",
            "truth_csv": "{data}/late.csv",
            "sources": 1,
            "backlog_bytes": 1_000_000,
        },
        "seeds": {"least": 3},
        "axes": [
            METHOD,
            {"name": "share", "key": "grids.share", "values": [1.0, 0.5]},
        ],
    }
    experiment = dc.Experiment.from_dict(tree, data=tmp_path)
    table = dc.sweep(experiment, tmp_path / "out", workers=0)
    assert len(table) == 12
    for share, factor in (("1", 1.0), ("0.5", 2.0)):
        rows = table[table["share"] == share]
        assert rows["predicted_s"].tolist() == pytest.approx([factor] * 6, rel=2e-3)
        assert rows["makespan_s"].tolist() == pytest.approx([2 * factor] * 6, rel=2e-3)
    (tmp_path / "late.csv").write_text(header + "A,B,2e6\nB,A,2e6\n")
    with pytest.raises(dc.ProblemError, match="the files that it names differ"):
        dc.sweep(experiment, tmp_path / "out", workers=0)


def test_tables_with_too_few_hosts_or_other_columns_are_refused(tmp_path):
    (tmp_path / "g.csv").write_text("src,dst,received_bps\nA,B,8e6\nB,A,8e6\n")
    grids = {"planned_csv": "g.csv", "truth_csv": "g.csv", "sources": 2, "backlog_bytes": 1}
    for change, message in (
        ({}, "2 hosts are in all tables, fewer than the 3"),
        ({"columns": ["from", "to", "rate"]}, "name the table's columns in grids.columns"),
    ):
        tree = {"engine": "fluid", "grids": {**grids, **change}, "seeds": {"least": 1}}
        experiment = dc.Experiment.from_dict(tree, tmp_path)
        with pytest.raises(dc.ProblemError, match=message):
            dc.sweep(experiment, tmp_path / f"out of {len(change)}", workers=0)


def test_drift_of_the_measured_grids(cloud_grids, tmp_path):
    """Direct plans on nothing; no plan made on what really holds beats its lower bound."""
    path = Path(__file__).resolve().parents[2] / "experiments" / "drift.toml"
    part = {"links": ["a quarter"]}
    table = dc.sweep(path, tmp_path, workers=0, data=cloud_grids, seeds_most=2, only=part)
    assert len(table) == 12
    direct = table[table["method"] == "direct"].groupby("seed")["makespan_s"]
    assert (direct.max() == direct.min()).all()
    informed = table[table["planned"] == "november"]
    assert (informed["makespan_s"] >= informed["lower_bound_s"] * (1 - 1e-6)).all()
