"""Hashes that distinguish experiments and runs: by all that shapes their results.

Files count with what is in them, not with their names. Runs are found again by these hashes, and a
folder of results goes on only with the same: what changes them loses the results of days.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from datacollect.errors import naming
from datacollect.files.documents import read_bytes, read_tree

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.scenario.scenario import Scenario

# Places whose values name files: what counts in a hash is what is in them.
FILE_PLACES = ("problem", "truth_csv", "estimates.file", "topology.file")


def sha256_of(tree: Any) -> str:
    """Hash a tree of JSON."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def by_content(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario's tree with the hash of each file that it names instead of its name."""
    tree = scenario.to_dict()
    for place in FILE_PLACES:
        *tables, key = place.split(".")
        table = tree
        for name in tables:
            table = table.get(name, {})
        if key in table:
            table[key] = _content(scenario.folder / table[key], place)
    return tree


def run_key(scenario: Scenario, engine: str, versions: Mapping[str, str]) -> str:
    """Hash of all that shapes a run: scenario, files that it names, engine, versions."""
    return sha256_of(
        {"scenario": by_content(scenario), "engine": engine, "versions": dict(versions)}
    )


def failure_key(sweep_sha256: str, labels: Mapping[str, str], seed: int) -> str:
    """Hash that names a run in one sweep, also where its scenario cannot be built."""
    return sha256_of([sweep_sha256, dict(labels), seed])


def _content(file: Path, place: str) -> str:
    with naming(place):
        data = read_bytes(file)
        digest = hashlib.sha256(data)
        if place == "problem" and isinstance(tree := read_tree(file), Mapping):
            links = tree.get("bandwidth_csv")
            if isinstance(links, str):
                digest.update(read_bytes(file.parent / links))
    return f"sha256:{digest.hexdigest()}"
