"""The disk, by the pull's own way of writing: pieces, synced and recorded, then named."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import ProblemError
from datacollect.files.documents import document_name
from datacollect.files.units import format_bytes
from datacollect.machine.parts import DISK, RECEIVES, Cost, Rate
from datacollect.measuring.hosts.new_memory import memory_held
from datacollect.measuring.hosts.processor_times import (
    TICK_S,
    ProcessorTimes,
    allowed_processors,
)
from datacollect.measuring.hosts.repeats import interval_of, per_gib

if TYPE_CHECKING:
    from os import PathLike

SOURCE = "S"
PIECE_BYTES = 2**24
LEAST_PIECES, MOST_PIECES = 4, 32
REPEATS = 3
# Two copies are there for a moment: one is removed while the next is written.
NEEDED_BYTES = 2 * MOST_PIECES * PIECE_BYTES
# A pull writes from several connections.
WRITERS = 4
FIO_BYTES = 2**28
FIO_PATIENCE_S = 60.0
MOUNTS = Path("/proc/self/mounts")
# File systems whose disk is another machine's.
NETWORKED = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "afs", "ceph", "glusterfs"),
        *("lustre", "beegfs", "gpfs", "ocfs2", "fuse.sshfs", "fuse.s3fs", "fuse.rclone"),
        *("fuse.glusterfs", "fuse.ceph", "fuse.gcsfuse", "davfs", "fuse.davfs2"),
    )
)


class Written(NamedTuple):
    """Bytes written in one go."""

    n_bytes: int
    took_s: float
    busy_s: float
    own_s: float


def require_disk(folder: str | PathLike[str], mounts: Path = MOUNTS) -> str:
    """Return the kind of a folder's file system, on which pulls could write.

    Raises
    ------
    ProblemError
        It is no folder, cannot be written, has no room, or lies on another machine's disk.
    """
    path, name = Path(folder), document_name(folder)
    if not path.is_dir():
        raise ProblemError(f"--disk {name}: no such folder; make it, or name another")
    kind = file_system_of(path, mounts)
    if kind in NETWORKED:
        raise ProblemError(
            f"--disk {name}: lies on another machine's disk ({kind}); name a folder on a disk "
            "of this machine"
        )
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ProblemError(
            f"--disk {name}: cannot be written: {error.strerror}; name another folder"
        ) from None
    free = shutil.disk_usage(path).free
    if free < NEEDED_BYTES:
        raise ProblemError(
            f"--disk {name}: must have {format_bytes(NEEDED_BYTES)} free, has "
            f"{format_bytes(free)}; make room, or name another folder"
        )
    return kind


def file_system_of(folder: Path, mounts: Path = MOUNTS) -> str:
    """Return the kind of file system that a folder lies on, as the system calls it."""
    try:
        rows = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return "unknown"
    real = Path(os.path.realpath(folder))
    found = [
        (len(point), i, kind)
        for i, (_, escaped, kind, *_) in enumerate(rows)
        if real.is_relative_to(point := _unescaped(escaped))
    ]
    return max(found, default=(0, 0, "unknown"))[2]


def _unescaped(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("unicode_escape")


def measure_disk(
    folder: str | PathLike[str],
    seconds: float,
    load: float,
    times: ProcessorTimes | None = None,
    *,
    holes_in: str | PathLike[str] | None = None,
) -> tuple[Cost, Rate]:
    """Return what writing costs of processors, and how fast it is.

    Each time it takes other memory, as a long pull does.

    Parameters
    ----------
    folder : path-like
        A folder is made in it, and removed.
    seconds : float
        For all of it; a slow disk takes longer.
    load : float
        What others keep busy, a part of all processors.
    times : ProcessorTimes, optional
    holes_in : path-like, optional
        A folder on a disk, where `folder` lies in memory.
    """
    kind, times = file_system_of(Path(folder)), times or ProcessorTimes()
    piece = memoryview(os.urandom(PIECE_BYTES))
    with memory_held(Path(holes_in or folder)) as hold:

        def written(n_pieces: int) -> Written:
            run = _written(Path(folder), n_pieces, piece, times)
            hold(n_pieces * PIECE_BYTES)
            return run

        begun_s = time.monotonic()
        written(LEAST_PIECES)
        fits = seconds / (REPEATS + 1) / (time.monotonic() - begun_s) * LEAST_PIECES
        n_pieces = min(max(int(fits), LEAST_PIECES), MOST_PIECES)
        runs = [written(n_pieces) for _ in range(REPEATS)]
    cost = Cost(
        DISK,
        RECEIVES,
        kind,
        *per_gib([run.busy_s / run.n_bytes for run in runs]),
        own_s_per_gib=per_gib([run.own_s / run.n_bytes for run in runs]).value,
        load=load,
    )
    return cost, Rate(DISK, *interval_of([run.n_bytes / run.took_s for run in runs]), load=load)


def _written(folder: Path, n_pieces: int, piece: memoryview, times: ProcessorTimes) -> Written:
    """Write a file of so many pieces as a pull does."""
    from blake3 import blake3

    from datacollect.transfer.protocol.source import Listed, Page
    from datacollect.transfer.store.store import PieceKey, Store

    n_bytes, digest = n_pieces * len(piece), blake3(piece).digest()
    with tempfile.TemporaryDirectory(prefix=".calibrate-", dir=folder) as into:
        store = Store(Path(into))
        try:
            store.state.begin_start([SOURCE])
            listing = store.listing(SOURCE)
            listing.take(Page([Listed("bytes", n_bytes, 1, 1)]))
            listing.end()
            store.prepare(SOURCE, len(piece), apart=False)
            store.know(SOURCE)
            failures: list[Exception] = []
            left: queue.SimpleQueue[int] = queue.SimpleQueue()
            for number in store.needed(SOURCE):
                left.put(number)

            def write() -> None:
                try:
                    while True:
                        key = PieceKey(SOURCE, left.get_nowait())
                        spans = [segment.span for segment in store.segments(key)]
                        store.put(key, spans, piece, digest)
                except queue.Empty:
                    return
                except Exception as error:  # noqa: BLE001 - the thread that waits raises it
                    failures.append(error)

            begun = time.monotonic(), sum(times.busy_s().values()), time.process_time()
            store.start(lambda _, __: None)
            writers = [
                threading.Thread(target=write)
                for _ in range(min(WRITERS, 2 * len(allowed_processors())))
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            store.stop()
            ended = time.monotonic(), sum(times.busy_s().values()), time.process_time()
            if failures:
                raise failures[0]
            store.look()
        finally:
            store.close()
    took_s, busy_s, own_s = (end - begin for begin, end in zip(begun, ended, strict=True))
    return Written(n_bytes, took_s, max(busy_s, TICK_S), own_s)


def fio_words(folder: str | PathLike[str]) -> str | None:
    """Return what fio says of the same disk, in words; None where there is no fio, or it fails."""
    fio = shutil.which("fio")
    if fio is None:
        return None
    with tempfile.TemporaryDirectory(prefix=".calibrate-", dir=folder) as into:
        command = [
            *(fio, "--name=write", f"--directory={into}", "--rw=write", "--bs=1M"),
            *(f"--size={FIO_BYTES}", "--end_fsync=1", "--output-format=json"),
        ]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=FIO_PATIENCE_S)
            rate = float(json.loads(done.stdout)["jobs"][0]["write"]["bw_bytes"])
        except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError):
            return None
    return f"{format_bytes(rate)}/s in blocks of 1 MiB, synced at the end"
