"""Every way out of a command, with standard streams that are full, closed, or lead nowhere."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
from instances.exits import CLOSED, FULL, PIPE, Command, bench

# Each kind of end, with its exit code where standard output takes what is written.
ENDS = {
    "help": (Command(["--help"]), 0),
    "help of a command": (Command(["plan", "-h"]), 0),
    "help of a group's command": (Command(["keys", "new", "-h"]), 0),
    "version": (Command(["--version"]), 0),
    "an answer, and a note": (Command(["example"]), 0),
    "an answer in JSON": (Command(["example", "--json"]), 0),
    "wrong input": (Command(["keys", "show", "nothing.key"]), 2),
    "wrong usage": (Command(["plan", "--nonsense"]), 2),
    "an internal error": (Command(raises="ZeroDivisionError"), 3),
    "an internal error, traced": (
        Command(raises="ZeroDivisionError", environment={"DATACOLLECT_DEBUG": "1"}),
        3,
    ),
    "no memory": (Command(raises="MemoryError"), 3),
    "Ctrl-C": (Command(raises="KeyboardInterrupt"), 130),
}
# What it is where the answer cannot be written.
UNWRITTEN = {FULL: 3, CLOSED: 2, PIPE: 141}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Run a command with streams; return its exit code and what it wrote to files."""
    with bench(tmp_path_factory.mktemp("exits"), buffered=True) as commands:
        yield commands.exit_code


@pytest.fixture(scope="module")
def ended_unbuffered(tmp_path_factory):
    """The same, where Python's streams are not buffered."""
    with bench(tmp_path_factory.mktemp("exits"), buffered=False) as commands:
        yield commands.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_no_full_stream_hides_how_a_command_ended(end, ended):
    ends_by_contract(end, ended, [FULL])


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_no_stream_hides_how_a_command_ended(end, ended, ended_unbuffered):
    ends_by_contract(end, ended, [CLOSED, PIPE])
    ends_by_contract(end, ended_unbuffered, UNWRITTEN)


def ends_by_contract(end, ended, streams):
    command, expected = ENDS[end]
    code, out, err = ended(command, "out", "err")
    assert code == expected
    assert (out == "") == (code != 0)
    told = code, out
    for stream in streams:
        assert ended(command, "out", stream)[:2] == told
        unwritten = UNWRITTEN[stream] if expected == 0 else expected
        code, _, said = ended(command, stream, "err")
        assert (code, said.count("Traceback")) == (unwritten, err.count("Traceback"))
        assert said.startswith("error: standard output: ") == (expected == 0 and stream != PIPE)
        assert ended(command, stream, stream)[0] == unwritten


@pytest.mark.parametrize(("stream", "code"), [("out", 0), (FULL, 3), (PIPE, 141)])
def test_completion_ends_without_a_trace(stream, code, ended):
    words = {"COMP_WORDS": "datacollect pu", "COMP_CWORD": "1"}
    command = Command(environment={"_DATACOLLECT_COMPLETE": "complete_bash", **words})
    found, _, said = ended(command, stream, "err")
    assert found == code
    assert "internal error" not in said
    assert ended(command, stream, stream)[0] == code


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nothing.toml 2> /dev/full", 2),
        ("--unknown 2> /dev/full", 2),
        ("nothing.toml >&- 2>&-", 2),
        ("--help > /dev/full", 3),
        ("--help >&-", 2),
        ("--help >&{unread}; exit $?", 141),
        ("--help > /dev/null", 0),
    ],
)
def test_the_agent_alone_ends_as_all_commands_do(line, code):
    """Buffered, as Python's streams are unless something says otherwise: it ended with 120."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    # A pipe whose reader has gone for certain.
    reader, unread = os.pipe()
    os.close(reader)
    words = line.format(unread=unread)
    program = f"{shlex.quote(sys.executable)} -m datacollect.agent_alone {words}"
    with os.fdopen(unread, "wb"):
        process = subprocess.run(
            ["bash", "-c", program],
            env=environment,
            capture_output=True,
            pass_fds=[unread],
            text=True,
            check=False,
        )
    assert (process.returncode, "Traceback" in process.stderr) == (code, False)
