"""Bytes that flip in a state: it is damaged, and says so, or the pull ends well all the same."""

import random
import shutil

import apsw
import pytest
from blake3 import blake3
from instances.stores import Held, get_ready, pull

from datacollect.errors import ProblemError
from datacollect.transfer.store.state.recording import PieceKey
from datacollect.transfer.store.status import status_of
from datacollect.transfer.store.store import Store

REMEDY = "move state.sqlite and its neighbours state.sqlite-* away, and nothing else"


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with files that are done, others of which a part has come, and their source."""
    into = tmp_path_factory.mktemp("begun") / "into"
    source = Held(**{f"f{i}": i * 7919 % 200_000 for i in range(12)})
    hole = b"x" * 1000 + bytes(10**6) + b"y" * 1000
    source.write("d/e", hole, extents=((0, 1000), (1_001_000, 1000)))
    pull(into, source)
    for i in range(5):
        source.write(f"g{i}", random.Random(i).randbytes(100_000))
    store = Store(into)
    store.state.begin_start(["S"])
    get_ready(store, source)
    for piece in store.needed("S")[:4]:
        segments = store.segments(PieceKey("S", piece))
        data = b"".join(map(source.part, segments))
        spans = [segment.span for segment in segments]
        store.put(PieceKey("S", piece), spans, memoryview(data), blake3(data).digest())
    store.start(lambda *_: None)
    store.stop()
    store.close()
    # All of it in one file, where a byte that flips is not behind a log's checksum.
    db = apsw.Connection(str(into / ".datacollect/state.sqlite"))
    db.execute("PRAGMA journal_mode=DELETE").fetchall()
    db.close()
    return into, source


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_bytes_that_flip_are_damage_or_nothing(begun, tmp_path, first):
    whole, source = begun
    path = tmp_path / "into/.datacollect/state.sqlite"
    for seed in range(first, first + 4):
        rng = random.Random(seed)
        shutil.rmtree(tmp_path / "into", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "into")
        data = bytearray(path.read_bytes())
        for _ in range(rng.choice([1, 2, 5, 30])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            status_of(tmp_path / "into")
        except ProblemError as error:
            assert REMEDY in str(error)  # noqa: PT017 - not each seed is damage
        try:
            done = pull(tmp_path / "into", source)
        except ProblemError as error:
            assert REMEDY in str(error)  # noqa: PT017 - not each seed is damage
            for file in path.parent.glob("state.sqlite*"):
                file.unlink()
            done = pull(tmp_path / "into", source)
        assert done.is_complete
        for name, (_, held) in source.files.items():
            assert (tmp_path / "into/S" / name).read_bytes() == held, (seed, name)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE files SET path = CAST(x'61ff' AS TEXT) WHERE path = 'f1'", "not UTF-8"),
        ("UPDATE pieces SET piece = -5 WHERE piece = 1", "do not cover the files"),
        ("UPDATE pieces SET bytes = bytes + 1 WHERE piece = 1", "do not cover the files"),
        ("UPDATE files SET extents = '[' WHERE extents IS NOT NULL", "malformed value"),
        ("ALTER TABLE files RENAME COLUMN inode TO inodf", "no such column: inode"),
    ],
)
def test_values_that_cannot_be_are_damage(begun, tmp_path, change, why):
    whole, source = begun
    shutil.copytree(whole, tmp_path / "into")
    db = apsw.Connection(str(tmp_path / "into/.datacollect/state.sqlite"))
    db.execute(change)
    db.close()
    with pytest.raises(ProblemError, match=why) as caught:
        pull(tmp_path / "into", source)
    assert REMEDY in str(caught.value)
