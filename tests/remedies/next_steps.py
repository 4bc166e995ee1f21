"""What commands say at their end: notes, long lists that are cut short, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from remedies.trying import Example, call, in_folder, in_new_folder

from datacollect.commands.next_steps import UNWRITTEN
from datacollect.errors import DatacollectError

P = """
destination = "D"
[hosts.D]
[hosts.S]
backlog_bytes = 1_000_000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 250_000
price_per_gb = 0.1
"""
PROGRESS = '{"format": "datacollect-progress/1", "at_s": 1.0}'
SCENARIO = (
    'topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }\n'
    'hosts = { destination = { at = "N1" }, sources = [{ at = "N0", backlog_bytes = 5e6 }] }\n'
)
REPLAN = ("plan p.toml -o s.json", "replan p.toml s.json r.json")
GIVEN = {"method": "coordinated", "output": None, "verify": False}


def interrupted(command, **given):
    """Say what is kept, and what to do next, where a command has been interrupted."""
    return lambda: UNWRITTEN[command](GIVEN | given)


def done(*lines, **more):
    return in_folder(*lines, p_toml=P, r_json=PROGRESS, s_toml=SCENARIO, **more)


def listing(n_links, option=""):
    """Write the manifest of a folder with what is no file; what is said names all, or not."""

    def run():
        with in_new_folder():
            Path("S").mkdir()
            for i in range(n_links):
                Path(f"S/a{i}").symlink_to("b")
            with mock.patch("datacollect.commands.manifest.INCOMPLETE", 0):
                return call(f"manifest S -o m.csv {option}")

    return run


def lists_all(run, key, n_all):
    """Look whether `--json` names as many as there are."""

    def look():
        text = run()
        tree = json.loads(text[text.index("{") : text.rindex("}") + 1])
        assert len(tree[key]) == n_all

    return look


def says(word, run):
    assert word in run()


def connections_of(option):
    """Simulate too short a time; say what files came of it."""

    def run():
        with in_new_folder(s_toml=SCENARIO):
            with pytest.raises(DatacollectError):
                call(f"simulate s.toml --engine fluid --time-limit 1 {option}")
            return " ".join(path.name for path in Path("out").iterdir())

    return run


EXAMPLES = [
    Example(
        "; --time-limit S ends a run with what it has by then",
        interrupted("simulate"),
        done("simulate s.toml --engine fluid --time-limit 100"),
    ),
    Example(
        "--time-limit S ends the search for a plan",
        interrupted("plan"),
        done("plan p.toml --time-limit 100000"),
    ),
    Example(
        "--time-limit S ends the search for a plan",
        interrupted("replan"),
        done(REPLAN[0], f"{REPLAN[1]} --time-limit 100000"),
    ),
    Example(
        "--time-limit S ends the search for a plan",
        interrupted("compare"),
        done("compare p.toml --time-limit 100000"),
    ),
    Example(
        "and `datacollect plan` plans by one method alone",
        interrupted("compare"),
        done("plan p.toml"),
    ),
    Example(
        "and --method {} searches for nothing",
        interrupted("plan"),
        done("plan p.toml --method direct"),
    ),
    Example(
        "`datacollect plan` says what binds, and tries nothing else",
        interrupted("explain"),
        lambda: says("binds", done("plan p.toml")),
    ),
    Example(
        "`datacollect plan --deadline S` prices a single deadline",
        interrupted("front"),
        lambda: says("money", done("plan p.toml --deadline 100")),
    ),
    Example(
        "try: datacollect {command} {}",
        in_folder("example figure1"),
        in_folder("example figure1", "compare figure1.toml"),
    ),
    Example(
        "simulate --engine fluid",
        in_folder("example scenario_small"),
        in_folder("example scenario_small", "simulate --engine fluid scenario_small.toml"),
    ),
    Example(
        "write one with: datacollect example NAME",
        in_folder("example"),
        in_folder("example figure1"),
    ),
    Example("try: {command} --help", in_folder("plan"), in_folder("plan --help")),
    Example(
        "note: --problem-output FILE writes the problem that the new schedule solves",
        done(REPLAN[0], f"{REPLAN[1]} -o new.json"),
        done(
            REPLAN[0],
            f"{REPLAN[1]} -o new.json --problem-output rest.json",
            "check rest.json new.json",
        ),
    ),
    Example(
        "of simulated time; allow more with --time-limit",
        done("simulate s.toml --engine fluid --time-limit 1"),
        done("simulate s.toml --engine fluid --time-limit 100"),
    ),
    Example(
        "or, if nothing moves any longer, look for stuck connections with -o DIR",
        done("simulate s.toml --engine fluid --time-limit 1"),
        lambda: says("connections.csv", connections_of("-o out")),
    ),
    Example(
        "and {} more; --json lists all",
        listing(21),
        lists_all(listing(21, "--json"), "not_listed", 21),
        module="commands.manifest",
    ),
]
