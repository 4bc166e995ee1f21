"""Five hosts join an event: how long until the server of each is ready?

    python experiments/joining_speed.py [FOLDER]

Runs `event init` and `event open` for an organiser, and at once `join` for two witnesses, a
service, a bistro and a destination, each with an address of the loopback (Linux), a certificate and
a new folder of its own. Prints the seconds from each command to its server's line that it is ready:
until then all others have joined, too, and the event is open. Comparing fingerprints comes on top.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from timestamp_demo import DATACOLLECT, free_ports

ROLES = ("witness", "witness", "service", "bistro", "destination")


def main() -> None:
    """Have all join, and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo/joining"))
    folder = parser.parse_args().folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    authority, ports = trustme.CA(), free_ports(1 + len(ROLES))
    hosts = [folder / f"host{number}" for number in range(1 + len(ROLES))]
    ways = [
        made_host(host, f"127.0.0.{2 + i}", port, authority)
        for i, (host, port) in enumerate(zip(hosts, ports, strict=True))
    ]
    authority.cert_pem.write_to_path(folder / "authority.pem")
    os.environ["SSL_CERT_FILE"] = str(folder / "authority.pem")
    (hosts[0] / "people.csv").write_text("person\nann\n")
    deadline = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d %H:%M}"
    init = ("event", "init", "essay", "--deadline", deadline, "--timezone", "UTC")
    init = (*init, "--people", "people.csv", "--hosts", str(len(ROLES)), *ways[0], "--json")
    made = subprocess.run([DATACOLLECT, *init], cwd=hosts[0], stdout=subprocess.PIPE, check=True)
    lines = json.loads(made.stdout)["invitations"]
    began_s = time.monotonic()
    organiser = started(hosts[0], "event", "open", "essay", "--yes")
    joining = [
        started(host, "join", line, "--as", role, *way)
        for host, line, role, way in zip(hosts[1:], lines, ROLES, ways[1:], strict=True)
    ]
    try:
        with ThreadPoolExecutor(len(ROLES)) as pool:
            readies_s = [*pool.map(ready_s, joining)]
    finally:
        for each in (organiser, *joining):
            each.terminate()
            each.communicate()
    for role, at_s in zip(ROLES, readies_s, strict=True):
        print(f"join as {role}: ready after {at_s - began_s:.1f} s")
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def made_host(folder: Path, name: str, port: int, authority: trustme.CA) -> tuple[str, ...]:
    """Make a host's folder and certificate; return the options that say how it is reached."""
    folder.mkdir(parents=True)
    issued = authority.issue_cert(name)
    (chain,) = issued.cert_chain_pems
    chain.write_to_path(folder / "cert.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    place = f"{name}:{port}"
    certificate = ("--certificate", "cert.pem", "--certificate-key", "key.pem")
    return "--address", place, "--listen", place, *certificate, "--trust-clock"


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a command in a host's folder; what it says besides its lines is kept there."""
    with (folder / "said").open("w") as said:
        return subprocess.Popen(
            [DATACOLLECT, *arguments, "--json"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )


def ready_s(process: subprocess.Popen[str]) -> float:
    """Return when a server is ready: with its second line, behind the one with its fingerprint."""
    assert process.stdout is not None
    for _ in range(2):
        if not process.stdout.readline():
            sys.exit("a host does not join; its file `said` says why")
    return time.monotonic()


if __name__ == "__main__":
    main()
