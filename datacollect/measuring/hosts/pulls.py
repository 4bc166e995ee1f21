"""Pulls over loopback, by few and by many connections: how much of the processors' time they use.

What a pull waits for, between its threads and its agent's, is no processor's time: costs do not
show it. Agent and pull are programs of their own, as always. Files and folder lie on the disk if it
is so fast that nobody waits for it, else in memory: a slow disk has a limit of its own. As in a
long pull, what is written goes into memory that nobody had a moment ago, and what is read is more
than caches hold.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.errors import DatacollectError, TransferError
from datacollect.machine.parts import GIB, PullUse
from datacollect.measuring.hosts.disk_writes import measure_disk
from datacollect.measuring.hosts.namespaces import LOOPBACK_ADDRESS
from datacollect.measuring.hosts.new_memory import memory_held
from datacollect.measuring.hosts.processor_times import TICK_S, ProcessorTimes
from datacollect.measuring.hosts.repeats import interval_of
from datacollect.measuring.hosts.seen import usable_processors
from datacollect.measuring.hosts.serving import NAME, serving_agent
from datacollect.orphans import end_when_closed, held_pipe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# From as few as there can be to as many as pulls open by default. By how much a second one helps
# depends on the processors, and beyond four their threads mostly wait for each other.
CONNECTIONS = (1, 2, 4, 16)
REPEATS = 3
# Of the time there is, to learn what writing takes where they write.
WRITING_PART = 0.1
# A few files by several names: each is fetched, and takes its room; together they are larger than
# the last cache of most machines.
FILE_BYTES, LEAST_FILES, MOST_FILES = 32 * 2**20, 2, 16
N_SERVED = 4
# Two pulls of so many tell how many there is time for.
TRIED_FILES = (1, 4)
NEEDED_BYTES = (MOST_FILES + N_SERVED + 1) * FILE_BYTES
IN_MEMORY = Path("/dev/shm")
# Where others are very busy, a pull takes many times as long.
PATIENCE_S = 240.0


def measure_pulls(
    seconds: float,
    disk: Path,
    fast_disk_s_per_gib: float | None = None,
    in_memory: Path = IN_MEMORY,
) -> list[PullUse]:
    """Return how much of the processors' time pulls use.

    Parameters
    ----------
    seconds : float
        For all of it.
    disk : Path
        A folder on the disk that pulls write to.
    fast_disk_s_per_gib : float, optional
        What it takes of processors to write there, if no pull waits for this disk.
    in_memory : Path
        A file system in memory; where neither has room, pulls write where temporary files lie.

    Raises
    ------
    TransferError
        A pull fails, or does not end.
    """
    on_disk = fast_disk_s_per_gib is not None and _has_room(disk)
    place = disk if on_disk else in_memory if _has_room(in_memory) else None
    with tempfile.TemporaryDirectory(prefix=".calibrate-", dir=place) as name, held_pipe() as pipe:
        wanted = Wanted(name, str(disk), seconds, fast_disk_s_per_gib if on_disk else None)
        command = [sys.executable, "-m", __name__, str(pipe), json.dumps(wanted)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                check=False,
                timeout=seconds + PATIENCE_S,
                pass_fds=(pipe,),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TransferError(f"pull: {error}") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise TransferError(f"pull: {said[-1] if said else f'code {done.returncode}'}")
    found = json.loads(done.stdout)
    return uses_of(found["pulls"], usable_processors(), found["write_s_per_gib"])


def uses_of(
    rows: Sequence[Mapping[str, float]], processors: float, write_s_per_gib: float
) -> list[PullUse]:
    """Return what rows say: how long each pull took, and how long processors were busy.

    Each pull also begins and ends, which takes as long whatever comes: that is what the smallest
    take, and it does not count.

    Parameters
    ----------
    rows : sequence of mapping
        As `pulled` returns them.
    processors : float
    write_s_per_gib : float
        What it takes of processors to write where they wrote.
    """
    fewest, most = (of(row["n_bytes"] for row in rows) for of in (min, max))
    small = [row for row in rows if row["n_bytes"] == fewest < most]
    n_bytes = most - (fewest if small else 0)
    first_s = {
        key: median(row[key] for row in small) if small else 0.0 for key in ("took_s", "busy_s")
    }
    shares, seconds = defaultdict(list), defaultdict(list)
    for row in rows:
        if row["n_bytes"] == most:
            took_s, busy_s = (max(row[key] - first_s[key], TICK_S) for key in first_s)
            n, of_gib_s = int(row["connections"]), busy_s / n_bytes * GIB
            # Where ticks are counted all may be busy for longer than there was time.
            shares[n].append(min(busy_s / (took_s * processors), 1.0))
            # No work is for nothing, whoever else was busy while writing was measured.
            seconds[n].append(max(of_gib_s - write_s_per_gib, of_gib_s / 2))
    return [PullUse(n, *interval_of(shares[n]), *interval_of(seconds[n])) for n in sorted(shares)]


def _has_room(place: Path) -> bool:
    with suppress(OSError):
        return os.access(place, os.W_OK) and shutil.disk_usage(place).free >= 2 * NEEDED_BYTES
    return False


# In the program itself -------------------------------------------------------------------------


class Wanted(NamedTuple):
    """What the program is to do.

    Attributes
    ----------
    folder : str
        Where all files lie.
    holes_in : str
        A folder on a disk: memory is held by a file there.
    seconds : float
        For all of it.
    write_s_per_gib : float or None
        What it takes to write in the folder; None where that is to be measured.
    """

    folder: str
    holes_in: str
    seconds: float
    write_s_per_gib: float | None


def pulled(folder: Path, seconds: float, hold: Callable[[int], None]) -> list[dict[str, float]]:
    """Pull again and again, by each number of connections, and a little; return a row each."""
    from datacollect.net.keys import new_private_key, write_private_key

    key = new_private_key()
    write_private_key(folder / "key", key)
    served = folder / "served"
    served.mkdir()
    block = os.urandom(2**20)
    for name in range(N_SERVED):
        with (served / str(name)).open("wb") as file:
            for number in range(FILE_BYTES // len(block)):
                file.write(number.to_bytes(8, "big") + block[8:])
    for name in range(N_SERVED, MOST_FILES):
        os.link(served / str(name % N_SERVED), served / str(name))
    with serving_agent(folder, served.name, LOOPBACK_ADDRESS, key.public) as facts:
        begun_s = time.monotonic()

        def pull_once(connections: int, n_files: int) -> dict[str, float]:
            row = _pulled(folder, facts, connections, n_files)
            hold(n_files * FILE_BYTES)
            return row

        def how_long_s(n_files: int) -> float:
            tried_s = time.monotonic()
            pull_once(CONNECTIONS[0], n_files)
            return time.monotonic() - tried_s

        pull_once(CONNECTIONS[0], 1)  # loads what pulls need, once
        tried = [how_long_s(n) for n in TRIED_FILES]
        left_s = seconds - (time.monotonic() - begun_s)
        n_files = files_that_fit(left_s / REPEATS, tried)
        return [
            pull_once(connections, n)
            for _ in range(REPEATS)
            for connections, n in ((CONNECTIONS[0], 1), *((each, n_files) for each in CONNECTIONS))
        ]


def files_that_fit(seconds: float, tried_s: Sequence[float]) -> int:
    """Return how many files to pull by each number of connections, two at least.

    Parameters
    ----------
    seconds : float
        For all of these pulls, and for one of a single file.
    tried_s : sequence of float
        What pulls of `TRIED_FILES` took.
    """
    one_s, more_s = tried_s
    few, many = TRIED_FILES
    each_s = max((more_s - one_s) / (many - few), TICK_S)
    left_s = (seconds - one_s) / len(CONNECTIONS) - one_s
    return min(max(1 + int(left_s / each_s), LEAST_FILES), MOST_FILES)


def _pulled(
    folder: Path, facts: Mapping[str, Any], connections: int, n_files: int
) -> dict[str, float]:
    from datacollect.transfer.pull.run import pull

    path, into, times = folder / "collection.toml", folder / "into", ProcessorTimes()
    path.write_text(
        'format = "datacollect-collection/1"\ndestination = "here"\nkey = "key"\n'
        f"[limits]\nconnections = {connections}\n"
        f'[agents.{NAME}]\nurl = "{facts["url"]}"\nfingerprint = "{facts["fingerprint"]}"\n',
        encoding="utf-8",
    )
    busy_s, begun_s = sum(times.busy_s().values()), time.monotonic()
    answer = pull(path, into, include=[str(number) for number in range(n_files)])
    took_s = time.monotonic() - begun_s
    busy_s = sum(times.busy_s().values()) - busy_s
    shutil.rmtree(into)
    if answer.n_bytes != n_files * FILE_BYTES:
        raise TransferError("not all data have arrived")
    return {
        "connections": connections,
        "n_bytes": answer.n_bytes,
        "took_s": took_s,
        "busy_s": busy_s,
    }


def main() -> None:
    """Pull as often as there is time, and say what came of it."""
    end_when_closed(int(sys.argv[1]))
    wanted = Wanted(*json.loads(sys.argv[2]))
    folder, seconds, write_s = Path(wanted.folder), wanted.seconds, wanted.write_s_per_gib
    try:
        if write_s is None:
            part_s = WRITING_PART * seconds
            write, _ = measure_disk(folder, part_s, 0.0, holes_in=wanted.holes_in)
            write_s, seconds = write.s_per_gib, seconds - part_s
        with memory_held(wanted.holes_in) as hold:
            rows = pulled(folder, seconds, hold)
    except (DatacollectError, OSError) as error:
        sys.exit(str(error))
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps({"pulls": rows, "write_s_per_gib": write_s}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
