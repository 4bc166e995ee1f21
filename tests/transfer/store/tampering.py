"""Tampering with an unfinished folder, between two starts and during one.

A `Begun` is a folder in which a start was ended after some pieces; what `TAMPERINGS` do to one of
its files, a hand, another program or a copy of the folder may do.
"""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING

from instances.stores import UNIT, Held, get_ready, put, rounds

from datacollect.transfer.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INCOMING = ".datacollect/incoming"


def source(seed: int = 0) -> Held:
    """Small files that share pieces, large ones of several pieces, one with a hole."""
    made, held = random.Random(seed), Held()
    sizes = {
        "a/one": 100,
        "a/two": 5000,
        "b": 5 * UNIT + 7,
        "d": 3 * UNIT,
        "e/small": 70,
        "empty": 0,
    }
    for path, n_bytes in sizes.items():
        held.write(path, made.randbytes(n_bytes))
    holed = made.randbytes(UNIT) + bytes(4 * UNIT) + made.randbytes(UNIT + 50)
    held.write("c", holed, extents=((0, UNIT), (5 * UNIT, UNIT + 50)))
    return held


def begin(folder: Path, held: Held, n_pieces: int, *, is_killed: bool) -> None:
    """Have some pieces come and be recorded; the start ends in good order, or at once."""
    store = Store(folder)
    store.state.begin_start(["S"])
    get_ready(store, held)
    for _ in rounds(store):
        for piece in apart(store.needed("S"))[:n_pieces]:
            put(store, held, piece)
    if is_killed:
        # One more piece is written to, and nobody notes it.
        for piece in store.needed("S")[:1]:
            put(store, held, piece)
        abandon(store)
    else:
        store.close()


def apart(pieces: list[int]) -> list[int]:
    """Pieces in an order in which many files are begun and few are whole."""
    return sorted(pieces, key=lambda piece: piece * 5 % 13)


def abandon(store: Store) -> None:
    """Leave a store as a process does that is killed: nothing more is written."""
    store.state.close()
    for fd in store._opened:
        os.close(fd)


def unfinished(folder: Path) -> list[Path]:
    """The unfinished files in a folder, by number."""
    return sorted((folder / INCOMING).iterdir(), key=lambda path: int(path.name))


def is_right(folder: Path, held: Held) -> bool:
    """Whether all files lie in the folder with the bytes of their source."""
    return all((folder / "S" / path).read_bytes() == data for path, (_, data) in held.files.items())


def cut(path: Path, to_bytes: int) -> None:
    """Take away what lies behind."""
    os.truncate(path, to_bytes)


def overwrite(path: Path, offset: int, data: bytes) -> None:
    """Write into a file, as whoever has it open does."""
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, data, offset)
    os.close(fd)


def _size(path: Path) -> int:
    return path.stat().st_size


def _zero(path: Path) -> None:
    overwrite(path, _size(path) // 4, bytes(_size(path) // 2))


def _flip(path: Path) -> None:
    at = _size(path) // 3
    overwrite(path, at, bytes([path.read_bytes()[at] ^ 1]) if _size(path) else b"")


def _flip_unseen(path: Path) -> None:
    """As `_flip`, and with the time of the last change as before."""
    found = path.stat()
    _flip(path)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _remove(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    """Another file of the same size takes its name."""
    other = path.with_name("other")
    other.write_bytes(random.Random(path.name).randbytes(_size(path)))
    other.rename(path)


def _copy_over(path: Path) -> None:
    """As `cp other path`: cut to nothing, then written again, longer than before."""
    path.write_bytes(b"x" * (_size(path) + 9))


def _lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"tail" * 100_000)


def _link(path: Path) -> None:
    """A link to a file that must not be written to."""
    target = path.parent.parent / "target"
    target.write_bytes(b"mine")
    path.unlink()
    path.symlink_to(target)


def _folder(path: Path) -> None:
    path.unlink()
    (path / "inner").mkdir(parents=True)


def _swap(path: Path) -> None:
    """With the next, or the one before."""
    others = [each for each in sorted(path.parent.iterdir()) if each != path]
    if others:
        between = path.with_name("between")
        path.rename(between)
        others[0].rename(path)
        between.rename(others[0])


def _again(path: Path) -> None:
    """The same bytes under another inode: nothing is lost."""
    shutil.copy2(path, path.with_name("other"))
    path.with_name("other").rename(path)


TAMPERINGS: dict[str, Callable[[Path], None]] = {
    "cut to nothing": lambda path: cut(path, 0),
    "cut by half": lambda path: cut(path, _size(path) // 2),
    "cut by a byte": lambda path: cut(path, max(0, _size(path) - 1)),
    "zeroed": _zero,
    "one bit": _flip,
    "one bit, time as before": _flip_unseen,
    "removed": _remove,
    "replaced": _replace,
    "copied over": _copy_over,
    "longer": _lengthen,
    "a link": _link,
    "a folder": _folder,
    "swapped": _swap,
    "the same again": _again,
}
