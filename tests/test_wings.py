"""The core without its wings: it works, and says what is missing; each wing shows its rooms."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY
from instances.agents import KEY, write_agent
from instances.measuring import measure_table

from datacollect import agent_alone, wings
from datacollect.commands.brought import COMMANDS, FEED_COMMANDS
from datacollect.commands.host import BROUGHT as HOST_COMMANDS
from datacollect.files.file_kinds import FILE_KINDS
from datacollect.measuring.agent.handlers import MEASURE_HANDLERS
from datacollect.measuring.agent.host_tools import HOST_TOOLS
from datacollect.measuring.agent.measure_config import COUNTERS
from datacollect.net.key_forms import KEY_FORMS
from datacollect.net.keys import write_private_key
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.config.tables import AGENT_TABLES
from datacollect.transfer.agent.handlers import AGENT_HANDLERS, AgentHandlers

# A program of ours where nobody has installed the wings.
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("datacollect.bistro", "datacollect.feeds", "datacollect.measuring")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
COMMAND = "from datacollect.__main__ import main\nmain()"


def bare(*arguments, code=COMMAND, **options):
    """Start a command of the core alone."""
    command = [sys.executable, "-c", HIDING + code, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def needed(done):
    """Return what is said to need the whole package, of a command that has failed."""
    assert (done.returncode, done.stdout) == (2, "")
    found = re.search(r"the (.*) needs the whole package: .*pip install .*\[(\w+)\]", done.stderr)
    assert found, done.stderr
    return found[1], found[2]


@pytest.mark.slow
def test_the_core_plans_and_simulates_by_itself(tmp_path):
    for example in ("figure1", "scenario_small"):
        assert bare("example", example, cwd=tmp_path).returncode == 0
    done = bare("plan", "figure1.toml", "-o", "plan.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert bare("check", "figure1.toml", "plan.json", cwd=tmp_path).returncode == 0
    engine = ("--engine", "fluid", "--json")
    done = bare("simulate", "scenario_small.toml", *engine, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["complete"]


@pytest.mark.slow
def test_the_core_pulls_from_an_agent_of_the_core(tmp_path):
    agent = write_agent(tmp_path, "S", serve="data")
    (tmp_path / "data" / "file").write_bytes(b"x" * 100_000)
    write_private_key(tmp_path / "key", KEY)
    command = [sys.executable, "-c", HIDING + COMMAND, "agent", str(agent), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            facts = json.loads(process.stdout.readline())
            (tmp_path / "c.toml").write_text(
                'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n'
                f'[agents.S]\nurl = "{facts["url"]}"\nfingerprint = "{facts["fingerprint"]}"\n'
            )
            done = bare("pull", "c.toml", "--into", "into", "--json", cwd=tmp_path)
        finally:
            process.terminate()
    assert json.loads(done.stdout)["complete"], done.stderr
    assert (tmp_path / "into/S/file").read_bytes() == b"x" * 100_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "what", "extra"),
    [
        (("upload", "x", "--event", "e.toml"), "command 'upload'", "bistro"),
        (("measure", "ping", "hosts.toml"), "command 'measure'", "measure"),
        (("schema", "event"), "kind of file 'event'", "bistro"),
        (("keys", "show", "key", "--witness", "w"), "form of a key 'witness'", "bistro"),
        (("host", "calibrate", "-o", "x"), "command 'calibrate'", "measure"),
        (("agent", "accept.toml"), "table of agents' files 'accept'", "bistro"),
        (("agent", "measure.toml"), "table of agents' files 'measure'", "measure"),
        (("agent", "feed.toml"), "table of agents' files 'feed'", "feeds"),
        (("feed", "send", "scan7.toml", "--json"), "command of feed 'send'", "feeds"),
    ],
)
def test_what_a_wing_brings_names_the_whole_package(tmp_path, arguments, what, extra):
    write_private_key(tmp_path / "key", KEY)
    for table in ("accept", "feed", "measure"):
        write_agent(tmp_path, table, serve="data", more=f"[{table}]")
    assert needed(bare(*arguments, cwd=tmp_path)) == (what, extra)


def test_names_of_wings_are_no_attributes_and_say_why():
    code = "import datacollect as dc\ntry:\n    dc.upload\nexcept AttributeError as error:\n"
    done = bare(code=f"{code}    print(error)")
    assert "the name 'upload' needs the whole package: " in done.stdout, done.stderr


def test_the_schema_of_agents_is_that_of_the_core():
    done = bare("schema", "agent")
    assert done.returncode == 0
    properties = json.loads(done.stdout)["properties"]
    assert "serve" in properties
    assert not {"accept", "feed", "front", "measure"} & properties.keys()
    assert done.stderr.count("needs the whole package") == 4


# What the core knows of wings is so -------------------------------------------------------------


def test_help_lists_commands_of_wings_as_they_describe_themselves():
    texts = wings.LISTED_COMMANDS | wings.LISTED_GROUPS
    assert texts.keys() == COMMANDS.own.keys()
    for name, text in texts.items():
        command = COMMANDS.get(name).command
        whole = command.info.help if name in wings.LISTED_GROUPS else command.__doc__
        assert whole.partition("\n")[0] == text


def test_the_group_host_lists_commands_of_wings_as_they_describe_themselves():
    assert wings.LISTED_HOST_COMMANDS.keys() == HOST_COMMANDS.own.keys()
    for name, text in wings.LISTED_HOST_COMMANDS.items():
        assert HOST_COMMANDS.get(name).command.__doc__.partition("\n")[0] == text


def test_the_group_feed_lists_commands_of_wings_as_they_describe_themselves():
    assert wings.LISTED_FEED_COMMANDS.keys() == FEED_COMMANDS.own.keys()
    for name, text in wings.LISTED_FEED_COMMANDS.items():
        assert FEED_COMMANDS.get(name).command.__doc__.partition("\n")[0] == text


@pytest.mark.slow
def test_the_core_plans_feeds_by_itself():
    done = bare("feed", "plan", "--rate", "1 MB/s", "--rtt", "9 ms", "--bandwidth", "1 Gbit/s")
    assert done.returncode == 0, done.stderr


def test_each_name_leads_to_what_it_says():
    for registry in (
        COMMANDS,
        HOST_COMMANDS,
        FEED_COMMANDS,
        AGENT_TABLES,
        AGENT_HANDLERS,
        FILE_KINDS,
        KEY_FORMS,
    ):
        assert [each.name for each in registry.entries()] == list(registry.own)


def test_the_agent_alone_has_the_tools_that_agents_have(monkeypatch, tmp_path):
    """It names them itself: what it imports is all that its wheel has."""
    given = {}
    monkeypatch.setattr(agent_alone, "serve", lambda _, **options: given.update(options))
    assert agent_alone.run(["agent.toml"]) == 0
    (measuring,) = given["handlers"]
    assert measuring.name == "measure"
    started = AgentHandlers("measure", lambda *given: given)
    monkeypatch.setattr(wings.AGENT_HANDLERS["measure"].replace(":", "."), started)
    assert measuring.start("config", "log") == ("config", "log")
    config = AgentConfig.from_file(write_agent(tmp_path, "S", serve="data", more=measure_table()))
    paths = MEASURE_HANDLERS.start(config, print).handlers.keys()
    assert {f"/measure/{name}" for name in (*HOST_TOOLS, COUNTERS)} <= paths


@pytest.mark.parametrize("wing", ["bistro", "feeds", "measuring"])
def test_a_wing_shows_all_its_rooms_in_ten_lines(wing):
    """Those within a room stand in braces behind it."""
    door = REPOSITORY / "datacollect" / wing / "__init__.py"
    text = ast.get_docstring(ast.parse(door.read_text(encoding="utf-8")))
    rows = text.partition("::\n\n")[2].partition("\n\n")[0].splitlines()
    assert len(rows) <= 10
    shown = set()
    for row in rows:
        rooms, inner = re.match(r"    (\w+(?:, \w+)*)(?:/\{(.*)\})?  ", row).groups()
        shown |= {*rooms.split(", ")}
        shown |= {f"{rooms}/{each}" for each in (inner.split(", ") if inner else ())}
    rooms = {str(path.parent.relative_to(door.parent)) for path in door.parent.rglob("__init__.py")}
    assert shown == rooms - {"."}
