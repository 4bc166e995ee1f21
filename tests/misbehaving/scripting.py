"""Exported scripts on servers that misbehave: many sources, many files, each in its own way."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from judges.misbehaving_answers import Elsewhere
from judges.misbehaving_server import Site, misbehaving_server
from judges.misbehaviour import HONEST, Behaviour
from misbehaving.cases import Case, Outcome, Seen, Starts, Verdict, judged

import datacollect as dc
from datacollect.exports.export import export
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import Files, read_manifest

TOOLS = ("curl", "aria2", "rclone")
# What a tool that has no limit for heads, or a large one, reads of one without end, by
# docs/exports.md: aria2 in 16 MiB of memory; rclone 10 MiB, once for each range of a file.
HEAD_BYTES = {"aria2": 5_000_000, "rclone": 2 * 12_000_000}
FILES_PER_SOURCE = 8
# A source whose name begins so has its files cut in two ranges, where the tool fetches ranges.
CUT = "cut"
SCRIPT = "D.sh"
LIMIT_S = 200.0
BYTES_PER_S = 1e9
# Where it stalls it closes soon: tools wait for minutes, as they should.
SERVER_PATIENCE_S = 1.0
ENVIRONMENT = {
    "DATACOLLECT_EVERY_S": "0.05",
    "DATACOLLECT_TRIES": "2",
    "DATACOLLECT_PATIENCE_S": "2",
    "RCLONE_CONFIG": os.devnull,
    "RCLONE_CONFIG_W_TYPE": "http",
}


def is_slow(case: Case) -> bool:
    """Whether a script waits for it."""
    return case.behaviour.is_slow or case.behaviour.is_busy


@dataclass
class Scripts:
    """A server for some cases, and scripts of one tool that fetch them into a folder.

    Parameters
    ----------
    folder : Path
        Empty.
    tool : str
    cases : sequence of Case
        All with the same knowledge, which includes the size.
    """

    folder: Path
    tool: str
    cases: Sequence[Case]
    sources: dict[str, list[Case]] = field(init=False)

    def __post_init__(self) -> None:
        # A source's files come one after the other: the slow ones are dealt out to all.
        n_sources = -(-len(self.cases) // FILES_PER_SOURCE)
        self.sources = {f"{CUT}{k}" if k % 2 else f"S{k}": [] for k in range(n_sources)}
        names = list(self.sources)
        for n, case in enumerate(sorted(self.cases, key=is_slow)):
            self.sources[names[n % n_sources]].append(case)
        files = {path: case.file for path, case in self.by_path().items()}
        self.elsewhere, self.site = Site(files), Site(files)

    def by_path(self) -> dict[str, Case]:
        """Return the cases by where the server has them."""
        return {
            f"/{source}/{case.name}": case for source, each in self.sources.items() for case in each
        }

    def run(self, starts: Starts) -> Iterator[Outcome]:
        """Start as often as is wanted, and judge each case after the last start."""
        bad = {path: case.behaviour for path, case in self.by_path().items()}
        with self._serving():
            match starts:
                case Starts.BAD:
                    yield from self._judged(bad, starts, {})
                case Starts.GOOD_BAD:
                    before = {each.case: each.verdict for each in self._judged({}, starts, {})}
                    yield from self._judged(bad, starts, before)
                case Starts.BAD_GOOD:
                    list(self._judged(bad, starts, {}))
                    yield from self._judged({}, starts, {})

    @contextmanager
    def _serving(self) -> Iterator[None]:
        with (
            misbehaving_server(self.elsewhere) as other,
            misbehaving_server(self.site, patience_s=SERVER_PATIENCE_S) as server,
        ):
            self.site.elsewhere = Elsewhere(other.url, other.url)
            self.write(server.url)
            yield

    def write(self, url: str) -> None:
        """Write the script, of a plan in which each source sends straight, some in two streams."""
        self.environment = {**os.environ, **ENVIRONMENT, "RCLONE_CONFIG_W_URL": url}
        amounts = {
            source: sum(len(case.file.data) for case in cases)
            for source, cases in self.sources.items()
        }
        hosts = [dc.Host("D"), *(dc.Host(name, n) for name, n in amounts.items())]
        links = [dc.Link(name, "D", BYTES_PER_S) for name in amounts]
        problem = dc.Problem.from_hosts(hosts, links, "D")
        plan = dc.direct(problem)
        cut = [plan.routes[route].source.startswith(CUT) for route in plan.columns.route]
        streams = plan.columns.streams * np.where(cut, 2, 1)
        plan = plan.replace(columns=replace(plan.columns, streams=streams))
        is_url = self.tool != "rclone"
        place = f"{url}/{{source}}/{{path}}" if is_url else "w:{source}/{path}"
        templates = read_templates([place], [], problem.names, is_url=is_url)
        found = export(problem, plan, self._manifest(), self.tool, templates)
        (self.folder / SCRIPT).write_text(found.texts[SCRIPT])

    def _manifest(self) -> dict[str, Files]:
        path = self.folder / "files.csv"
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["host", "path", "bytes", "sha256"])
            for source, cases in self.sources.items():
                for case in cases:
                    sha256 = case.sha256 if case.known.sha256 else ""
                    rows.writerow([source, case.name, str(len(case.file.data)), sha256])
        return read_manifest(path)

    def _judged(
        self, behaviours: dict[str, Behaviour], starts: Starts, before: dict[Case, Verdict]
    ) -> Iterator[Outcome]:
        self.site.behave(behaviours)
        code, said = self._start()
        for path, case in self.by_path().items():
            arrived = self.folder / "into" / path[1:]
            lines = [line for line in said.splitlines() if re.search(rf"\b{path[1:]}\b", line)]
            seen = Seen(
                arrived.read_bytes() if arrived.is_file() else None,
                lines[-1] if lines else None,
                code == 0,
                self.site.n_requests[path],
                self.site.sent_bytes[path],
            )
            behaviour = behaviours.get(path, HONEST)
            was_there = before.get(case) is Verdict.IDENTICAL
            verdict = judged(
                case,
                behaviour,
                seen,
                was_there=was_there,
                confirms=False,
                most_head_bytes=HEAD_BYTES.get(self.tool, 0),
            )
            if code is None and verdict is Verdict.SILENT:
                verdict = Verdict.HUNG
            elif code not in (None, 0, 1):
                verdict = Verdict.BROKEN
            why = seen.why or (said[-300:] if verdict.is_bad else "")
            yield Outcome(case, starts, verdict, why, seen.n_requests, seen.sent_bytes)

    def _start(self) -> tuple[int | None, str]:
        """Run the script; return its exit code, None where it hangs, and its words."""
        process = subprocess.Popen(
            ["sh", SCRIPT, "into"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return None, said
        return process.returncode, said
