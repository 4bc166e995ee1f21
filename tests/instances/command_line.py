"""Commands as users start them, what they answer to programs, and a problem without an answer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import datacollect as dc

# What every plan says to programs.
PLAN_KEYS = {
    "method",
    "makespan_s",
    "lower_bound_s",
    "bottleneck",
    "n_transfers",
    "n_routes",
    "plan_time_s",
    "peak_storage_bytes",
}


def start(*arguments, **options):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "datacollect", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def output_of(*command, **options):
    """Run a program that must succeed; return what it prints."""
    done = subprocess.run(
        [*map(str, command)], check=False, capture_output=True, text=True, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def strict_json(text):
    """Parse one JSON object, refusing what JSON lacks."""

    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    tree = json.loads(text, parse_constant=refuse)
    assert isinstance(tree, dict)
    return tree


def problem_without(place, here):
    """Cut all that leads out of a host of figure1."""
    problem = dc.Problem.from_file(here / "figure1.toml").to_dict()
    problem["links"] = [link for link in problem["links"] if link["from"] != place]
    del problem["shared"]
    (here / "cut.json").write_text(json.dumps(problem))
    return "cut.json"
