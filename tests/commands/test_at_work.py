"""Commands that may take long: -v, --quiet, Ctrl-C, SIGTERM, numbers."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from typer.main import get_command

import datacollect as dc
from datacollect.commands import console, main
from datacollect.commands.ending import Terminated
from datacollect.files.stages import LOG

BOTH = ("figure1.toml", "plan.json")
SWEEP = """
engine = "fluid"
scenario = "scenario_small.toml"
seeds = {least = 1, most = 1, batch = 1}
axes = [{name = "flows", key = "background.flows", values = [0]}]
"""
# Commands without an option, as they do what may take long, and a stage that -v names.
AT_WORK = {
    "plan": (("figure1.toml",), r"planning by coordinated took"),
    "compare": (("figure1.toml",), r"planning by direct took"),
    "advise": (("figure1.toml",), r"planning by direct took"),
    "check": (BOTH, r"checking took"),
    "pulls": (BOTH, r"reading plan\.json took"),
    "plot": ((*BOTH, "-o", "new.png"), r"drawing took"),
    "estimate": (("samples.csv",), r"reading samples took"),
    "manifest": (("folder",), r"hashing folder took"),
    "progress": (("folder", "--manifest", "files.csv", "--host", "D"), r"looking at files took"),
    "replan": ((*BOTH, "progress.json"), r"planning took .* programs? by"),
    "explain": (BOTH, r"relaxing a constraint of the lower bound took"),
    "front": (("prices.toml",), r"trying coordinated took"),
    "simulate": (("scenario_small.toml", "--engine", "fluid"), r"simulating by fluid took"),
    "sweep": (("experiment.toml", "-o", "swept", "--workers", "0"), r"simulating by fluid took"),
    "report": (("done",), r"drawing experiment took"),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with all that these commands read."""
    folder, before = tmp_path_factory.mktemp("at_work"), Path.cwd()
    os.chdir(folder)
    try:
        for name in ("figure1", "prices", "scenario_small"):
            assert main.run(["example", name]) == 0
        assert main.run(["plan", "figure1.toml", "-o", "plan.json"]) == 0
        Path("files.csv").write_text("host,path,bytes\nS1,a,1000000\nS2,b,1000000\n")
        Path("samples.csv").write_text(
            "time,from,to,bandwidth_bytes_per_s\n2026-01-01T00:00:00Z,S,D,5.0\n"
        )
        Path("progress.json").write_text('{"format": "datacollect-progress/1", "at_s": 0.5}')
        Path("experiment.toml").write_text(SWEEP)
        Path("folder").mkdir()
        Path("folder/a").write_bytes(b"abc")
        assert main.run(["sweep", "experiment.toml", "-o", "done", "--workers", "0"]) == 0
        return folder
    finally:
        os.chdir(before)


@pytest.fixture
def here(prepared, tmp_path, monkeypatch, empty_pictures):
    """A copy of it that a test may write to."""
    folder = shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    return folder


def call_in(name, capsys, *more):
    """Run one of the commands; return exit code, standard output and standard error."""
    capsys.readouterr()
    code = main.run([name, *AT_WORK[name][0], *more])
    return code, *capsys.readouterr()


def test_every_command_that_may_take_long_has_both_options():
    commands = get_command(main.app()).commands
    have = {
        name
        for name, command in commands.items()
        if {"verbose", "quiet"} <= {parameter.name for parameter in command.params}
    }
    # Those that ask others have tests beside what they do.
    assert have == {*AT_WORK, "doctor", "pull", "status", "tunnel", "upload", "verify", "audit"}


# What is said ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_WORK)
def test_verbose_names_stages_and_their_times(name, here, capsys):
    code, _, err = call_in(name, capsys, "-v")
    assert code == 0
    lines = " ".join(err.split())
    assert re.search(r"\d\.\d s: reading|\d\.\d s: (building|looking|hashing)", lines)
    assert re.search(AT_WORK[name][1], lines)
    assert LOG.handlers == []


@pytest.mark.parametrize("name", AT_WORK)
def test_quiet_leaves_the_answer_alone(name, here, capsys):
    code, out, err = call_in(name, capsys, "--quiet")
    assert (code, err) == (0, "")
    assert out or name in ("plot", "manifest")


@pytest.mark.usefixtures("here")
def test_twice_verbose_says_which_programs_were_solved(capsys):
    _, _, err = call_in("plan", capsys, "-vv")
    assert re.search(r"read figure1\.toml: \d+ bytes", err)
    assert re.search(r"a maximum flow over \d+ arcs among \d+ nodes by \S+ took", err)
    assert re.search(r"a linear program of \d+ rows and \d+ columns by glop took", err)


@pytest.mark.usefixtures("here")
def test_quiet_and_verbose_exclude_each_other(capsys):
    code, out, err = call_in("plan", capsys, "--quiet", "-v")
    assert (code, out) == (2, "")
    assert "-v and --quiet cannot be combined; give one of them" in err


@pytest.mark.usefixtures("here")
def test_quiet_silences_no_error(capsys):
    assert main.run(["plan", "nothing.toml", "--quiet"]) == 2
    assert "nothing.toml: no such file" in capsys.readouterr().err
    Path("folder/link").symlink_to("a")
    code, _, err = call_in("manifest", capsys, "--quiet")
    assert code == 1
    assert err.startswith("not listed: 'link': it is a symbolic link")


# How far it is --------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_steps_are_counted_in_lines(capsys, monkeypatch):
    """The last deadline waits until a line says that all others are done."""
    from datacollect.methods import money_front

    lines, said = [], threading.Event()

    def note(text):
        lines.append(text)
        if "9 of 10 deadlines" in text:
            said.set()

    def slow(*given):
        assert said.wait(60)
        return cheapest(*given)

    cheapest = money_front._cheapest_of_all
    monkeypatch.setattr(money_front, "_cheapest_of_all", slow)
    monkeypatch.setattr(console, "LINE_S", 0.01)
    monkeypatch.setattr(console, "note", note)
    assert call_in("front", capsys)[0] == 0
    words = next(line for line in lines if "9 of 10 deadlines" in line)
    pattern = (
        r"planning for each deadline: 90 %: 9 of 10 deadlines, [\d.]+ a minute, .* left, .* so"
    )
    assert re.match(pattern, words), words


def test_how_far_a_manifest_is_counts_bytes_and_files(tmp_path, capsys, monkeypatch):
    """Of two files the second is read once a line has said that the first is done."""
    from datacollect.exports import inventory

    for name, size in (("a", 3_000_000), ("b", 1_000_000)):
        (tmp_path / name).write_bytes(bytes(size))
    lines, said = [], threading.Event()

    def note(text):
        lines.append(text)
        if text.startswith("75 %"):
            said.set()

    def slow(base, path, *given):
        assert path == "a" or said.wait(60)
        return looked_up(base, path, *given)

    looked_up = inventory._looked_up
    monkeypatch.setattr(inventory, "_looked_up", slow)
    monkeypatch.setattr(console, "RARELY_S", 0.0)
    monkeypatch.setattr(console, "LINE_S", 0.01)
    monkeypatch.setattr(console, "note", note)
    assert main.run(["manifest", str(tmp_path)]) == 0
    assert any(line.startswith("75 %: 3 MB of 4 MB, 1 of 2 files") for line in lines)


# Broken off -----------------------------------------------------------------------------------

# Where each command is interrupted, and what it says is kept and to be done.
BROKEN_OFF = {
    "plan": ("methods.choice._planned", "nothing was written, and the same command starts again; "),
    "compare": (
        "methods.comparison.plan",
        "nothing was written, and the same command starts again",
    ),
    "advise": (
        "explanation.advise.advise",
        "nothing was written, and the same command starts again",
    ),
    "check": ("schedule.schedule.Schedule.check", "the check did not finish, and"),
    "pulls": ("schedule.pulls.pull_list", "nothing was written, and the same command starts again"),
    "plot": ("pictures.plot.save_plot", "nothing was written, and the same command starts again"),
    "estimate": ("measurement.reading.read_measurements", "nothing was written, and the same"),
    "manifest": (
        "exports.inventory.stream_manifest",
        "the list is incomplete; with -o FILE the same",
    ),
    "progress": ("problem.manifest.read_manifest", "nothing was written, and the same command"),
    "replan": ("methods.replanning.replan.replan", "nothing was written, and the same command"),
    "explain": (
        "explanation.explain.explain",
        "nothing was written, and the same command starts again",
    ),
    "front": (
        "methods.money_front.front",
        "nothing was written, and the same command starts again",
    ),
    "simulate": ("scenario.carry_out.carry_out", "nothing was written, and the same command"),
    "sweep": ("study.sweep.sweep", "runs that have ended are kept, and the same command continues"),
    "report": (
        "study.report.report.report",
        "nothing was written, and the same command starts again",
    ),
}


def interrupting(signum):
    """Return what has a signal sent to this process, as others do, and waits for it."""

    def interrupted(*_, **__):
        os.kill(os.getpid(), signum)
        threading.Event().wait(60)

    return interrupted


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("name", BROKEN_OFF)
def test_whoever_breaks_off_is_told_what_to_do_next(name, signum, code, here, capsys, monkeypatch):
    place, words = BROKEN_OFF[name]
    monkeypatch.setattr(f"datacollect.{place}", interrupting(signum))
    with pytest.raises(SystemExit) as ended:
        call_in(name, capsys, "--quiet")
    assert ended.value.code == code
    said = capsys.readouterr().err
    what = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[signum]
    assert said.startswith(f"{what}; {words}")
    assert len(said.splitlines()) == 1
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("name", BROKEN_OFF)
def test_what_the_library_warns_of_is_a_note(name, here, capsys, monkeypatch):
    def warning(*_, **__):
        for _ in range(2):
            warnings.warn("beware", dc.DatacollectWarning, stacklevel=1)
        raise dc.ProblemError("enough")

    monkeypatch.setattr(f"datacollect.{BROKEN_OFF[name][0]}", warning)
    code, _, said = call_in(name, capsys)
    assert code == 2
    assert said.count("note: beware") == 1
    assert "DatacollectWarning" not in said


@pytest.mark.parametrize("name", ["plan", "compare", "replan", "explain", "front", "check"])
def test_whoever_breaks_off_while_it_reads_hears_of_no_search(name, here, capsys, monkeypatch):
    monkeypatch.setattr(
        "datacollect.problem.problem.Problem.from_file", interrupting(signal.SIGINT)
    )
    with pytest.raises(SystemExit):
        call_in(name, capsys, "--quiet")
    said = capsys.readouterr().err
    assert said == "interrupted; nothing was written, and the same command starts again\n"


@pytest.mark.parametrize("name", [name for name in AT_WORK if name != "sweep"])
def test_the_same_command_then_does_what_it_was_asked(name, here, capsys, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(f"datacollect.{BROKEN_OFF[name][0]}", interrupting(signal.SIGINT))
        with pytest.raises(SystemExit):
            call_in(name, capsys)
    assert call_in(name, capsys)[0] == 0


def test_what_is_written_already_is_named(here, capsys, monkeypatch):
    """The schedule is there, its answer is not: the same command needs --force, and says so."""
    monkeypatch.setattr("datacollect.methods.prediction.predictions", interrupting(signal.SIGINT))
    command = ["plan", "figure1.toml", "-o", "new.json"]
    with pytest.raises(SystemExit):
        main.run(command)
    said = capsys.readouterr().err
    assert (
        said
        == "interrupted; new.json written already; with --force the same command writes all again\n"
    )
    monkeypatch.undo()
    os.chdir(here)
    assert main.run(["check", "figure1.toml", "new.json"]) == 0
    assert main.run(command) == 2
    assert main.run([*command, "--force"]) == 0


CURL = ("--as", "curl", "--manifest", "files.csv", "--url", "http://{host}/{source}/{path}")


@pytest.mark.parametrize(
    ("command", "writer", "said", "again"),
    [
        (["report", "done"], "study.report.report", "2 files", []),
        (["report", "done", "-o", "page"], "study.report.report", "2 files", ["--force"]),
        (["pulls", *BOTH, *CURL, "-o", "scripts"], "files.documents", "scripts/K.sh", ["--force"]),
    ],
    ids=["report", "report -o", "pulls --as"],
)
def test_of_a_folder_it_is_said_how_much_is_written(
    command, writer, said, again, here, capsys, monkeypatch
):
    """One file or two are there, the next is not; the same command, as it says, writes all."""
    from datacollect.files.documents import write_atomically

    most, written = 2 if said == "2 files" else 1, []

    def interrupted_then(path, data):
        if len(written) == most:
            interrupting(signal.SIGINT)()
        written.append(path)
        write_atomically(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(f"datacollect.{writer}.write_atomically", interrupted_then)
        with pytest.raises(SystemExit):
            main.run(command)
    last = capsys.readouterr().err.splitlines()[-1]
    with_force = "with --force " if again else ""
    assert last == (
        f"interrupted; {said} written already; {with_force}the same command writes all again"
    )
    assert main.run(command) == (2 if again else 0)
    assert main.run([*command, *again]) == 0


@pytest.mark.parametrize(
    "advice",
    [
        ["plan", "figure1.toml", "--time-limit", "60"],
        ["plan", "figure1.toml", "--method", "direct"],
        ["plan", "figure1.toml", "--method", "best-path"],
        ["plan", "prices.toml", "--deadline", "10 d"],
        ["compare", "figure1.toml", "--time-limit", "60"],
        ["replan", *BOTH, "progress.json", "--time-limit", "60"],
        ["simulate", "scenario_small.toml", "--engine", "fluid", "--time-limit", "1"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]),
)
def test_what_is_advised_can_be_done(advice, here, capsys):
    """A simulation that ends by its limit shows what it has by then: exit 1."""
    assert main.run(advice) == (1 if advice[0] == "simulate" else 0)
    assert capsys.readouterr().out


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_manifest_goes_on_where_it_was(sent, tmp_path, capsys, monkeypatch):
    from datacollect.exports import inventory

    folder, table = tmp_path / "folder", tmp_path / "files.csv"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_bytes(name.encode())
    read = []
    real = inventory._digest
    monkeypatch.setattr(inventory, "YOUNG_NS", 0)

    def digest(number, *given):
        read.append(number)
        if len(read) == 3:
            interrupting(sent)()
        return real(number, *given)

    monkeypatch.setattr(inventory, "_digest", digest)
    command = ["manifest", str(folder), "-o", str(table)]
    with pytest.raises(SystemExit):
        main.run(command)
    said = "; the hashes so far are saved, and the same command continues\n"
    assert said in capsys.readouterr().err
    assert not table.exists()
    assert main.run(command) == 0
    assert len(read) == 4
    digest_of_c = hashlib.sha256(b"c").hexdigest()
    assert table.read_text().splitlines()[-1] == f"folder,c,1,{digest_of_c}"


@pytest.mark.usefixtures("here")
def test_an_interruption_that_a_library_makes_an_error_of_is_one(capsys, monkeypatch):
    def swallowed(*_, **__):
        try:
            raise Terminated
        except KeyboardInterrupt:
            raise ImportError("initialization failed")  # noqa: B904 - as they do

    monkeypatch.setattr("datacollect.methods.comparison.compare", swallowed)
    with pytest.raises(SystemExit) as ended:
        call_in("compare", capsys)
    assert ended.value.code == 143
    assert capsys.readouterr().err.startswith("terminated; nothing was written")


# Numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "option", "given", "remedy"),
    [
        (["plan", "x.toml", "--slot", "1_0"], "--slot", "1_0", "10"),
        (["plan", "x.toml", "--connections", "1_000"], "--connections", "1_000", "1000"),
        (["plan", "x.toml", "--derate", "0.1_5"], "--derate", "0.1_5", "0.15"),
        (["plan", "x.toml", "--deadline", "1_0"], "--deadline", "1_0", "10"),
        (["plan", "x.toml", "--slot", "\u0661"], "--slot", "\u0661", "1"),
        (["estimate", "x.csv", "--half-life", "1_0"], "--half-life", "1_0", "10"),
        (["sweep", "x.toml", "-o", "d", "--workers", "1_0"], "--workers", "1_0", "10"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() else None,
)
def test_numbers_that_only_python_reads_are_refused(arguments, option, given, remedy, capsys):
    assert main.run(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(
        f"error: Invalid value for '{option}': must be a number in the digits 0 to 9 and nothing "
        f"between them, got {given!r}; write {remedy}\n"
    )


def test_a_program_that_is_ended_by_a_signal_leaves_with_its_code(here):
    """Once for all, as a process: the signal that it sends itself ends it as others' would."""
    text = (
        "import os, signal, sys; from unittest.mock import patch\n"
        "import datacollect.__main__ as program\n"
        "def end(*_, **__): os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.argv[1:] = ['explain', 'figure1.toml']\n"
        "with patch('datacollect.explanation.explain.explain', end): program.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 143
    assert done.stderr.startswith(
        "terminated; nothing was written, and the same command starts again"
    )
