"""Cost of each upload at a destination: taking reports, opening, checking, writing, judging.

    python experiments/bistro_collect_speed.py [--uploads 4000] [--bytes 100000] [--workers 2]

Makes an event, seals files, lays them out as four bistros serve them, and lets a destination do its
rounds on them. Segments come by hard links, times and the log of verdicts are stood in for: a pull
and a log have tables of their own. Prints uploads a second, processor time of each upload, and the
most memory of a process.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyrage
from bistro_audit_speed import key_of
from timed_calls import children_s

from datacollect.bistro.destination.opening import Opener, OpeningPool
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.destination_round import Destination
from datacollect.bistro.formats.custody.batches import FIRST, ROW, row_of, sign_batch
from datacollect.bistro.formats.custody.segments import (
    MOST_SEGMENT_BYTES,
    PIECE,
    batch_name,
    index_name,
    segment_name,
)
from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.checkpoints import log_key, witness_key
from datacollect.bistro.formats.log.entry import Commitment, header_bytes
from datacollect.bistro.formats.sealing.sealed import Inner, seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from datacollect.bistro.formats.event.event import Event

NAMES = ("b0", "b1", "b2", "b3")


def make_event(recipient: str) -> Event:
    """Return an event that admits everybody."""
    draft = {
        "name": "Speed",
        "opens": "2020-01-01T00:00:00+00:00",
        "deadline": "2020-04-15T00:00:00+00:00",
        "timezone": "UTC",
        "collect_until": "2020-04-30T00:00:00+00:00",
        "keep_until": "2020-05-30T00:00:00+00:00",
        "recipients": [recipient],
        "admission": "open",
        "quorum": 3,
        "services": [{"url": "https://s.example", "key": key_of("s").public}],
        "witnesses": [
            {
                "url": f"https://w{i}.example",
                "vkey": witness_key(f"w{i}", key_of(f"w{i}").public).text,
            }
            for i in range(4)
        ],
        "verdicts": {"log": log_key("dest.example/0123456789abcdef", key_of("dest").public).text},
        "bistros": [
            {
                "name": name,
                "url": f"https://{name}.example",
                "key": key_of(name).public,
                "fingerprint": "sha256:" + "ab" * 32,
            }
            for name in NAMES
        ],
    }
    return read_event(complete(draft, key_of("organiser").public, os.urandom, {}))


class Served:
    """Folder of a bistro, written as it would."""

    def __init__(self, event: Event, name: str, folder: Path) -> None:
        self._event, self._name, self._folder = event, name, folder
        for part in ("segments", "batches"):
            (folder / part).mkdir(parents=True)
        self._n_segments, self._data, self._pieces, self._rows = 0, BytesIO(), [], []

    def add(self, commitment: Commitment, data: bytes) -> None:
        """Take an upload."""
        if self._data.tell() + len(data) > MOST_SEGMENT_BYTES:
            self.close_segment()
        self._pieces.append((commitment.entry, 0, self._data.tell(), len(data)))
        self._data.write(data)
        digest = commitment.ciphertext_sha256
        row = row_of(commitment, len(data), digest, bytes(16), self._event.deadline_s)
        self._rows.append(row)

    def close_segment(self) -> None:
        """Write what is gathered."""
        (self._folder / segment_name(self._n_segments)).write_bytes(self._data.getvalue())
        index = np.array(self._pieces, PIECE).tobytes()
        (self._folder / index_name(self._n_segments)).write_bytes(index)
        self._n_segments, self._data, self._pieces = self._n_segments + 1, BytesIO(), []

    def close(self) -> None:
        """Write the last segment, and one batch of all."""
        self.close_segment()
        rows = np.array(self._rows, ROW)
        at_s = self._event.deadline_s
        batch = sign_batch(self._event, self._name, 0, FIRST, at_s, rows, key_of(self._name))
        (self._folder / batch_name(0)).write_bytes(batch.data)


def make(event: Event, folder: Path, n_uploads: int, n_bytes: int) -> None:
    """Seal files, and have bistros hold them."""
    served = [Served(event, name, folder / name) for name in NAMES]
    header = header_bytes({"event": event.id.hex(), "name": "return.pdf"})
    content = os.urandom(n_bytes)
    for number in range(n_uploads):
        out = BytesIO()
        own = number.to_bytes(8, "big") + content[8:]
        told = seal(BytesIO(own), out, Inner(header, os.urandom(32), None), event.recipients)
        salt = hashlib.sha256(number.to_bytes(8, "big")).digest()
        sealed = out.getvalue()
        commitment = Commitment(event.id, salt, len(sealed), told.sha256, told.content_p)
        served[number % len(served)].add(commitment, sealed)
    for each in served:
        each.close()


class Log:
    """Stands in for the log of verdicts: all that is said counts at once."""

    published_size = 0

    def record(self, entries: Sequence[bytes]) -> int | None:
        """Count entries."""
        self.published_size += len(entries)
        return self.published_size


class Times:
    """All entries stood in a log by the deadline, as it is known at once."""

    def __init__(self, event: Event) -> None:
        self._event = event
        self.are_settled = True

    def __call__(self, entries: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        return ((entry, self._event.deadline_s) for entry in entries)

    def may_settle(self, _: int) -> bool:
        return True

    settle = __call__


def collect(event: Event, identity: str, folder: Path, n_workers: int) -> dict[str, float]:
    """Let a destination do its rounds; return what that has cost."""

    def bring(wanted: Mapping[str, Sequence[str]]) -> None:
        for name, patterns in wanted.items():
            for pattern in patterns:
                for path in (folder / "served" / name).glob(pattern):
                    to = folder / "fetched" / name / path.relative_to(folder / "served" / name)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    if not to.exists():
                        to.hardlink_to(path)

    register = Register(str(folder / "register"), event)
    opener = Opener((identity,), None, folder / "fetched", folder / "files")
    began_s, used_s = time.perf_counter(), time.process_time()
    with OpeningPool(n_workers) as pool:
        destination = Destination(
            *(event, key_of("dest"), register, opener, Log(), bring),
            Times(event),
            lambda _: None,
            pool.open_all,
        )
        while destination.do_round(int(time.time())):
            pass
    took_s = time.perf_counter() - began_s
    own_s = time.process_time() - used_s
    collected = register.counts().collected
    register.close()
    kept_bytes = sum(path.stat().st_size for path in (folder / "register").iterdir())
    peak = max(resource.getrusage(who).ru_maxrss for who in (0, resource.RUSAGE_CHILDREN))
    return {
        "collected": collected,
        "per_s": round(collected / took_s, 1),
        "cpu_ms": round(1000 * (own_s + children_s()) / collected, 3),
        "of_these_by_the_register_ms": round(1000 * own_s / collected, 3),
        "register_bytes": round(kept_bytes / collected),
        "peak_mb": round(peak * 1024 / 1e6, 1),
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uploads", type=int, default=4000)
    parser.add_argument("--bytes", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    identity = pyrage.x25519.Identity.generate()
    event = make_event(str(identity.to_public()))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make(event, folder / "served", options.uploads, options.bytes)
        print(json.dumps(collect(event, str(identity), folder, options.workers)))


if __name__ == "__main__":
    main()
