"""A tool that is added by a file for agents, one for operators, and a row in each one's table."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from instances.agents import write_agent
from instances.measuring import OPERATOR, measure_table

from datacollect.measurement.sample_store import read_parts
from datacollect.net.keys import write_private_key

FOR_AGENTS = '''
"""The tool `hello`: greetings over TLS."""

import time

from datacollect.measuring.agent.host_tool import HostTool, Limits


def say_hello(sending, times):
    begun_s = time.monotonic()
    for _ in range(sending.test.take_to_send(5 * times) // 5):
        sending.far.connected().close()
    return {"ended": "done", "seconds": time.monotonic() - begun_s}


HELLO = HostTool("hello", {"times": Limits(1, 9, is_whole=True)}, "hello", ("times",), say_hello)
'''
FOR_OPERATORS = '''
"""The tool `hello`: what greetings cost, and the row that comes of them."""

from dataclasses import dataclass
from typing import ClassVar

from datacollect.measuring.operator.tool import Option, Tool, ended_of, line_of


@dataclass(frozen=True)
class HelloSettings:
    times: int = 2

    tool: ClassVar[str] = "hello"

    @property
    def cost(self):
        from datacollect.measuring.plan.budget import Cost

        return Cost(5 * self.times, 10.0)

    def row(self, sender, receiver, said):
        return {"ended": ended_of(said), "rtt_s": said["seconds"] / self.times}


HELLO = Tool(
    HelloSettings,
    "Say hello between hosts that run agents.",
    {"times": Option("--times", "N", "How often.", 1, 9)},
    lambda row: line_of(row, row.get("rtt_s") and "hello"),
    lambda _: HelloSettings(3),
    loads_wires=False,
)
'''
# The two rows; whatever else imports the tables does so after them.
PROGRAM = """
from datacollect.measuring.agent.host_tools import HOST_TOOLS
from datacollect.measuring.operator.tools import TOOLS
from for_agents import HELLO as HOST_HELLO
from for_operators import HELLO

HOST_TOOLS[HOST_HELLO.name] = HOST_HELLO
TOOLS[HELLO.name] = HELLO

from datacollect.__main__ import main

main()
"""


@contextmanager
def started(folder, name, connect_to=None):
    """Run an agent that has this tool alone; yield where it is, and its lines in HOSTS.toml."""
    (folder / name).mkdir()
    more = measure_table(tools=["hello"])
    path = write_agent(folder / name, name, connect_to=connect_to, more=more)
    command = [sys.executable, "program.py", "agent", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            facts = json.loads(process.stdout.readline())
            lines = f'url = "{facts["url"]}"\nfingerprint = "{facts["fingerprint"]}"\n'
            yield facts["url"].removeprefix("https://"), f"[hosts.{name}]\n{lines}"
        finally:
            process.kill()


def write_program(folder):
    for name, text in (
        ("for_agents", FOR_AGENTS),
        ("for_operators", FOR_OPERATORS),
        ("program", PROGRAM),
    ):
        (folder / f"{name}.py").write_text(text)


def measure(folder, *arguments):
    command = [sys.executable, "program.py", "measure", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)


def test_files_and_help_know_a_new_tool(tmp_path):
    write_program(tmp_path)
    done = measure(tmp_path, "hello", "--help")
    assert "Say hello between hosts that run agents." in done.stdout, done.stderr
    assert "--times N         How often.  [default: 2; 1<=x<=9]" in done.stdout
    schema = [sys.executable, "program.py", "schema", "agent"]
    done = subprocess.run(schema, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert '"hello"' in done.stdout


@pytest.mark.slow
def test_a_new_tool_is_asked_for_run_kept_and_taken_by_cycles(tmp_path):
    write_program(tmp_path)
    write_private_key(tmp_path / "operator.key", OPERATOR)
    head = 'format = "datacollect-hosts/1"\ndestination = "D"\nkey = "operator.key"\n'
    head += 'budget = { bytes = "1 MB", time = "2 min" }\n'
    with (
        started(tmp_path, "D") as (place, entry_of_d),
        started(tmp_path, "S", {"D": place}) as (_, entry_of_s),
    ):
        (tmp_path / "hosts.toml").write_text(head + entry_of_s + entry_of_d)
        done = measure(tmp_path, "hello", "hosts.toml", "--times", "4")
        assert (done.returncode, done.stdout) == (0, "S → D: hello\n"), done.stderr
        assert "1 test, one after the other: at most 20 B and 10 s" in done.stderr
        cycle = ("cycle", "hosts.toml", "--tools", "hello", "--only", "matter", "--json")
        done = measure(tmp_path, *cycle)
        assert json.loads(done.stdout)["failures"] == [], done.stderr
        refused = measure(tmp_path, "ping", "hosts.toml")
        assert "refuses: the tool 'ping' is not one of this agent's: hello" in refused.stdout
    rows = read_parts(Path(tmp_path, "samples")).frame
    rows = rows[rows["tool"] == "hello"].sort_values("time_s")
    assert [json.loads(text) for text in rows["settings"]] == [{"times": 4}, {"times": 3}]
    assert (rows["ended"] == "done").all()
    assert (rows["rtt_s"] > 0).all()
