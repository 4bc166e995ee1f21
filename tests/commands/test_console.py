"""Output on each stream, and its look: for people, for pipes, for programs."""

from __future__ import annotations

import json
import re
import sys
import threading

import pytest
from rich.status import Status

from datacollect.commands import console
from datacollect.commands.main import run
from datacollect.commands.streams import Loudness, as_loud_as
from datacollect.methods.coordinated import coordinated as module

BOX = re.compile(r"[\u2500-\u257f]")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ANSWERS = [
    ["compare", "upload.toml"],
    ["plan", "upload.toml"],
    ["pulls", "upload.toml", "plan.json"],
    ["example"],
]


@pytest.fixture
def call(tmp_path, monkeypatch, call):
    """Run a command among two examples and a plan; return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for prepare in (["example", "figure1"], ["example", "upload"]):
        assert run(prepare) == 0
    assert run(["plan", "upload.toml", "-o", "plan.json"]) == 0
    return call


@pytest.mark.parametrize("arguments", ANSWERS)
def test_piped_output_is_plain(arguments, call):
    code, out, _ = call(*arguments)
    assert code == 0
    assert not BOX.search(out)
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("arguments", ANSWERS)
def test_on_a_terminal_everything_fits_in_80_columns(arguments, call, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    code, out, _ = call(*arguments)
    assert code == 0
    lines = [ESCAPE.sub("", line) for line in out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert any(BOX.search(line) for line in lines)


@pytest.mark.parametrize(("term", "watched"), [("xterm", True), (None, True), ("dumb", False)])
def test_a_dumb_terminal_gets_lines_now_and_then_like_a_log(term, watched, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    if term is None:
        monkeypatch.delenv("TERM", raising=False)
    else:
        monkeypatch.setenv("TERM", term)
    assert console.on_terminal(sys.stderr) is watched


def test_names_of_hosts_cannot_steer_the_terminal(call, tmp_path):
    evil = "\x1b[2J\n[bold]evil[/bold]"
    tree = {
        "destination": "D",
        "hosts": {evil: {"backlog_bytes": 10}, "D": {}},
        "links": [{"from": evil, "to": "D", "bandwidth_bytes_per_s": 5.0}],
    }
    (tmp_path / "evil.json").write_text(json.dumps(tree))
    for arguments in (
        ["plan", "evil.json", "-o", "evil-plan.json"],
        ["pulls", "evil.json", "evil-plan.json"],
    ):
        code, out, _ = call(*arguments)
        assert code == 0
        assert "\x1b" not in out
        # In tables that would be too wide it goes on in the next line.
        assert r"\x1b[2J\n[" in out


def test_progress_goes_to_standard_error_of_a_terminal(call, monkeypatch):
    """Planning goes on until it shows, or, where nothing may, has had time to."""
    shown = threading.Event()

    def begin(status):
        started(status)
        shown.set()

    def slow(problem, **options):
        assert shown.wait(60 if sys.stderr.isatty() else 0.2) or not sys.stderr.isatty()
        return planned(problem, **options)

    planned, started = module.coordinated, Status.start
    monkeypatch.setattr(module, "coordinated", slow)
    monkeypatch.setattr(Status, "start", begin)
    monkeypatch.setattr(console, "PATIENCE_S", 0.05)
    assert call("plan", "figure1.toml", "--json")[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    _, out, err = call("plan", "figure1.toml", "--json")
    assert "planning …" in err
    assert json.loads(out)["method"] == "coordinated"


def test_no_progress_for_what_is_fast(call, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(console, "PATIENCE_S", 60.0)
    assert call("plan", "figure1.toml", "--json")[2] == ""


def test_numbers_that_json_lacks_become_null(capsys):
    console.emit_json({"a": float("nan"), "b": [float("inf"), {"c": 1.5}]})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, {"c": 1.5}]}


# Tables that are too wide --------------------------------------------------------------------

HUGE = "12345678.9 Gbit/s"
WIDE = [
    # A name that is too long is folded, numbers stay whole.
    (("host", "rate"), [["n" * 300, HUGE]], "<>", True),
    # Long headings are folded at blanks, above numbers too.
    (
        ("a rather long heading", "another one of the kind") * 2,
        [["1", "2", "3", "4"]],
        ">>>>",
        True,
    ),
    # Many columns of text get narrow.
    (tuple("abcdefgh"), [["word " * 9] * 8, ["x" * 50] * 8], "", True),
    # Numbers that fit nowhere beside each other stand below each other.
    (tuple("abcdef"), [[HUGE] * 6] * 2, ">>>>>>", False),
]


@pytest.mark.parametrize(("headings", "rows", "right", "is_table"), WIDE)
@pytest.mark.parametrize("terminal", [False, True])
def test_every_table_fits_80_columns_and_loses_nothing(
    headings, rows, right, is_table, terminal, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    console.emit_table(headings, rows, right)
    lines = ESCAPE.sub("", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    shown = sorted(BOX.sub("", "".join(lines)).replace(" ", ""))
    whole = "".join([*headings * (1 if is_table else len(rows)), *(c for r in rows for c in r)])
    assert shown == sorted(whole.replace(" ", ""))
    if HUGE in rows[0]:
        assert any(HUGE in line for line in lines)


# Where there is no terminal --------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_long_steps_write_a_line_now_and_then_but_not_beside_json(call, monkeypatch, options):
    """Planning goes on until the line is there, or, where none may come, has had time to come."""
    lines = []
    said = threading.Event()

    def note(text):
        lines.append(text)
        if "planning: " in text:
            said.set()

    def slow(problem, **kept):
        said.wait(0.2 if options else 60)
        return planned(problem, **kept)

    planned = module.coordinated
    monkeypatch.setattr(module, "coordinated", slow)
    monkeypatch.setattr(console, "LINE_S", 0.01)
    monkeypatch.setattr(console, "note", note)
    assert call("plan", "figure1.toml", *options)[0] == 0
    told = [line for line in lines if line.startswith("planning: ")]
    assert bool(told) == (not options)
    assert all(line.endswith(" s so far") for line in told)


def test_simulations_and_sweeps_write_what_they_are_at(monkeypatch):
    from datacollect.commands import simulate, sweep
    from datacollect.study.sweep import SweepProgress

    lines, said = [], threading.Event()

    def note(text):
        lines.append(text)
        said.set()

    def wait_for(line):
        while line not in lines:
            assert said.wait(60)
            said.clear()

    monkeypatch.setattr(console, "LINE_S", 0.01)
    monkeypatch.setattr(console, "note", note)
    with simulate.showing_progress() as (stage, progress):
        stage("collecting", 8_000_000)
        progress(75.0, 2_000_000)
        wait_for("collecting … 75 s simulated, 25 %: 2 MB of 8 MB collected")
    at_once = []
    monkeypatch.setattr(sweep, "note", at_once.append)
    words = (
        "25 %: 3 of 12 runs done, 2 kept from before, 1 of 4 settings finished, about 3 min left"
    )
    with sweep.showing_progress() as show:
        show(SweepProgress(3, 0, 9, 1, 4, 60.0, 180.0, kept=2))
        assert at_once == [words]
        wait_for(words)
    for loudness in (Loudness(lines=False), Loudness(quiet=True)):
        del lines[:], at_once[:]
        with as_loud_as(loudness), sweep.showing_progress() as show:
            show(SweepProgress(3, 0, 9, 1, 4, 60.0, 180.0))
        assert lines == at_once == []


def test_a_sweep_tells_how_long_the_rest_takes_by_how_its_expectations_were_kept():
    """A fourth of the work takes 60 s, the next 40 s, the third 20 s: so the last 20 s to 40 s.

    Processes start in the first. Of late nine runs a minute have ended.
    """
    from datacollect.commands.sweep import SweepPace
    from datacollect.study.sweep import SweepProgress

    pace = SweepPace()
    pace.words(SweepProgress(0, 0, 12, 0, 4, 0.0, None))
    for n, elapsed_s in ((3, 60.0), (6, 100.0), (9, 120.0)):
        left_s = elapsed_s * (12 - n) / n
        said = pace.words(SweepProgress(n, 0, 12 - n, n // 3, 4, elapsed_s, left_s))
    assert said == (
        "75 %: 9 of 12 runs done, 3 of 4 settings finished, 9 runs a minute, 20 s to 40 s left"
    )
    done = pace.words(SweepProgress(11, 1, 0, 4, 4, 150.0, 0.0))
    assert done == "100 %: 11 of 12 runs done, 1 failed, 4 of 4 settings finished"
