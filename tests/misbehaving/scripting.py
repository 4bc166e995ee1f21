"""Exported scripts on servers that misbehave: many sources, many files, each in its own way."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from judges.misbehaving_answers import Elsewhere
from judges.misbehaving_server import Site, misbehaving_server
from judges.misbehaviour import HONEST, Behaviour
from misbehaving.cases import Case, Outcome, Seen, Starts, Verdict, judged

TOOLS = ("curl", "aria2", "rclone")
FILES_PER_SOURCE = 8
# A source whose name begins so has its files cut in two ranges, where the tool fetches ranges.
CUT = "cut"
LIMIT_S = 200.0
BYTES_PER_S = 1e9
# Where it stalls it closes soon: tools wait for minutes, as they should.
SERVER_PATIENCE_S = 1.0
ENVIRONMENT = {
    "DATACOLLECT_EVERY_S": "0.05",
    "DATACOLLECT_TRIES": "2",
    "DATACOLLECT_PATIENCE_S": "5",
    "RCLONE_CONFIG": os.devnull,
    "RCLONE_CONFIG_W_TYPE": "http",
}


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
        self.sources = {}
        for n, case in enumerate(self.cases):
            k = n // FILES_PER_SOURCE
            name = f"{CUT}{k}" if k % 2 else f"S{k}"
            self.sources.setdefault(name, []).append(case)
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
            self._write(server.url)
            yield

    def _write(self, url: str) -> None:
        self._write_plan()
        with (self.folder / "files.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["host", "path", "bytes", "sha256"])
            for source, cases in self.sources.items():
                for case in cases:
                    sha256 = case.sha256 if case.known.sha256 else ""
                    rows.writerow([source, case.name, str(len(case.file.data)), sha256])
        self.environment = {**os.environ, **ENVIRONMENT, "RCLONE_CONFIG_W_URL": url}
        place = "w:{source}/{path}" if self.tool == "rclone" else f"{url}/{{source}}/{{path}}"
        self._datacollect("pulls", "problem.json", "plan.json", "--as", self.tool,
                          "--manifest", "files.csv", "--url", place, "-o", "scripts")  # fmt: skip

    def _write_plan(self) -> None:
        """Write a plan in which each source sends straight, some of them in two streams."""
        amounts = {
            source: sum(len(case.file.data) for case in cases)
            for source, cases in self.sources.items()
        }
        problem = {
            "destination": "D",
            "hosts": {"D": {}, **{name: {"backlog_bytes": n} for name, n in amounts.items()}},
            "links": [
                {"from": name, "to": "D", "bandwidth_bytes_per_s": BYTES_PER_S} for name in amounts
            ],
        }
        (self.folder / "problem.json").write_text(json.dumps(problem))
        self._datacollect("plan", "problem.json", "--method", "direct", "-o", "plan.json")
        plan = json.loads((self.folder / "plan.json").read_text())
        for transfer in plan["transfers"]:
            transfer["streams"] = 2 if transfer["source"].startswith(CUT) else 1
        (self.folder / "plan.json").write_text(json.dumps(plan))

    def _datacollect(self, *words: str) -> None:
        command = [sys.executable, "-m", "datacollect", *words]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stderr

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
            verdict = judged(case, behaviour, seen, was_there=was_there)
            if code is None and verdict is Verdict.SILENT:
                verdict = Verdict.HUNG
            elif code not in (None, 0, 1):
                verdict = Verdict.BROKEN
            why = seen.why or (said[-300:] if verdict.is_bad else "")
            yield Outcome(case, starts, verdict, why, seen.n_requests, seen.sent_bytes)

    def _start(self) -> tuple[int | None, str]:
        """Run the script; return its exit code, None where it hangs, and its words."""
        process = subprocess.Popen(
            ["sh", "scripts/D.sh", "into"],
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
