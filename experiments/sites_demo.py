"""Twelve sites, from measurements to moved files: the shipped example `sites`, and rclone.

    python experiments/sites_demo.py FOLDER

It estimates links from the example's samples, plans 40 TB by a deadline, and writes rclone scripts,
all in FOLDER. Then it does the same with some files of each site, a millionth of their bytes and an
hour in a second. These are really moved: they lie in a folder for each host, a web server on this
machine serves them, and the script of each host runs. Every SHA-256 is compared. Without rclone the
script is shown instead. No root, no other host.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import datacollect as dc
from datacollect.commands.main import run
from datacollect.files.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

Rows = list[dict[str, str]]

REMEDY = "apt install rclone, or brew"
# A remote for each host, and one for each folder in which a relay's script works.
ADDRESSES = ("--url", "{host}:{path}", "--relay-url", "{host}-relay:{source}/{path}")
# Then a relay's window closes; scripts forward whole pieces, and delete none.
DEADLINE = "06:00"
KEPT = ("--keep-relayed", "--margin", "10 min")
# What is really moved: the first files of each site, a millionth of them; an hour takes a second.
FILES_EACH, SMALLER, FASTER = 3, 1_000_000, 3600


def main() -> None:
    """Plan the collection, and carry a small one out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo/sites"))
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with contextlib.chdir(folder):
        plan_whole()
        if shutil.which("rclone") is None:
            show_script()
        else:
            carry_out_small()


def plan_whole() -> None:
    """From samples to scripts, as for 40 TB."""
    shown("example", "sites", quiet=True)
    print("It is to happen by night, so links are what was measured by night:")
    shown(
        *("estimate", "sites_samples.csv", "--how", "median", "-o", "sites.csv", "--force"),
        quiet=True,
    )
    shown("plan", "sites.toml", "--deadline", DEADLINE, *KEPT, "-o", "sites.json", quiet=True)
    plan = dc.Schedule.from_file("sites.json")
    print(
        f"40 TB in {format_duration(plan.makespan_s)}, by the deadline; "
        f"nothing is faster than {format_duration(plan.lower_bound_s)}"
    )
    pulls = ("pulls", "sites.toml", "sites.json", "--as", "rclone", *ADDRESSES, "-o", "scripts")
    shown(*pulls, quiet=True)


def show_script() -> None:
    """What somebody without rclone can see."""
    lines = Path("scripts/geneva.sh").read_text(encoding="utf-8").splitlines()
    head = lines[: lines.index("#")]
    fetches = [textwrap.shorten(line, 78) for line in lines if line.startswith("    { get ")]
    print(f"\nNothing is moved: rclone is missing ({REMEDY}).")
    print("scripts/geneva.sh is what would run:\n")
    print("\n".join([*head, "…", *fetches[:3], "…"]))


def carry_out_small() -> None:
    """Make small files, plan, and run the scripts of all hosts at once."""
    print(f"\nFor real, but small: the first {FILES_EACH} files of each site, a millionth of their")
    print("bytes, and an hour in a second:")
    files = make_files()
    write_small_problem(files)
    shown("plan", "small.json", "-o", "small-plan.json", quiet=True)
    small = ("small.json", "small-plan.json")
    shown("pulls", *small, "--as", "rclone", *ADDRESSES, "-o", "small-scripts", quiet=True)
    hosts = {script.stem: f"relays/{script.stem}" for script in Path("small-scripts").glob("*.sh")}
    hosts["geneva"] = "collected"
    with serving(hosts):
        took_s = run_scripts(hosts)
    wrong = [row["path"] for row in files if hash_of(arrived(row)) != row["sha256"]]
    if wrong:
        raise SystemExit(f"{len(wrong)} files differ, {wrong[0]} first")
    n_bytes = sum(int(row["bytes"]) for row in files)
    print(f"{len(files)} files, {n_bytes / 1e6:.0f} MB, collected in {took_s:.0f} s;", end=" ")
    print("the SHA-256 of each is that of the manifest")


def make_files() -> Rows:
    """Write a millionth of each host's first files; return their rows of the manifest."""
    with Path("sites_files.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kept: Rows = []
    for row in rows:
        if [other["host"] for other in kept].count(row["host"]) == FILES_EACH:
            continue
        path = Path("hosts", row["host"], row["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        content = os.urandom(int(row["bytes"]) // SMALLER)
        path.write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        kept.append({**row, "bytes": str(len(content)), "sha256": sha256})
    with Path("small_files.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(kept[0]))
        writer.writeheader()
        writer.writerows(kept)
    return kept


def write_small_problem(files: Rows) -> None:
    """Write the problem with these files: a millionth of bytes, an hour in a second."""
    problem = dc.Problem.from_file("sites.toml")
    held = dict.fromkeys(problem.names, 0)
    for row in files:
        held[row["host"]] += int(row["bytes"])
    faster = FASTER / SMALLER
    days = slice(0, -1)  # of the last period on nothing is listed
    small = problem.replace(
        manifest=None,
        backlog_bytes=list(held.values()),
        storage_bytes=problem.storage_bytes / SMALLER,
        release_s=problem.release_s / FASTER,
        periods_s=problem.periods_s[days] / FASTER,
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s[days] * faster,
        uplink_bytes_per_s=problem.uplink_bytes_per_s[days] * faster,
        downlink_bytes_per_s=problem.downlink_bytes_per_s[days] * faster,
    ).to_dict()
    # Its hours are no hours of any day.
    tree = {key: value for key, value in small.items() if key not in ("start", "timezone")}
    Path("small.json").write_text(json.dumps(tree | {"manifest": "small_files.csv"}))


@contextlib.contextmanager
def serving(hosts: dict[str, str]) -> Iterator[None]:
    """Serve this folder by HTTP, and tell rclone of a remote for each host."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    remotes = {path.name: f"hosts/{path.name}" for path in Path("hosts").iterdir()}
    remotes |= {f"{host}-relay": folder for host, folder in hosts.items()}
    lines = [
        f"[{name}]\ntype = http\nurl = http://127.0.0.1:{port}/{folder}/\n"
        for name, folder in remotes.items()
    ]
    Path("rclone.conf").write_text("".join(lines), encoding="utf-8")
    for folder in hosts.values():
        Path(folder).mkdir(parents=True)
    command = ["rclone", "serve", "http", ".", "--addr", f"127.0.0.1:{port}", "--read-only"]
    # What relays have just written is to be seen at once.
    server = subprocess.Popen([*command, "--dir-cache-time", "0s"], stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return as soon as the server answers."""
    while server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise SystemExit("rclone serve http ended at once; try it by hand")


def run_scripts(hosts: dict[str, str]) -> float:
    """Run the script of each host, all at the same time; return how long that took."""
    # Scripts look every so often whether a relay has what they wait for.
    environment = {**os.environ, "DATACOLLECT_EVERY_S": "0.5"}
    environment["RCLONE_CONFIG"] = str(Path("rclone.conf").resolve())
    begin_s = time.monotonic()
    running = []
    for host, folder in hosts.items():
        command = ["sh", f"small-scripts/{host}.sh", folder]
        print(f"$ {shlex.join(command)} &", flush=True)
        running.append(subprocess.Popen(command, env=environment))
    codes = [process.wait() for process in running]
    if any(codes):
        raise SystemExit("a script failed; it says above what")
    return time.monotonic() - begin_s


def arrived(row: dict[str, str]) -> Path:
    """Where a file lies at the destination."""
    return Path("collected", row["host"], row["path"])


def hash_of(path: Path) -> str:
    """The SHA-256 of a file, empty where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def shown(*arguments: str, quiet: bool = False) -> None:
    """Run a command of ours, showing it, and unless quiet what it prints."""
    command = f"$ datacollect {shlex.join(arguments)}"
    wrapped = textwrap.wrap(command, 77, subsequent_indent="    ", break_on_hyphens=False)
    print(" \\\n".join(wrapped), flush=True)
    with contextlib.ExitStack() as stack:
        if quiet:
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        code = run(list(arguments))
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
