"""A pull over loopback, by few and by many connections: how much of the processors' time it uses.

What a pull waits for, between its threads and its agent's, is no processor's time: costs do not
show it. Agent and pull are programs of their own, as always; file and folder lie in memory where
there is room, so that nobody waits for the disk, which has a limit of its own.
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
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError, TransferError
from datacollect.machine.parts import PullUse
from datacollect.measuring.hosts.namespaces import LOOPBACK_ADDRESS
from datacollect.measuring.hosts.processor_times import ProcessorTimes
from datacollect.measuring.hosts.repeats import interval_of
from datacollect.measuring.hosts.seen import usable_processors
from datacollect.measuring.hosts.serving import NAME, serving_agent
from datacollect.orphans import end_when_closed, held_pipe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# As few as there can be, and as many as pulls open by default.
CONNECTIONS = (1, 16)
REPEATS = 3
# One file by several names: each is fetched, and takes its room.
FILE_BYTES, MOST_FILES = 64 * 2**20, 8
NEEDED_BYTES = (MOST_FILES + 2) * FILE_BYTES
IN_MEMORY = Path("/dev/shm")
PATIENCE_S = 60.0


def measure_pulls(seconds: float, in_memory: Path = IN_MEMORY) -> list[PullUse]:
    """Return how much of the processors' time pulls use.

    Parameters
    ----------
    seconds : float
        For all of it.
    in_memory : Path
        A file system in memory; where it has no room, pulls write to the disk.

    Raises
    ------
    TransferError
        A pull fails, or does not end.
    """
    place = in_memory if _has_room(in_memory) else None
    with tempfile.TemporaryDirectory(prefix="calibrate-", dir=place) as name, held_pipe() as pipe:
        command = [sys.executable, "-m", __name__, str(pipe), name, str(seconds)]
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
    return uses_of(json.loads(done.stdout), usable_processors())


def uses_of(rows: Sequence[Mapping[str, float]], processors: float) -> list[PullUse]:
    """Return what rows say: how long each pull took, and how long processors were busy."""
    shares = defaultdict(list)
    for row in rows:
        # Where ticks are counted all may be busy for longer than there was time.
        share = min(row["busy_s"] / (row["took_s"] * processors), 1.0)
        shares[int(row["connections"])].append(share)
    return [PullUse(n, *interval_of(seen)) for n, seen in sorted(shares.items())]


def _has_room(place: Path) -> bool:
    with suppress(OSError):
        return os.access(place, os.W_OK) and shutil.disk_usage(place).free >= 2 * NEEDED_BYTES
    return False


# In the program itself -------------------------------------------------------------------------


def pulled(folder: Path, seconds: float) -> list[dict[str, float]]:
    """Pull again and again; return a row for each time."""
    from datacollect.net.keys import new_private_key, write_private_key

    key = new_private_key()
    write_private_key(folder / "key", key)
    served = folder / "served"
    served.mkdir()
    block = os.urandom(2**20)
    with (served / "0").open("wb") as file:
        for number in range(FILE_BYTES // len(block)):
            file.write(number.to_bytes(8, "big") + block[8:])
    for number in range(1, MOST_FILES):
        os.link(served / "0", served / str(number))
    with serving_agent(folder, served.name, LOOPBACK_ADDRESS, key.public) as facts:
        begun_s = time.monotonic()
        first = _pulled(folder, facts, CONNECTIONS[0], 1)
        left_s = seconds - (time.monotonic() - begun_s)
        fits = left_s / (len(CONNECTIONS) * REPEATS) / first["took_s"]
        n_files = min(max(int(fits), 1), MOST_FILES)
        return [
            _pulled(folder, facts, connections, n_files)
            for _ in range(REPEATS)
            for connections in CONNECTIONS
        ]


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
        raise TransferError("not all has come")
    return {"connections": connections, "took_s": took_s, "busy_s": max(busy_s, 1e-3)}


def main() -> None:
    """Pull as often as there is time, and say what came of it."""
    end_when_closed(int(sys.argv[1]))
    try:
        rows = pulled(Path(sys.argv[2]), float(sys.argv[3]))
    except (DatacollectError, OSError) as error:
        sys.exit(str(error))
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(rows))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
