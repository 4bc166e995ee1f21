"""Time and memory of the audit of a whole event.

    python experiments/bistro_audit_speed.py [--uploads 1000000] [--bistros 20] [--dask]

Makes an event with one log, the batches of all bistros and a log of verdicts, in which a thousandth
of the uploads is missing, then audits it: in this process alone, by a process for each processor,
and with --dask on clusters of one and of two workers on this machine. Each audit is a process of
its own; memory is the largest that it, and that the largest of its workers, has had. Logs are read
from files, without a network: reading them is most of it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import datacollect as dc
from datacollect.bistro.auditor import audit_event as auditing
from datacollect.bistro.auditor.verdict_reading import Folder
from datacollect.bistro.formats.custody.batches import FIRST, MOST_ROWS, ROW, sign_batch
from datacollect.bistro.formats.custody.segments import batch_name
from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    log_key,
    sign_checkpoint,
    witness_key,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.notes import Note
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tiles import TILE_WIDTH, Edge, Tile, TileReader, bundle_of
from datacollect.bistro.formats.log.tree import inclusion_proof, leaf_hash
from datacollect.bistro.formats.receipt.receipt import amendments_data
from datacollect.net.http_asking import Answer
from datacollect.net.keys import PrivateKey

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event

RECIPIENTS = (
    "age1uq2m0r6zz2ghqcnqyeqafkvggmkvxprxrp0hj4n96zqhmuxlfcxqv5996p",
    "age1e3u85mtpdyuturdj9a85exxat0jevw85d8rmwsr5upg6dtenug3qy97g9l",
)
MISSING_OF = 1000
# Rows of a batch: a bistro closes one long before it is full.
ROWS_PER_BATCH = MOST_ROWS // 10


def key_of(who: str) -> PrivateKey:
    """Return a key that is nobody's."""
    return PrivateKey(hashlib.sha256(who.encode()).digest())


def make_event(folder: Path, n_bistros: int) -> Event:
    """Write an event's file that ended long ago."""
    draft = {
        "name": "Speed",
        "opens": "2020-01-01T00:00:00+00:00",
        "deadline": "2020-04-15T00:00:00+00:00",
        "timezone": "UTC",
        "collect_until": "2020-04-30T00:00:00+00:00",
        "keep_until": "2020-05-30T00:00:00+00:00",
        "recipients": list(RECIPIENTS),
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
                "name": f"b{i}",
                "url": f"https://b{i}.example",
                "key": key_of(f"b{i}").public,
                "fingerprint": "sha256:" + "ab" * 32,
            }
            for i in range(n_bistros)
        ],
    }
    data = complete(draft, key_of("organiser").public, os.urandom, {})
    (folder / "event.toml").write_bytes(data)
    return read_event(data)


class Writer:
    """Writes a log's files, as an auditor would fetch them."""

    def __init__(self, folder: Path, origin: str, signer: str) -> None:
        self._folder, self._origin, self._signer = folder, origin, signer
        self._edge, self._entries, self._tiles = Edge(), [], {}
        self._n_bundles = 0

    def append(self, entry: bytes) -> None:
        """Add an entry."""
        self._entries.append(entry)
        self._tiles.update(self._edge.append(leaf_hash(entry)))
        if len(self._entries) == TILE_WIDTH:
            self._write_bundle()

    def _write_bundle(self) -> None:
        if self._entries:
            tile = Tile(-1, self._n_bundles, len(self._entries))
            self._write(tile.path, bundle_of(self._entries))
            self._n_bundles += 1
            self._entries = []

    def _write(self, path: str, data: bytes) -> None:
        file = self._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def close(self, time_s: int) -> None:
        """Sign and write the head, and the proof of the first entry by it."""
        self._write_bundle()
        self._tiles.update(self._edge.partial_tiles())
        for tile, data in self._tiles.items():
            self._write(tile.path, data)
        checkpoint = Checkpoint(self._origin, self._edge.size, self._edge.root())
        note = sign_checkpoint(checkpoint, key_of(self._signer))
        lines = (cosign(note.text, time_s, f"w{i}", key_of(f"w{i}")) for i in range(4))
        signed = SignedCheckpoint(checkpoint, Note(note.text, (*note.signatures, *lines)))
        self._write("checkpoint", signed.note.data)
        node = TileReader(self._edge.size, self._tiles.__getitem__).node
        hashes = inclusion_proof(0, self._edge.size, node)
        self._write("proof", LogProof(0, tuple(hashes), signed).data)


def make(folder: Path, n_uploads: int, n_bistros: int) -> None:
    """Write all that an auditor is given."""
    event = make_event(folder, n_bistros)
    assert event.verdicts is not None
    log = Writer(folder / "log", event.services[0].log.name, "s")
    verdicts = Writer(folder / "verdicts", event.verdicts.name, "dest")
    numbers, previous = [0] * n_bistros, [FIRST] * n_bistros
    rows: list[list[tuple[Any, ...]]] = [[] for _ in range(n_bistros)]

    def close(i: int) -> None:
        name, table = event.bistros[i].name, np.array(rows[i], ROW)
        key = key_of(name)
        batch = sign_batch(event, name, numbers[i], previous[i], event.deadline_s, table, key)
        file = folder / "batches" / name / Path(batch_name(numbers[i])).name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(batch.data)
        numbers[i], previous[i], rows[i] = numbers[i] + 1, batch.digest, []

    for upload in range(n_uploads):
        digest = hashlib.sha256(upload.to_bytes(8, "big")).digest()
        commitment = Commitment(event.id, digest, 100_000, digest, digest)
        entry = commitment.entry
        log.append(entry)
        if upload % MISSING_OF:
            verdicts.append(Verdict(event.id, entry, COLLECTED).data)
            i = upload % n_bistros
            row = (entry, digest, digest, 100_000, digest, 100_000, digest, bytes(16), 0)
            rows[i].append(row)
            if len(rows[i]) == ROWS_PER_BATCH:
                close(i)
    for i in range(n_bistros):
        close(i)
    log.close(event.deadline_s)
    verdicts.close(event.collect_until_s)


class LogFiles(Folder):
    """Answers as the service, from files."""

    def __init__(self, folder: Path, event: bytes) -> None:
        super().__init__(folder)
        self._event = event

    def __enter__(self) -> LogFiles:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def get(self, path: str, most_bytes: int) -> Answer:
        """Return what a service answers; there are no amendments."""
        if path == "/amendments":
            return Answer(200, amendments_data(self._event, []))
        return super().get("/proof" if path.startswith("/proof/") else path, most_bytes)


def audit(folder: Path, workers: int | None, dask: str | None) -> None:
    """Audit, and print what it took."""
    event = read_event((folder / "event.toml").read_bytes())
    auditing.Asker = lambda *_: LogFiles(folder / "log", event.id)  # type: ignore[misc, assignment]
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    found = dc.audit_event(
        folder / "event.toml",
        batches=folder / "batches",
        verdicts=folder / "verdicts",
        workers=workers,
        dask=dask,
    )
    assert found.custody is not None
    assert not found.evidence
    counts = found.custody.counts
    assert counts["collected"] + counts["missing"] == counts["in_time"]
    print(
        json.dumps(
            {
                "seconds": round(time.monotonic() - began_s, 1),
                "cpu_s": round(time.process_time() - began_cpu_s, 1),
                "workers_cpu_s": round(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]), 1),
                "most_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
                "workers_most_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000,
                **counts,
            }
        )
    )


def start(folder: Path, *options: str) -> None:
    """Audit in a process of its own."""
    command = [sys.executable, __file__, "--audit", str(folder), *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(" ".join(options) or "by default", done.stdout.strip(), flush=True)


def main() -> None:
    """Make the event, then audit it in all ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uploads", type=int, default=1_000_000)
    parser.add_argument("--bistros", type=int, default=20)
    parser.add_argument("--dask", nargs="?", const="")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--audit", type=Path)
    arguments = parser.parse_args()
    if arguments.audit:
        audit(arguments.audit, arguments.workers, arguments.dask)
        return
    with tempfile.TemporaryDirectory(prefix="audit-speed-") as name:
        folder = Path(name)
        make(folder, arguments.uploads, arguments.bistros)
        start(folder, "--workers", "0")
        start(folder)
        if arguments.dask is not None:
            from distributed import LocalCluster

            for n_workers in (1, 2):
                with LocalCluster(
                    n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
                ) as cluster:
                    start(folder, "--dask", cluster.scheduler_address)


if __name__ == "__main__":
    main()
