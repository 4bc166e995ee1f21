"""A gigabyte by scripts over a relay, while one of them is killed every other second.

    python experiments/killed_scripts.py [--tools curl,aria2] [--files 16] [--megabytes 64]

Three hosts on one machine: a source behind nginx (without listings of folders; for rsync a
folder), a relay K and a destination D, whose scripts run at the same time. Every two seconds all
processes of one of the two are killed, in turn, and it is started again. In the end every byte is
compared, and it says how much was sent for what arrived.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import datacollect as dc
from datacollect.exports.export import export
from datacollect.exports.formats import EXPORTS
from datacollect.exports.scripts import Scripts
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = [name for name in EXPORTS.own if isinstance(EXPORTS.get(name), Scripts)]
BYTES_PER_S = 40e6
STREAMS = 2
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
{user}
events {{}}
http {{
  log_format sent '$body_bytes_sent $request_uri'; access_log {folder}/access.log sent;
  client_body_temp_path {folder}/t; proxy_temp_path {folder}/t; fastcgi_temp_path {folder}/t;
  uwsgi_temp_path {folder}/t; scgi_temp_path {folder}/t;
  server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""


@dataclass(frozen=True)
class Outcome:
    """Outcome of the scripts.

    Attributes
    ----------
    is_identical : bool
    n_kills : int
    took_s : float
    sent_bytes : int or None
        By nginx, to the relay and to the destination; None where it was not asked.
    said : str
        What scripts said last.
    """

    is_identical: bool
    n_kills: int
    took_s: float
    sent_bytes: int | None
    said: str


def move(
    folder: Path, tool: str, *, n_files: int, file_bytes: int, every_s: float, limit_s: float
) -> Outcome:
    """Move files from S over K to D by a tool's scripts, killing one of them every so often."""
    _write_files(folder, n_files, file_bytes)
    with _serving(folder) as url:
        _write_scripts(folder, tool, url, n_files * file_bytes)
        began_s = time.monotonic()
        n_kills = _run_and_kill(folder, every_s, began_s + limit_s)
        took_s = time.monotonic() - began_s
    is_identical = all(
        _sha256(folder / "S" / f"f{k}") == _sha256(folder / "D/S" / f"f{k}") for k in range(n_files)
    )
    sent = [int(line.split()[0]) for line in (folder / "access.log").read_text().splitlines()]
    said = "".join((folder / f"{host}.log").read_text()[-300:] for host in "KD")
    return Outcome(is_identical, n_kills, took_s, sum(sent) if sent else None, said)


def _write_files(folder: Path, n_files: int, file_bytes: int) -> None:
    (folder / "S").mkdir()
    with (folder / "files.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["host", "path", "bytes", "sha256"])
        for k in range(n_files):
            (folder / "S" / f"f{k}").write_bytes(os.urandom(file_bytes))
            rows.writerow(["S", f"f{k}", file_bytes, _sha256(folder / "S" / f"f{k}")])


def _sha256(path: Path) -> str:
    if not path.is_file():
        return "none"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "t").mkdir()
    user = "user root;" if os.geteuid() == 0 else ""
    text = NGINX.format(folder=folder, port=port, user=user)
    (folder / "nginx.conf").write_text(text)
    command = ["nginx", "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    server = subprocess.Popen(command)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _write_scripts(folder: Path, tool: str, url: str, n_bytes: int) -> None:
    hosts = [dc.Host("S", n_bytes), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("S", "K", BYTES_PER_S), dc.Link("K", "D", BYTES_PER_S)]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    plan = dc.coordinated(problem)
    plan = plan.replace(columns=replace(plan.columns, streams=plan.columns.streams * STREAMS))
    base = {"rclone": f":http,url='{url}':", "rsync": str(folder)}.get(tool, url)
    slash = "" if tool == "rclone" else "/"
    own, relayed = f"{base}{slash}S/{{path}}", f"{base}{slash}K/{{source}}/{{path}}"
    templates = read_templates([own], [relayed], problem.names, is_url=EXPORTS.get(tool).is_url)
    manifest = read_manifest(folder / "files.csv")
    for name, text in export(problem, plan, manifest, tool, templates).texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _run_and_kill(folder: Path, every_s: float, until_s: float) -> int:
    """Run both scripts until both have ended well; return how often one was killed."""
    running = {host: _start(folder, host) for host in "KD"}
    n_kills = 0
    done: set[str] = set()
    while len(done) < len(running) and time.monotonic() < until_s:
        kill_at_s = time.monotonic() + every_s
        while time.monotonic() < kill_at_s and len(done) < len(running):
            for host, process in running.items():
                if host not in done and process.poll() is not None:
                    if process.returncode == 0:
                        done.add(host)
                    else:  # it was killed, or its relay was not as far
                        running[host] = _start(folder, host)
            time.sleep(0.05)
        alive = [host for host in running if host not in done]
        if alive:
            _kill(running[alive[n_kills % len(alive)]])
            n_kills += 1
    for host in running.keys() - done:
        _kill(running[host])
    return n_kills


def _start(folder: Path, host: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "DATACOLLECT_EVERY_S": "0.2", "RCLONE_CONFIG": os.devnull}
    with (folder / f"{host}.log").open("ab") as log:
        return subprocess.Popen(
            ["sh", f"{host}.sh", host],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> int:
    """Move them by each tool; exit 1 where a byte differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--megabytes", type=float, default=64, help="of each file")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between kills")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for each tool")
    options = parser.parse_args()
    n_bytes = options.files * int(options.megabytes * 1e6)
    sys.stdout.write(f"{n_bytes / 1e9:.2f} GB in {options.files} files, over a relay\n")
    is_well = True
    for tool in options.tools.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found = move(
                Path(folder),
                tool,
                n_files=options.files,
                file_bytes=int(options.megabytes * 1e6),
                every_s=options.every,
                limit_s=options.limit,
            )
        sent = "" if found.sent_bytes is None else f", {found.sent_bytes / 2 / n_bytes:.2f} times"
        verdict = (
            "identical"
            if found.is_identical
            else "NOT identical: " + re.sub(r"\s+", " ", found.said)
        )
        sys.stdout.write(f"{tool}: {found.n_kills} kills, {found.took_s:.0f} s{sent}, {verdict}\n")
        sys.stdout.flush()
        is_well = is_well and found.is_identical
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
