"""`datacollect pull` from servers that misbehave: many files in one pull, each in its own way."""

from __future__ import annotations

import csv
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from judges.misbehaving_answers import Elsewhere
from judges.misbehaving_server import MisbehavingServer, Site, misbehaving_server
from judges.misbehaviour import HONEST, Behaviour
from judges.strict_client import Known
from misbehaving.cases import Case, Outcome, Seen, Starts, Verdict, judged, neighbours_of, twins_of

from datacollect.net.keys import new_private_key, write_private_key
from datacollect.net.tls import fingerprint_of_file, make_certificate

# What is slow, or wants to be left alone, has few others beside it.
FILES_PER_ENTRY = {"quiet": 40, "busy": 6, "slow": 6, "page": 1}
LIMIT_S = 150.0
COLLECTION = """
format = "datacollect-collection/1"
destination = "D"
key = "collector.key"
limits = { connections = 256, patience_s = 4.0, timeout_s = 2.0 }
"""


def kind_of(case: Case) -> str:
    """Return beside which others a file lies."""
    behaviour = case.behaviour
    if behaviour.is_one_page:
        return "page"
    if behaviour.is_busy:
        return "busy"
    return "slow" if behaviour.is_slow else "quiet"


@dataclass(frozen=True)
class Entry:
    """A `[servers.NAME]`: files of one kind of which as much is known; a plain one among them."""

    name: str
    cases: tuple[Case, ...]
    is_secure: bool

    @property
    def known(self) -> Known:
        """What is known of its files."""
        return self.cases[0].known

    def path(self, case: Case) -> str:
        """Return where a server has a file."""
        return f"/{self.name}/{case.name}"


def entries_of(cases: Iterable[Case], *, alone: bool = False) -> list[Entry]:
    """Put cases into entries, quick ones beside a plain file; or each into one of its own."""
    if alone:
        return [
            Entry(f"W{n}", (case,), case.behaviour.redirect == "insecure")
            for n, case in enumerate(cases)
        ]
    groups: dict[tuple[str, Known, bool], list[Case]] = {}
    for case in cases:
        is_secure = case.behaviour.redirect == "insecure"
        groups.setdefault((kind_of(case), case.known, is_secure), []).append(case)
    found = []
    for (kind, _, is_secure), group in groups.items():
        step = FILES_PER_ENTRY[kind]
        for begin in range(0, len(group), step):
            chosen = group[begin : begin + step]
            half = len(chosen) // 2
            neighbours = []
            if kind == "page":
                # One page can be told from a file where it stands for many names.
                neighbours = twins_of(chosen[0], 3)
                if chosen[0].behaviour.names == "half":
                    neighbours += neighbours_of(chosen[0], len(neighbours) + 1)
            elif kind == "quiet":
                # Not where waiting may end all of a server: its patience is for all of its files.
                neighbours = neighbours_of(chosen[0])
            beside = (*chosen[:half], *neighbours, *chosen[half:])
            found.append(Entry(f"W{len(found)}", beside, is_secure))
    return found


@dataclass
class Pulls:
    """Servers for some cases, and a folder in which pulls collect them.

    Parameters
    ----------
    folder : Path
        Empty.
    cases : sequence of Case
    alone : bool
        Whether each file is all that its server has.
    """

    folder: Path
    cases: Sequence[Case]
    alone: bool = False
    entries: list[Entry] = field(init=False)

    def __post_init__(self) -> None:
        self.entries = entries_of(self.cases, alone=self.alone)
        files = {entry.path(case): case.file for entry in self.entries for case in entry.cases}
        # A redirect that is followed where it should not be is seen there.
        self.elsewhere = Site(files)
        self.site = Site(files)

    def run(self, starts: Starts) -> Iterator[Outcome]:
        """Start as often as is wanted, and judge each case after the last start."""
        all_bad = {e.path(case): case.behaviour for e in self.entries for case in e.cases}
        with self._serving():
            match starts:
                case Starts.BAD:
                    yield from self._judged(all_bad, starts, {})
                case Starts.GOOD_BAD:
                    before = {o.case: o.verdict for o in self._judged({}, starts, {})}
                    yield from self._judged(all_bad, starts, before)
                case Starts.BAD_GOOD:
                    list(self._judged(all_bad, starts, {}))
                    yield from self._judged({}, starts, {})

    @contextmanager
    def _serving(self) -> Iterator[None]:
        with ExitStack() as stack:
            secure = self._context()
            other = stack.enter_context(misbehaving_server(self.elsewhere))
            self.site.elsewhere = Elsewhere(other.url, other.url)
            plain = stack.enter_context(misbehaving_server(self.site))
            over_tls = stack.enter_context(misbehaving_server(self.site, tls=secure))
            self._write(plain, over_tls)
            yield

    def _context(self) -> ssl.SSLContext:
        certificate, key = make_certificate("W", "127.0.0.1")
        (self.folder / "cert.pem").write_bytes(certificate)
        (self.folder / "both.pem").write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "both.pem")
        return context

    def _write(self, plain: MisbehavingServer, over_tls: MisbehavingServer) -> None:
        write_private_key(self.folder / "collector.key", new_private_key())
        fingerprint = fingerprint_of_file(self.folder / "cert.pem")
        lines = [COLLECTION]
        for entry in self.entries:
            url = (over_tls if entry.is_secure else plain).url
            lines += [f"[servers.{entry.name}]"]
            lines += [f'fingerprint = "{fingerprint}"' if entry.is_secure else "plain_http = true"]
            lines += self._files_of(entry, url)
        (self.folder / "collection.toml").write_text("\n".join([*lines, ""]))

    def _files_of(self, entry: Entry, url: str) -> list[str]:
        """Return how the collection names the files of an entry, with what is known of them."""
        known, name = entry.known, f"{entry.name}.csv"
        if not known.n_bytes and not known.sha256:
            paths = ", ".join(f'"{case.name}"' for case in entry.cases)
            return [f'url = "{url}/{entry.name}/"', f"paths = [{paths}]"]
        if known.n_bytes:
            rows = [["host", "path", "bytes", "sha256"]]
            for case in entry.cases:
                sha256 = case.sha256 if known.sha256 else ""
                rows.append([entry.name, case.name, str(len(case.file.data)), sha256])
            lines = [f'url = "{url}/{entry.name}/"', f'manifest = "{name}"']
        else:
            rows = [["url", "sha256"]]
            rows += [[f"{url}{entry.path(case)}", case.sha256] for case in entry.cases]
            lines = [f'urls = "{name}"']
        with (self.folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        return lines

    def _judged(
        self, behaviours: dict[str, Behaviour], starts: Starts, before: dict[Case, Verdict]
    ) -> Iterator[Outcome]:
        self.site.behave(behaviours)
        said = self._pull()
        for entry in self.entries:
            for case in entry.cases:
                path = entry.path(case)
                arrived = self.folder / "into" / entry.name / case.name
                seen = Seen(
                    arrived.read_bytes() if arrived.is_file() else None,
                    said.why(entry.name, case.name),
                    said.code == 0,
                    self.site.n_requests[path],
                    self.site.sent_bytes[path],
                )
                behaviour = behaviours.get(path, HONEST)
                was_there = before.get(case) is Verdict.IDENTICAL
                verdict = judged(case, behaviour, seen, was_there=was_there)
                if self.elsewhere.n_requests[path]:
                    verdict = Verdict.WRONG
                yield Outcome(
                    case,
                    starts,
                    said.verdict or verdict,
                    seen.why or said.stderr[-300:] * (verdict.is_bad or said.verdict is not None),
                    seen.n_requests,
                    seen.sent_bytes,
                )

    def _pull(self) -> Said:
        command = [sys.executable, "-m", "datacollect", "pull", "collection.toml"]
        try:
            done = subprocess.run(
                [*command, "--into", "into", "--json"],
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
            )
        except subprocess.TimeoutExpired:
            return Said(None, {}, "", Verdict.HUNG)
        try:
            tree = json.loads(done.stdout)
        except ValueError:
            tree = {}
        is_broken = done.returncode not in (0, 1) or not tree or "internal error" in done.stderr
        return Said(done.returncode, tree, done.stderr, Verdict.BROKEN if is_broken else None)


@dataclass
class Said:
    """Messages of a pull; `verdict` where that spoils all files alike."""

    code: int | None
    tree: dict
    stderr: str
    verdict: Verdict | None

    def why(self, source: str, path: str) -> str | None:
        """Return why a file is missing; a reason for all of its source counts."""
        found = {
            (each["source"], each["path"]): each["why"] for each in self.tree.get("missing", ())
        }
        return found.get((source, path)) or found.get((source, ""))
