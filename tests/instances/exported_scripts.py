"""Scripts exported for a few files, and what comes of starting them."""

from __future__ import annotations

import csv
import hashlib
import os
import random
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import datacollect as dc
from datacollect.exports import scripts as script_formats
from datacollect.exports.export import export
from datacollect.exports.formats import EXPORTS
from datacollect.exports.script_texts import RUNNER, script_name
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import read_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

# The tools that scripts run, and the shell files of which those of each consist.
PARTS = {
    name: (*tool.parts, *RUNNER)
    for name in EXPORTS.own
    if isinstance(tool := EXPORTS.get(name), script_formats.Scripts)
}
N_BYTES = 200_000
PARTIAL = Path("into/.datacollect/partial/S")


def without_times(said: str) -> str:
    """Leave out how long scripts took, which differs from start to start."""
    return re.sub(r"^\S+: took .*, .* predicted.*\n", "", said, flags=re.MULTILINE)


def data_of(name: str, n_bytes: int = N_BYTES) -> bytes:
    """Return the bytes of a file, always the same."""
    return random.Random(name).randbytes(n_bytes)


@dataclass(frozen=True)
class Scripts:
    """Scripts for hosts S, D and, where `relay`, K between them.

    Attributes
    ----------
    folder : Path
        In it lie the scripts, and the folders into which they fetch.
    """

    folder: Path
    kind: str = "curl"
    names: tuple[str, ...] = ("f",)
    n_bytes: int = N_BYTES
    knows_hashes: bool = False
    n_ranges: int = 2
    relay: bool = False

    @property
    def manifest(self) -> Path:
        """The list of files."""
        path = self.folder / "files.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["host", "path", "bytes", "sha256"])
            for name in self.names:
                known = hashlib.sha256(data_of(name, self.n_bytes)).hexdigest()
                rows.writerow(["S", name, self.n_bytes, known if self.knows_hashes else ""])
        return path

    @property
    def problem(self) -> dc.Problem:
        """S sends to D, straight or by K, as fast as it can."""
        hosts = [dc.Host("S", len(self.names) * self.n_bytes), dc.Host("K"), dc.Host("D")]
        pairs = [("S", "K"), ("K", "D")] if self.relay else [("S", "D")]
        return dc.Problem.from_hosts(hosts, [dc.Link(a, b, 1e9) for a, b in pairs], "D")

    def write(self, base: str, relay_base: str = "", problem: dc.Problem | None = None) -> None:
        """Write them, for files below an address."""
        problem = problem or self.problem
        plan = dc.coordinated(problem)
        streams = plan.columns.streams * self.n_ranges
        plan = plan.replace(columns=replace(plan.columns, streams=streams))
        is_url = self.kind in ("curl", "aria2")
        relayed = [f"{relay_base or base}/K/{{source}}/{{path}}"]
        templates = read_templates([f"{base}/{{path}}"], relayed, problem.names, is_url=is_url)
        manifest = read_manifest(self.manifest)
        found = export(problem, plan, manifest, self.kind, templates)
        for name, text in found.texts.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def start(
        self, host: str = "D", into: str = "into", more: Sequence[str] = (), **environment: str
    ) -> tuple[int, str]:
        """Run one to its end; return its exit code and what it says."""
        ended = subprocess.run(
            ["sh", script_name(host), into, *more],
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        return ended.returncode, without_times(ended.stdout)

    @property
    def environment(self) -> dict[str, str]:
        """No waits that take long, and nobody's own settings."""
        quick = {"DATACOLLECT_EVERY_S": "0.05", "DATACOLLECT_TRIES": "3"}
        quick |= {"DATACOLLECT_PATIENCE_S": "2", "RCLONE_CONFIG": os.devnull}
        return {**os.environ, "HOME": str(self.folder), **quick}

    def has_arrived(self) -> bool:
        """Tell whether all files are there as they are at their source."""
        return all(
            (self.folder / "into/S" / name).is_file()
            and (self.folder / "into/S" / name).read_bytes() == data_of(name, self.n_bytes)
            for name in self.names
        )

    def is_missing(self) -> bool:
        """Tell whether none of them is there."""
        return not any((self.folder / "into/S" / name).exists() for name in self.names)
