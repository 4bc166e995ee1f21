"""A destination folder that is filled without any network: files are made of their names."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from blake3 import blake3

from datacollect.transfer.protocol.source import LeftOut, Listed, ListedFolder, Page
from datacollect.transfer.store.store import PieceKey, Store, StoreOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from datacollect.transfer.protocol.source import Segment

UNIT = 2**16
TIME_NS = 1_500_000_000 * 10**9 + 7


class Held:
    """A source that holds some files: what it lists, and the bytes of each."""

    def __init__(self, name: str = "S", **sizes: int) -> None:
        self.name = name
        self.files: dict[str, tuple[Listed, bytes]] = {}
        self.folders: list[ListedFolder] = []
        self.left_out: list[LeftOut] = []
        self.asked: list[Segment] = []
        for path, n_bytes in sizes.items():
            self.write(path, random.Random(path).randbytes(n_bytes))

    def write(self, path: str, data: bytes, **about: object) -> None:
        """Have a file, or another version of it."""
        version = 1 + (self.files[path][0].inode if path in self.files else 0)
        told = {"mtime_ns": TIME_NS + version, "inode": version, **about}
        self.files[path] = (Listed(path, len(data), **told), data)  # type: ignore[arg-type]

    def tell_besides(self, path: str, **about: object) -> None:
        """Tell something else of a file whose bytes stay as they are."""
        listed, data = self.files[path]
        self.files[path] = (listed._replace(**about), data)

    def page(self) -> Page:
        """Everything, sorted."""
        files = sorted((f for f, _ in self.files.values()), key=lambda f: f.path.encode())
        return Page(files, self.left_out, self.folders)

    def part(self, segment: Segment) -> bytes:
        """The bytes of a segment."""
        span, file = segment
        return self.files[file.path][1][span.offset_bytes :][: span.n_bytes]

    def digests(self, segments: Sequence[Segment]) -> list[bytes | None]:
        """What an agent tells that hashes without sending."""
        self.asked += segments
        return [blake3(self.part(segment)).digest() for segment in segments]


def get_ready(
    store: Store, source: Held, digests: Callable[..., list[bytes | None] | None] | None = None
) -> None:
    """List a source, compare what is there, and get ready for its pieces."""
    listing = store.listing(source.name)
    listing.take(source.page())
    listing.end()
    rows = store.prepare(source.name, UNIT, apart=False)
    if rows:
        store.compare(source.name, rows, digests or source.digests)
    assert store.why_no_room(source.name) is None
    store.know(source.name)


def fetch(store: Store, source: Held) -> int:
    """Have all come that is needed; return how many bytes."""
    n_bytes = 0
    while True:
        for _ in rounds(store):
            n_bytes += sum(put(store, source, piece) for piece in store.needed(source.name))
        store.settle_remaining()
        if not store.needed(source.name):
            break
    store.finish(source.name)
    return n_bytes


def rounds(store: Store) -> Iterator[None]:
    """Have what is put meanwhile recorded."""
    failures: list[Exception] = []
    store.start(lambda _, failure: failures.append(failure) if failure else None)
    try:
        yield
    finally:
        store.stop()
    if failures:
        raise failures[0]


def put(store: Store, source: Held, piece: int) -> int:
    """Have a piece come; return how many bytes."""
    key = PieceKey(source.name, piece)
    segments = store.segments(key)
    data = b"".join(source.part(segment) for segment in segments)
    spans = [segment.span for segment in segments]
    store.put(key, spans, memoryview(data), blake3(data).digest())
    return len(data)


def pull(into: Path, *sources: Held, verify: bool = False, **options: bool) -> Pulled:
    """Pull all of some sources, as a start does."""
    store = Store(into, StoreOptions(**options))
    try:
        store.state.begin_start([source.name for source in sources])
        n_lost = store.mend()
        if verify:
            store.verify()
        n_bytes = 0
        for source in sources:
            get_ready(store, source)
            n_bytes += fetch(store, source)
        store.clean()
        return Pulled(store, n_bytes, n_lost)
    finally:
        store.close()


class Pulled:
    """Result of a start."""

    def __init__(self, store: Store, n_bytes: int, n_lost: int) -> None:
        self.n_bytes, self.n_lost = n_bytes, n_lost
        self.is_complete = store.state.is_complete()
        self.missing = {entry.path: entry.why for entry in store.state.missing()}
