"""Scripts of plans, run by sh and curl over links of limited rates: whole, in time, within room.

Problems are those of `exported_scripts`, made smaller: they take some forty seconds. Every host has
a web server; a link is a bucket at its rate and hours, shared by all that is fetched over it. The
scripts of all hosts start together.
"""

from __future__ import annotations

import math
import os
import random
import re
import subprocess
import tempfile
import threading
import time
from bisect import bisect_right
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from explore.exported_scripts import REQUESTS_PART, by_host, random_files, random_problem

import datacollect as dc
from datacollect.errors import InfeasibleError
from datacollect.exports.export import export
from datacollect.exports.script_texts import script_name
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import MARK, Files

PLANNED_S = 40.0
TOTAL_BYTES = 100_000_000
BLOCK_BYTES = 2**14
LIMIT_S = 300
MOST_DRAWS = 200
# Whole seconds in which scripts count, and a script's last look at what has arrived.
START_S = 1.5


def case(seed: int) -> str | None:
    """Plan by a deadline, export, run; say what is wrong."""
    rng = np.random.default_rng(seed)
    with Servers() as servers:
        drawn = draw(rng, servers.url, relays=seed % 4 > 0)
        with tempfile.TemporaryDirectory(prefix="scripts-") as folder:
            return wrong_run(Path(folder), servers, drawn)


@dataclass(frozen=True)
class Drawn:
    """A plan with scripts that are not refused."""

    problem: dc.Problem
    deadline_s: float
    manifest: dict[str, Files]
    texts: dict[str, str]  # by hosts


def draw(rng: np.random.Generator, url: str, *, relays: bool) -> Drawn:
    """Draw until scripts hold what the plan promises, and, where wanted, some host forwards."""
    addresses = [f"{url}/{{host}}/own/{{path}}"], [f"{url}/{{host}}/got/{{source}}/{{path}}"]
    for _ in range(MOST_DRAWS):
        problem = smaller(random_problem(rng))
        deadline_s = PLANNED_S * float(rng.uniform(1.1, 1.6))
        is_short = bool(np.isfinite(problem.storage_bytes).any())
        keep = is_short or bool(rng.integers(0, 2))
        manifest = random_files(problem, rng)
        templates = read_templates(*addresses, problem.names, is_url=True)
        try:
            plan = dc.coordinated(problem, deadline_s=deadline_s, keep_relayed=keep)
            texts = by_host(export(problem, plan, manifest, "curl", templates))
        except InfeasibleError:
            continue  # `exported_scripts` carries out what refusals advise
        if len(texts) > 1 or not relays:
            return Drawn(problem, deadline_s, manifest, texts)
    raise AssertionError(f"{MOST_DRAWS} draws are all refused")


def smaller(problem: dc.Problem) -> dc.Problem:
    """Scale bytes and time, so that it takes seconds."""
    took_s = dc.coordinated(problem).makespan_s
    size = TOTAL_BYTES / float(problem.backlog_bytes.sum())
    pace = PLANNED_S / took_s
    return problem.replace(
        backlog_bytes=np.floor(problem.backlog_bytes * size).astype(np.int64),
        storage_bytes=np.floor(problem.storage_bytes * size),
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * (size / pace),
        periods_s=problem.periods_s * pace,
    )


def wrong_run(folder: Path, servers: Servers, drawn: Drawn) -> str | None:
    """Run the scripts of all hosts; say what is late, full, wrong or missing."""
    problem = drawn.problem
    data = write_files(folder, drawn.manifest)
    servers.begin(folder / "hosts", problem)
    ended = run_all(folder, servers, drawn.texts)
    latest_s = drawn.deadline_s * (1 + REQUESTS_PART) + START_S
    for host, (code, took_s, said) in ended.items():
        if code:
            return f"{host}: exit code {code}: {said[-400:]}"
        if took_s > latest_s:
            return f"{host}: {took_s:.2f} s, the deadline is {drawn.deadline_s:.2f} s"
    for name, was in data.items():
        path = folder / "hosts" / problem.destination / "got" / name
        if not path.is_file() or path.read_bytes() != was:
            return f"{name} is not as it is at its source"
    for host, most in servers.highest.items():
        room = float(problem.storage_bytes[problem.host_index[host]])
        if host != problem.destination and most > room:
            return f"{host} stores {most} bytes, its room is {room:.0f}"
    return None


def write_files(folder: Path, manifest: dict[str, Files]) -> dict[str, bytes]:
    """Write each source's files into its own folder; return what they hold, by ``SOURCE/PATH``."""
    data = {}
    for source, files in manifest.items():
        for path, n_bytes in zip(files.paths, files.n_bytes.tolist(), strict=True):
            name = f"{source}/{path}"
            data[name] = random.Random(name).randbytes(n_bytes)
            where = folder / "hosts" / source / "own" / path
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(data[name])
    return data


def run_all(
    folder: Path, servers: Servers, texts: dict[str, str]
) -> dict[str, tuple[int, float, str]]:
    """Start all scripts together; return exit codes, times and words."""
    for host, text in texts.items():
        (folder / script_name(host)).write_text(text, encoding="utf-8")
    started = {}
    for host in texts:
        options = folder / f"{host}.curl"
        options.write_text(f'header = "X-Host: {host}"\n', encoding="utf-8")
        into = folder / "hosts" / host / "got"
        into.mkdir(parents=True, exist_ok=True)
        started[host] = subprocess.Popen(
            ["sh", str(folder / script_name(host)), str(into)],
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "DATACOLLECT_CURL_OPTIONS": str(options),
                "DATACOLLECT_PATIENCE_S": str(LIMIT_S),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    ended: dict[str, tuple[int, float, str]] = {}
    said: dict[str, str] = {}

    def wait(host: str) -> None:
        said[host] = started[host].communicate()[0]
        ended[host] = started[host].returncode, servers.now_s(), said[host]

    waiting = [threading.Thread(target=wait, args=(host,)) for host in texts]
    for thread in waiting:
        thread.start()
    while any(thread.is_alive() for thread in waiting):
        servers.look()
        if servers.now_s() > LIMIT_S:
            for process in started.values():
                process.terminate()
        time.sleep(0.1)
    return ended


class Servers:
    """A web server of all hosts, with a bucket for each link; `with Servers() as servers`.

    Attributes
    ----------
    url : str
    highest : dict of str to int
        Most bytes that lay in each host's folder for what it fetches, without marks.
    """

    def __enter__(self) -> Servers:
        servers = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                servers.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begin(self, hosts: Path, problem: dc.Problem) -> None:
        """Serve the folders of a problem's hosts; time begins with the first request.

        What a shell takes to start is nothing of an hour, and much of these seconds.
        """
        self._hosts, names, rates = hosts, problem.names, problem.bandwidth_bytes_per_s
        self.highest: dict[str, int] = {}
        self._buckets = {
            (names[a], names[b]): Bucket(problem.periods_s.tolist(), rates[:, k].tolist())
            for k, (a, b) in enumerate(
                zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
            )
        }
        self._begun_s = math.inf

    def now_s(self) -> float:
        """Return the seconds since then."""
        return max(0.0, time.monotonic() - self._begun_s)

    def look(self) -> None:
        """Count what lies at each host."""
        for folder in self._hosts.iterdir():
            total = 0
            # What passes over folders that go meanwhile.
            tree = os.walk(folder / "got")
            for path in (Path(place, name) for place, _, names in tree for name in names):
                try:
                    if MARK not in path.name and path.is_file():
                        about = path.stat()
                        # Pieces lie at their places in files: what is between them is on no disk.
                        total += min(about.st_size, 512 * about.st_blocks)
                except FileNotFoundError:
                    continue  # renamed meanwhile
            self.highest[folder.name] = max(total, self.highest.get(folder.name, 0))

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request at the pace of the link over which it came."""
        self._begun_s = min(self._begun_s, time.monotonic())
        _, host, *inside = handler.path.split("/")
        path = self._hosts.joinpath(host, *inside)
        if not path.is_file():
            handler.send_error(404)
            return
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range", ""))
            first = int(asked[1]) if asked else 0
            end = min(int(asked[2]) + 1, size) if asked and asked[2] else size
            handler.send_response(206 if asked else 200)
            if asked:
                handler.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
            handler.send_header("Content-Length", str(end - first))
            handler.send_header(
                "Last-Modified", handler.date_time_string(int(path.stat().st_mtime))
            )
            handler.end_headers()
            file.seek(first)
            bucket = self._buckets[host, handler.headers["X-Host"]]
            try:
                for begin in range(first, end, BLOCK_BYTES):
                    block = file.read(min(BLOCK_BYTES, end - begin))
                    bucket.take(len(block), self.now_s)
                    handler.wfile.write(block)
            except ConnectionError:
                handler.close_connection = True


class Bucket:
    """A link's rate by hours, shared by whoever sends over it."""

    def __init__(self, starts_s: list[float], rates: list[float]) -> None:
        self._starts_s, self._rates, self._lock = starts_s, rates, threading.Lock()
        self._free_s = 0.0

    def take(self, n_bytes: int, now_s: Any) -> None:
        """Wait until so many bytes have passed."""
        with self._lock:
            at_s, left = max(self._free_s, now_s()), float(n_bytes)
            while left > 0:
                period = bisect_right(self._starts_s, at_s) - 1
                until_s = (*self._starts_s, float("inf"))[period + 1]
                rate = self._rates[period]
                passes = rate * (until_s - at_s) if rate else 0.0
                if passes < left:
                    left, at_s = left - passes, until_s
                else:
                    left, at_s = 0.0, at_s + left / rate
            self._free_s = at_s
        time.sleep(max(0.0, at_s - now_s()))
