"""Exported scripts move real files: by a relay, in ranges, at limited rates, hostile names."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import need
from instances.exported_scripts import without_times
from instances.range_server import Valve, serving
from instances.real_files import RELAY, make_files, problem_of_files, same_files

import datacollect as dc
from datacollect.commands.main import run
from datacollect.exports.arrived import progress_tree, read_arrived
from datacollect.exports.export import export
from datacollect.exports.script_texts import script_name
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import read_manifest

STARTED = []


@pytest.fixture
def files(tmp_path):
    make_files(tmp_path)
    (tmp_path / "K").mkdir()
    (tmp_path / "into").mkdir()
    yield tmp_path
    # Where a test fails, nothing of it runs on.
    for process in STARTED:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    STARTED.clear()


def exported(folder, problem, plan, kind, base):
    is_url = kind in ("curl", "aria2")
    own = [f"{base}/{{source}}/{{path}}"]
    relayed = [f"{RELAY}={base}/K/{{source}}/{{path}}"]
    templates = read_templates(own, relayed, problem.names, is_url=is_url)
    manifest = read_manifest(folder / "files.csv")
    found = export(problem, plan, manifest, kind, templates, piece_bytes=140_000)
    scripts = folder / "scripts"
    scripts.mkdir(exist_ok=True)
    for name, text in found.texts.items():
        (scripts / name).write_text(text, encoding="utf-8")
    return found


def start(folder, host, into, shell="sh"):
    environment = {"DATACOLLECT_PATIENCE_S": "20", **os.environ, "RCLONE_CONFIG": os.devnull}
    environment |= {"DATACOLLECT_EVERY_S": "0.05", "DATACOLLECT_TRIES": "2"}
    script = folder / "scripts" / script_name(host)
    process = subprocess.Popen(
        [shell, str(script), str(folder / into)],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    STARTED.append(process)
    return process


def ended(process):
    output, _ = process.communicate(timeout=600)
    STARTED.remove(process)
    return process.returncode, without_times(output)


def both(folder):
    """Run the relay's and the destination's scripts; return exit codes and all that they say."""
    relay, destination = start(folder, RELAY, "K"), start(folder, "D", "into")
    (last, said), (first, also) = ended(destination), ended(relay)
    return (first, last), said + also


def parts_in(folder):
    """Return the sizes of what is not whole yet; what is renamed meanwhile is not there."""
    sizes = {}
    for place, _, names in os.walk(folder):  # which passes over folders that go meanwhile
        for path in (Path(place, name) for name in names if name.endswith((".part", ".new"))):
            with suppress(FileNotFoundError):
                sizes[path] = path.stat().st_size
    return sizes


def wait_until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("nothing arrives")


def arrived_bytes(folder, into):
    ranges = read_arrived(str(folder / into), read_manifest(folder / "files.csv"), "D").ranges
    return sum(each.total_bytes for each in ranges.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["curl", "aria2", "rclone", "rsync"])
def test_all_files_arrive_as_they_are(files, kind):
    need(kind)
    problem = problem_of_files(4_000_000.0)
    plan = dc.coordinated(problem)
    with serving(files) as url:
        exported(files, problem, plan, kind, url if kind in ("curl", "aria2") else files)
        assert both(files) == ((0, 0), "D: done\nre/lay: done\n")
    assert same_files(files, files / "into")
    assert not (files / "pwned").exists()
    own = files / "into" / ".datacollect"
    left = {path.relative_to(own) for path in own.rglob("*") if path.is_file()}
    # Of each file under its name, by which hash it was proved.
    noted = {path for path in left if path.parts[0] == "placed"}
    assert {path.name for path in left - noted} <= {"export.json", "lock", "plan", "started"}, left
    assert all((files / "into" / path.relative_to("placed")).is_file() for path in noted)


@pytest.mark.slow
def test_killed_half_way_measured_planned_anew_and_finished(files, capsys):
    """As users do it: the plan, scripts, a break, progress, replan, the rest; in some 4 s.

    Before the break the server gives half of each file, and no more.
    """

    def call(*words):
        return run([str(files / word) if word in FILES else word for word in words])

    problem = problem_of_files(150_000.0)
    (files / "problem.json").write_text(json_of(problem.to_dict()))
    assert call("plan", "problem.json", "-o", "plan.json") == 0
    valve = Valve()
    with serving(files, valve=valve) as url:
        where = ["--url", f"{url}/{{source}}/{{path}}"]
        where += ["--relay-url", f"{RELAY}={url}/K/{{source}}/{{path}}"]
        as_curl = ["--as", "curl", "--manifest", "files.csv", *where, "--piece-bytes", "60000"]
        assert call("pulls", "problem.json", "plan.json", *as_curl, "-o", "scripts") == 0
        processes = [start(files, RELAY, "K")]
        # Both fetch parts of the same file: the relay gets some of the half before all is taken.
        wait_until(lambda: arrived_bytes(files, "K") > 0)
        processes.append(start(files, "D", "into"))
        wait_until(lambda: arrived_bytes(files, "into") > 150_000)
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            ended(process)
        valve.open()
        progress = ["progress", "into", "K", "--manifest", "files.csv", "-o", "progress.toml"]
        assert call(*progress) == 0
        held = dc.Progress.from_file(files / "progress.toml", problem).held
        arrived = {host: sum(h.n_bytes for h in held if h.host == host) for host in ("D", RELAY)}
        assert 150_000 < arrived["D"] <= problem.total_bytes / 2
        assert arrived[RELAY] > 0
        rest = ["-o", "plan2.json", "--problem-output", "rest.json"]
        assert call("replan", "problem.json", "plan.json", "progress.toml", *rest) == 0
        assert call("pulls", "rest.json", "plan2.json", *as_curl, "-o", "scripts", "--force") == 0
        assert both(files)[0] == (0, 0), capsys.readouterr()
        assert same_files(files, files / "into")
        # All that had arrived was used: nothing was fetched a second time.
        plan2 = dc.Schedule.from_file(files / "plan2.json")
        moved = plan2.transfers[plan2.transfers["to"] == "D"]["bytes"].sum()
        assert moved + arrived["D"] == problem.total_bytes
        # Once more does nothing.
        assert both(files)[0] == (0, 0)


FILES = ("problem.json", "plan.json", "files.csv", "scripts", "into", "K", "progress.toml")
FILES += ("plan2.json", "rest.json")


def json_of(tree):
    import json

    return json.dumps(tree)


@pytest.mark.slow
def test_an_interrupted_script_goes_on_within_its_pieces(files):
    problem = problem_of_files()
    plan = dc.direct(problem)
    valve = Valve()
    with serving(files, valve=valve) as url:
        exported(files, problem, plan, "curl", url)
        process = start(files, "D", "into")
        wait_until(lambda: any(parts_in(files / "into").values()))
        process.send_signal(signal.SIGINT)
        code, said = ended(process)
        assert (code, said) == (130, "D: interrupted; the same command continues\n")
        assert any(parts_in(files / "into").values())
        arrived = arrived_bytes(files, "into")
        valve.open()
        assert ended(start(files, "D", "into")) == (0, "D: done\n")
    # Nothing of the pieces was fetched twice.
    assert 0 < arrived < problem.total_bytes
    assert valve.passed_bytes == problem.total_bytes - arrived
    assert same_files(files, files / "into")


def test_two_starts_in_one_folder_are_told_apart(files):
    if shutil.which("flock") is None:
        pytest.skip("no flock here")
    problem = problem_of_files()
    with serving(files, valve=Valve()) as url:
        exported(files, problem, dc.direct(problem), "curl", url)
        first = start(files, "D", "into")
        # It is at work: before, on a busy machine, a signal may come before it would tell of one.
        wait_until(lambda: any(parts_in(files / "into").values()))
        code, said = ended(start(files, "D", "into"))
        first.terminate()
        assert code == 1
        assert "another start is still at work in this folder" in said
        assert ended(first)[0] == 130


def test_a_server_without_ranges_sends_whole_files_and_relays_refuse_it_by_name(files, monkeypatch):
    problem = problem_of_files(4_000_000.0)
    with serving(files, knows_ranges=False) as url:
        exported(files, problem, dc.coordinated(problem), "curl", url)
        monkeypatch.setenv("DATACOLLECT_PATIENCE_S", "4")
        codes, said = both(files)
    # The destination fetches from its first byte on what it was to fetch a part of.
    assert codes == (1, 0)
    assert "its server knows no byte ranges, and relays forward ranges" in said
    assert "its server knows no byte ranges; the whole file is fetched" in said
    assert "re/lay: something is missing; the same command continues" in said
    assert same_files(files, files / "into")


def test_a_file_that_is_not_what_was_listed_is_not_put_in_its_place(files):
    problem = problem_of_files(4_000_000.0)
    (files / "S 1" / "-rf").write_bytes(bytes(60_000))
    with serving(files) as url:
        exported(files, problem, dc.direct(problem), "curl", url)
        code, said = ended(start(files, "D", "into"))
    assert code == 1
    assert "S 1/-rf: its SHA-256 is not" in said
    assert not (files / "into" / "S 1" / "-rf").exists()
    held = progress_tree([read_arrived(str(files / "into"), read_manifest(files / "files.csv"))], 1)
    assert sum(h["bytes"] for h in held["held"]) == problem.total_bytes - 60_000


def test_bash_runs_the_scripts_too(files):
    problem = problem_of_files(4_000_000.0)
    with serving(files) as url:
        exported(files, problem, dc.direct(problem), "curl", url)
        assert ended(start(files, "D", "into", shell="bash")) == (0, "D: done\n")
    assert same_files(files, files / "into")


# What bash does before each command: signals come at the least kind instants.
INSTANTS = {
    "a lane has begun, and its number is not noted": """
        if [ "$BASHPID" = "$$" ] && [ "${!-}" != "$seen" ]; then seen=$!; kill -INT "$$"; fi""",
    "a tool has begun, and its number is not noted": """
        if [ "$BASHPID" != "$$" ] && [ "${!-$seen}" != "$seen" ]; then
            seen=$! && sleep 0.2 && kill -INT "$$"
            while :; do sleep 0.02; done
        fi""",
    "a lane has begun, and cannot hear yet": """
        if [ "$BASH_COMMAND" = "trap stop TERM" ] && mkdir .datacollect/first 2>&-; then
            heard="" && trap heard=yes TERM && kill -INT "$$"
            until [ "$heard" ]; do sleep 0.02; done
        fi""",
    "who tells how far it is has begun, and cannot hear yet": """
        if [[ $BASH_COMMAND == "trap "*"end; exit"*" TERM" ]]; then
            heard="" && trap heard=yes TERM && kill -INT "$$"
            until [ "$heard" ]; do sleep 0.02; done
        fi""",
    "all lanes have ended, and files are judged": """
        if [ "$BASHPID" = "$$" ] && [ "$BASH_COMMAND" = files ] && [ -z "$seen" ]; then
            seen=yes; kill -INT "$$"
        fi""",
}


@pytest.mark.parametrize("instant", INSTANTS)
def test_nothing_outlives_a_script_whenever_it_is_interrupted(files, monkeypatch, instant):
    """What did would hold its output: the server stops midway, where lanes are not to end."""
    valve = Valve(is_open="lanes have ended" in instant)
    problem = problem_of_files(4_000_000.0)
    (files / "instant.sh").write_text(f"set -T\nseen=\ntrap '{INSTANTS[instant]}' DEBUG\n")
    monkeypatch.setenv("BASH_ENV", str(files / "instant.sh"))
    with serving(files, valve=valve) as url:
        exported(files, problem, dc.direct(problem), "curl", url)
        code, said = ended(start(files, "D", "into", shell="bash"))
    assert (code, said) == (130, "D: interrupted; the same command continues\n")
    assert not (files / "into" / ".datacollect" / "over").exists()
