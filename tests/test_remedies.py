"""Remedies are carried out: what they name is there, and an example of each comes out well.

`judges.remedies` finds them in the source. Each has an example, in a module of `tests/remedies`
or in `tests/commands/test_remedies.py`: a new remedy needs one.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import runpy
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from judges.imports import REPOSITORY
from judges.public import callables
from judges.remedies import Template, templates, texts
from remedies.trying import Example, is_in, told
from test_named_in_documents import DOCUMENTS

from datacollect.commands import json_schemas
from datacollect.commands.main import app, run
from datacollect.commands.method_options import brought_methods

FOLDER = Path(__file__).parent / "remedies"

# Options of programs of others.
OF_OTHERS = {
    *("--nthreads", "--bidir", "--json-stream", "--fq-rate"),  # of Dask, iperf3
    *("--sport", "--output-format", "--checksum-mode"),  # of scamper, esmond, FTS
    *("--data-binary", "--dir-cache-time", "--offset"),  # of curl, rclone
    *("--editable", "--python"),  # of pip, uv
    *("--help", "--checksum"),  # of every command, and of pulls --as fts
}


# What they name is there -----------------------------------------------------------------------


def command_line() -> dict[str, set[str]]:
    """Return the options of every command, by its words."""
    found: dict[str, set[str]] = {}

    def walk(words: tuple[str, ...], command: Any) -> None:
        flags = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
        found[" ".join(words)] = flags
        for name, inner in getattr(command, "commands", {}).items():
            walk((*words, name), inner)

    walk((), typer.main.get_command(app(brought=brought_methods(()))))
    return found


def known_keys() -> set[str]:
    """Return all keys of our files, arguments of public functions, and columns of tables."""
    found: set[str] = set()

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            found.update(schema.get("properties", {}))
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    for kind in json_schemas.kinds_of_files():
        walk(json_schemas.schema_of(kind))
    for function in callables().values():
        found.update(inspect.signature(function).parameters)
    return found


@pytest.mark.slow
def test_every_option_and_command_that_a_text_names_is_there():
    lines = command_line()
    known = set().union(*lines.values()) | OF_OTHERS
    unknown = {(each.module, option) for each in templates() for option in each.options - known}
    # What follows a command in small letters may be the name of a file.
    unknown |= {
        (each.module, words)
        for each in templates()
        for words in each.commands
        if words not in lines and words.rpartition(" ")[0] not in lines
    }
    assert unknown == set()


def test_every_key_that_a_remedy_names_is_there():
    known = known_keys() | OTHER_KEYS
    unknown = {(each.module, key) for each in templates() for key in each.keys - known}
    assert unknown == set()


# Columns of samples, arguments of functions that are not public, functions of pandas.
OTHER_KEYS = {
    *("reset_index", "to_numpy"),
    *("src_tier", "limited_by"),
    *("hot_potato", "largest_component", "keep_external", "shortest_routes", "plan_remaining"),
}


# What documents show and nobody runs: `console` blocks are run by `test_docs_examples`.
SHOWN = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The user of the agent's service has the same name as the command: `sudo -u datacollect COMMAND`.
OF_OURS = re.compile(r"""(?<![\w/.-])(?<!-u )datacollect ((?:'[^']*'|"[^"]*"|[^#|;&>\n'"])*)""")


def test_every_command_that_documents_show_has_its_options():
    lines = command_line()
    unknown = [
        (name, command)
        for name in DOCUMENTS
        for block in SHOWN.findall((REPOSITORY / name).read_text(encoding="utf-8"))
        for command in OF_OURS.findall(block.replace("\\\n", " "))
        if not is_known(shlex.split(command), lines)
    ]
    assert unknown == []


def is_known(words: list[str], lines: dict[str, set[str]]) -> bool:
    """Whether a command is there, with all options that are given to it."""
    names = [name for n in range(len(words), 0, -1) if (name := " ".join(words[:n])) in lines]
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return bool(names) and options <= lines[names[0]]


def test_commands_that_are_not_there_are_found():
    lines = {"": set(), "plan": {"-o"}, "event": set(), "event run": {"--once"}}
    assert is_known(["event", "run", "e.toml", "--once"], lines)
    assert not is_known(["event", "run", "-o", "x"], lines)
    assert not is_known(["plot", "-o", "x"], lines)


# They help ---------------------------------------------------------------------------------------

ROOMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "trying")
EXAMPLES = {
    f"{room} {i}: {example.says}": example
    for room in ROOMS
    for i, example in enumerate(import_module(f"remedies.{room}").EXAMPLES)
}


# Those that start processes, or plan much; the others are together as fast as one of these.
SLOW_ROOMS = {
    *("bistros", "commands", "exports", "one_host", "pages", "people", "servers", "spools"),
    "studies",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.split()[0] in SLOW_ROOMS else ())
        for name in EXAMPLES
    ],
)
def test_carried_out_a_remedy_helps(name):
    example = EXAMPLES[name]
    assert is_in(example.says, told(example.bad))
    said = example.good()
    assert not (isinstance(said, str) and is_in(example.says, said))


def is_of(example: Example, text: Template) -> bool:
    return text.has(example.says) and example.module in ("", text.module)


def test_each_example_is_of_one_text():
    found = {name: [text for text in texts() if is_of(e, text)] for name, e in EXAMPLES.items()}
    assert {name: len(of) for name, of in found.items() if len(of) != 1} == {}


def commands_remedies() -> dict[str, Any]:
    """Return the table of the command line's tests, a module that lies in no package."""
    path = Path(__file__).parent / "commands" / "test_remedies.py"
    return runpy.run_path(str(path))["REMEDIES"]


def messages_of_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what the examples of the command line are told, in one line each."""
    found = []
    for i, remedy in enumerate(commands_remedies().values()):
        place = folder / str(i)
        place.mkdir()
        with contextlib.chdir(place):
            for name, content in remedy.given.items():
                data = content if isinstance(content, bytes) else content.encode()
                Path(name).write_bytes(data)
            run(remedy.command)
        found.append(" ".join(capsys.readouterr().err.split()))
    return found


def test_every_remedy_has_an_example(tmp_path, capsys):
    messages = messages_of_commands(tmp_path, capsys)
    untried = {
        _line(each)
        for each in templates()
        if each.is_remedy
        and not any(is_of(example, each) for example in EXAMPLES.values())
        and not any(each.comes_to(message) for message in messages)
    }
    assert sorted(untried) == [], "add an example to tests/remedies"


def _line(template: Template) -> str:
    return " ".join(f"{template.module}: {template.text}".split())
