"""What goes to which stream, and how it looks there: for people, for pipes, for programs."""

from __future__ import annotations

import json
import re
import sys
import time

import pytest

from datacollect.commands import console
from datacollect.commands.main import run
from datacollect.methods import coordinated as module

BOX = re.compile(r"[\u2500-\u257f]")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ANSWERS = [
    ["compare", "upload.toml"],
    ["plan", "upload.toml"],
    ["pulls", "upload.toml", "plan.json"],
    ["example"],
]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command among two examples and a plan; return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for prepare in (["example", "figure1"], ["example", "upload"]):
        assert run(prepare) == 0
    assert run(["plan", "upload.toml", "-o", "plan.json"]) == 0

    def call(*arguments):
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

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
    def slow(problem, **options):
        time.sleep(0.2)
        return planned(problem, **options)

    planned = module.coordinated
    monkeypatch.setattr(module, "coordinated", slow)
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
