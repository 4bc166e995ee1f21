"""The command line's manners: help, wrong usage, mishaps, exit codes."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys

import pytest
from instances.command_line import problem_without, start

HEAVY = {
    *("numpy", "pandas", "pyarrow", "ortools", "networkx", "pulp", "scipy", "matplotlib", "rich"),
    # What typer has pydantic do costs more than the rest of help: typer is kept from asking it.
    *("pydantic", "pydantic_core"),
}


# Help and usage -----------------------------------------------------------------------------

COMMANDS = [
    *("plan", "compare", "check", "pulls", "plot", "schema", "example", "estimate"),
    *("replan", "explain", "front", "simulate"),
]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command(arguments, call):
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    assert all(re.search(rf"^  {command} ", out, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["pull", "--help"], ["plan", "--help"]],
    ids=["all", "pull", "plan"],
)
def test_help_imports_nothing_heavy(arguments):
    script = (
        "import sys; from datacollect.commands.main import run; "
        f"assert run({arguments}) == 0; sys.exit(str(sorted({HEAVY} & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert done.stderr.strip() == "[]"


def test_version(call):
    code, out, _ = call("--version")
    assert code == 0
    assert out.startswith("datacollect")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["plam"], "No such command 'plam'. Did you mean 'plan', 'upload', 'replan'?"),
        (["plan"], "Missing argument 'PROBLEM'"),
        (["plan", "figure1.toml", "--sloth", "1"], "No such option"),
        (["plan", "figure1.toml", "--slot", "x"], "'--slot'"),
        (["plan", "figure1.toml", "--slot", "0"], "must be a finite number > 0, got 0"),
        (["plan", "figure1.toml", "--slot", "nan"], "must be a finite number > 0, got nan"),
        (["plan", "figure1.toml", "--chunk", "-1"], "must be a finite number >= 0, got -1"),
        (["plan", "figure1.toml", "--chunk", "1", "--slot", "1"], "--slot and --chunk cannot"),
        (["plan", "figure1.toml", "--deadline", "0"], "a finite number of seconds > 0, got 0"),
        (["plan", "figure1.toml", "--prefer", "cheap"], "'earliest-arrival', 'money'"),
        (["plan", "figure1.toml", "--method", "direct", "--deadline", "9"], "--deadline is for"),
        (["plan", "figure1.toml", "--method", "direct", "--prefer", "money"], "--prefer is for"),
        (["front", "figure1.toml"], "needs prices, but no link has one"),
        (["front", "figure1.toml", "-o", "front.txt"], "must name a file that ends in .png"),
        (["replan", "-", "-", "p.toml"], "only one of PROBLEM, SCHEDULE and PROGRESS can be"),
        (["explain", "-", "-"], "only one of PROBLEM and SCHEDULE can be standard input"),
        (["compare", "figure1.toml", "--chunk", "1", "--slot", "1"], "--slot and --chunk cannot"),
        (["plan", "figure1.toml", "--method", "fast"], "'direct', 'best-path', 'coordinated'"),
        (["plan", "figure1.toml", "--order", "S1"], "--order is for --method direct"),
        (["plan", "figure1.toml", "--method", "direct", "--time-slot", "1"], "needs --at-a-time"),
        (["plan", "figure1.toml", "--method", "direct", "--order", "SS1"], "did you mean 'S1'?"),
        (["plan", "figure1.toml", "-o", "figure1.toml"], "must name a schedule"),
        (["plan", "figure1.toml", "-o", "grid.csv"], "must name a schedule"),
        (["plan", "figure1.toml", "-o", "no/plan.json"], "no/plan.json: cannot be written"),
        (["check", "-", "-"], "only one of PROBLEM and SCHEDULE can be standard input"),
        (["plot", "figure1.toml", "plan.json"], "Missing option"),
        (["example", "figure2"], "no example is called 'figure2'; did you mean 'figure1'?"),
        (["example", "figure1"], "figure1.toml: exists already; --force overwrites"),
        (["estimate", "samples.csv"], "samples.csv: no such file"),
    ],
)
def test_wrong_usage_is_two(arguments, expected, here, call):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert expected in err
    assert err.count("error: ") == 1


# Mishaps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("debug", ["", "1"])
def test_internal_error_is_three_without_traceback(debug, here, call, monkeypatch):
    def fail(path):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("datacollect.problem.problem.Problem.from_file", fail)
    monkeypatch.setenv("DATACOLLECT_DEBUG", debug)
    code, out, err = call("plan", "figure1.toml")
    assert (code, out) == (3, "")
    assert "error: internal error: ZeroDivisionError: by zero; please report it" in err
    assert ("Traceback" in err) == bool(debug)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE, errno.EIO, errno.ESTALE])
def test_what_this_host_refuses_is_no_mistake_of_ours(code, here, call, monkeypatch):
    def fail(path):
        raise OSError(code, os.strerror(code), "the/file")

    monkeypatch.setattr("datacollect.problem.problem.Problem.from_file", fail)
    exit_code, out, err = call("plan", "figure1.toml")
    assert (exit_code, out) == (3, "")
    assert err.startswith("error: this host refuses: ")
    assert os.strerror(code) in err
    assert re.search("(this host refuses: OSError: .*'the/file'; |may have .*; ).*, and try", err)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("matplotlib", "needs the package matplotlib, which is not installed; install it: "),
        # A part of what is there, of ours, or of Python: nothing that pip could add.
        ("matplotlib.figure", "this host refuses: ModuleNotFoundError"),
        ("datacollect.flow", "this host refuses: ModuleNotFoundError"),
        ("sqlite3", "this host refuses: ModuleNotFoundError"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_remedy(
    name, expected, here, call, monkeypatch
):
    def fail(path):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("datacollect.problem.problem.Problem.from_file", fail)
    code, out, err = call("plan", "figure1.toml")
    assert (code, out) == (3, "")
    assert expected in err
    assert ("'matplotlib>=" in err) == (name == "matplotlib")


def test_interrupt_is_130(here, call, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("datacollect.problem.problem.Problem.from_file", interrupt)
    with pytest.raises(SystemExit) as ended:
        call("plan", "figure1.toml")
    assert ended.value.code == 130


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "cut.json"],
        ["explain", "cut.json"],
        ["plan", "figure1.toml", "--deadline", "0.5"],
        ["plan", "figure1.toml", "--slot", "0.5", "--deadline", "1.2"],
    ],
)
def test_what_cannot_be_done_is_one(arguments, here, call):
    problem_without("S1", here)
    code, out, err = call(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")


@pytest.mark.slow
def test_exit_codes_reach_the_shell(here):
    (here / "bad.toml").write_text("destination = 5\n[hosts.D]\n")
    for arguments, expected in (
        (["plan", problem_without("S1", here)], 1),
        (["plan", "bad.toml"], 2),
        (["plan", "figure1.toml", "--solver", "networkx"], 3),
    ):
        done = start(*arguments)
        assert done.returncode == expected
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr


BESIDE_THREADS = """
import atexit, sys, threading, datacollect.__main__, datacollect.commands.main as command
class Torn:
    def __del__(self): print("taken apart", flush=True)
torn = Torn()
def leave():
    if sys.argv[1] == "thread":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    atexit.register(print, "cleaned up")
    print("said")
    sys.exit(3)
command.main = leave
datacollect.__main__.main()
"""


@pytest.mark.parametrize("beside", ["thread", "nothing"])
def test_nothing_is_taken_apart_beside_threads_that_go_on(beside):
    """OpenSSL would go under their feet, and the exit code be that of a signal."""
    done = subprocess.run(
        [sys.executable, "-c", BESIDE_THREADS, beside], capture_output=True, text=True, check=False
    )
    said = ["said", "cleaned up", *(["taken apart"] if beside == "nothing" else [])]
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (3, said, "")
