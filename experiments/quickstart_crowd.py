"""A class in its last minutes, at an event that one host keeps: how long does anybody wait?

    python experiments/quickstart_crowd.py [FOLDER] [--people 500] [--bytes 10000000]
        [--at-once 100] [--window 600]

Starts `datacollect event quickstart`, and has people hand in within the window before the
deadline, more and more of them as it comes near. They are threads of four processes on this
machine, so that they take from the servers' processors. Prints how many were in time, and how long
the acknowledgement took: from the request with the entry to the service's signed word. No root, no
other host. Exit 1: somebody was late, or the 99th percentile is above two seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from timestamp_demo import DATACOLLECT, free_ports

import datacollect as dc

N_PROCESSES = 4
MOST_ACKNOWLEDGED_S = 2.0
# To start all, and for the slowest to end after the window.
STARTS_S, SPARE_S = 60, 30
HANDING_IN, LOGGED = "handing in", "waiting for witnesses"


def hand_in(folder: Path, number: int, n_bytes: int) -> tuple[str, float, float]:
    """Have a person hand in; return what is proved, seconds to the acknowledgement, and in all."""
    own = folder / "people" / f"p{number}"
    own.mkdir(parents=True)
    path = own / "essay.bin"
    path.write_bytes(random.Random(number).randbytes(n_bytes))
    said_s: dict[str, float] = {}

    def told(text: str) -> None:
        for stage in (HANDING_IN, LOGGED):
            if text.startswith(stage):
                said_s.setdefault(stage, time.monotonic())

    began_s = time.monotonic()
    ticket = folder / "event/tickets" / f"p{number}.ticket"
    done = dc.upload(path, folder / "event/event.toml", ticket=ticket, tell=told).files[0]
    outcome = done.outcome if done.held_by else f"{done.outcome}, held by nobody"
    ended_s = time.monotonic()
    waited_s = said_s.get(LOGGED, ended_s) - said_s.get(HANDING_IN, began_s)
    shutil.rmtree(own)
    return outcome, waited_s, ended_s - began_s


def crowd(
    folder: Path, people: list[tuple[int, float]], at_once: int, n_bytes: int
) -> list[tuple[str, float, float]]:
    """Have some people hand in, each at an instant of `time.time`, so many at once."""

    def one(who: tuple[int, float]) -> tuple[str, float, float]:
        number, at_s = who
        time.sleep(max(at_s - time.time(), 0.0))
        return hand_in(folder, number, n_bytes)

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, sorted(people, key=lambda who: who[1])))


def main() -> None:
    """Hold the event, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo/quickstart"))
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--bytes", type=int, default=10_000_000)
    parser.add_argument("--at-once", type=int, default=100)
    parser.add_argument("--window", type=float, default=600.0)
    given = parser.parse_args()
    folder = given.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = "".join(f"p{i}\n" for i in range(given.people))
    (folder / "people.csv").write_text(f"person\n{names}")
    deadline = datetime.now(UTC).replace(microsecond=0)
    deadline += timedelta(seconds=given.window + STARTS_S + SPARE_S)
    place = f"127.0.0.1:{free_ports(1)[0]}"
    command = [
        *(DATACOLLECT, "event", "quickstart", "event", "--deadline", deadline.isoformat()),
        *("--people", "people.csv", "--timezone", "UTC", "--try", "--json"),
        *("--address", place, "--listen", place),
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as event:
        assert event.stdout is not None
        try:
            if not event.stdout.readline():
                sys.exit("the event does not start")
            os.environ["SSL_CERT_FILE"] = str(folder / "event/try.trusted.pem")
            # Half of them in the last third, as it always is.
            begin_s = deadline.timestamp() - SPARE_S - given.window
            chance = random.Random(1)
            at_s = [begin_s + given.window * chance.random() ** 0.5 for _ in range(given.people)]
            parts = [[*enumerate(at_s)][i::N_PROCESSES] for i in range(N_PROCESSES)]
            with ProcessPoolExecutor(N_PROCESSES, get_context("spawn")) as pool:
                jobs = [
                    pool.submit(crowd, folder, part, given.at_once // N_PROCESSES, given.bytes)
                    for part in parts
                ]
                rows = [row for job in jobs for row in job.result()]
        finally:
            event.terminate()
    outcomes = Counter(row[0] for row in rows)
    waits_s, all_s = np.array([row[1:] for row in rows]).T
    p99_s = float(np.percentile(waits_s, 99))
    print(f"{given.people} people, {given.bytes} bytes each, {given.at_once} at once at most")
    print(json.dumps(outcomes))
    print(f"acknowledged: median {np.median(waits_s):.2f} s, p99 {p99_s:.2f} s")
    slowest_s = np.percentile(all_s, 99)
    print(f"from sealing to held: median {np.median(all_s):.1f} s, p99 {slowest_s:.1f} s")
    print(f"load of this machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    sys.exit(outcomes["in time"] < given.people or p99_s > MOST_ACKNOWLEDGED_S)


if __name__ == "__main__":
    main()
