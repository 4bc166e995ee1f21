"""What a bistro's lock is held for while many push: `python experiments/bistro_lock.py [FOLDER]`.

Writes of bytes are made under the lock that puts uploads in order. Prints how much of the time it
is held, how much of that for writing, the longest hold, and how long the disk was synced, which is
outside: twenty people alone, then beside a hundred who push what is wrong. FOLDER is of the disk.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bistro.test_crowds import N_HONEST, N_PUSHERS, all_served, push
from instances.bistros import bistro_event, running_bistro
from instances.crowds import crowd

from datacollect.bistro.formats.custody.verdicts import COVERED_PATH
from datacollect.bistro.upload_server import server
from datacollect.bistro.upload_server.store import UploadStore

WITHIN_S, CROWDED_S = 60.0, 3.0


class Measured:
    """How long something took, each time."""

    def __init__(self) -> None:
        self.took_s: list[float] = []

    def of(self, function):
        """Return a function that does the same, and is measured."""

        def measured(*given):
            begun_s = time.perf_counter()
            try:
                return function(*given)
            finally:
                self.took_s.append(time.perf_counter() - begun_s)

        return measured


HELD, WRITTEN, SYNCED = Measured(), Measured(), Measured()


class Lock:
    """A lock that measures for how long it is held."""

    def __init__(self) -> None:
        self._lock, self._since_s = threading.Lock(), 0.0

    def acquire(self, *how) -> bool:
        is_held = self._lock.acquire(*how)
        if is_held:
            self._since_s = time.perf_counter()
        return is_held

    def release(self) -> None:
        HELD.took_s.append(time.perf_counter() - self._since_s)
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Threading:
    """The module `threading`, with these locks."""

    Lock = Lock

    def __getattr__(self, name: str):
        return getattr(threading, name)


def measure(kind: str, serve, first: int) -> float:
    """Serve people; print what was measured meanwhile, and return how long it took."""
    for each in (HELD, WRITTEN, SYNCED):
        each.took_s = []
    took_s, _ = all_served(serve, first)
    shares = (sum(each.took_s) / took_s for each in (HELD, WRITTEN, SYNCED))
    held, written, synced = (f"{share:.1%}" for share in shares)
    print(
        f"{kind}: {took_s:.2f} s; the lock is held {held} of the time, {written} to write, "
        f"{1000 * max(HELD.took_s):.0f} ms at most; groups are committed for {synced}"
    )
    return took_s


def main() -> None:
    """Measure, in a folder on the disk that is meant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", nargs="?", type=Path, help="folder on the disk to measure")
    place = parser.parse_args().place
    server.threading = Threading()
    UploadStore.add = WRITTEN.of(UploadStore.add)
    UploadStore.commit = SYNCED.of(UploadStore.commit)
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        event = bistro_event(folder, limits={"bytes": 10**8, "commitments_per_ticket": 2})
        with running_bistro(folder, most_bytes=10**10) as (client, _):
            port = client.address[1]
            serve = partial(push, event, port)
            alone_s = measure("alone", serve, 1)
            with crowd(port, COVERED_PATH, folder, WITHIN_S, pushers=N_PUSHERS):
                measure("as they come", serve, 1 + N_HONEST)
                time.sleep(CROWDED_S)
                beside_s = measure("beside them", serve, 1 + 2 * N_HONEST)
    print(f"ratio: {beside_s / alone_s:.1f}")


if __name__ == "__main__":
    main()
