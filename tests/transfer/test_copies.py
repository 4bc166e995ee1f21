"""Pulls that are killed, and copies of their folders that were made while they ran, go on.

No byte is wrong, and nothing is fetched again of which the copy holds the right bytes with a
record of them: that is counted here from the bytes themselves.
"""

import json
import os
import random
import shutil
import subprocess
import time
from contextlib import closing, suppress

import apsw
import pytest
from instances.how_many import many
from instances.loopback import FORK, Loopback, some_files

import datacollect as dc
from datacollect.transfer.store.incoming.rereading import Rereading

COPIES = {
    "cp": ["cp", "-r"],
    "cp -a": ["cp", "-a"],
    "tar": ["sh", "-c", 'tar -C "$0" -cf - . | (mkdir "$1" && tar -C "$1" -xf -)'],
    "rsync": ["rsync", "-a"],
}


PIECE_BYTES = 2**16
# Of 2 MB some have come by the end, however late the first ones are.
A_PART = {"time_s": 6.0, "rate": 2e5}


def there_bytes(folder, files):
    """What a folder holds and knows to hold, of what the sources have."""
    total = 0
    for source, each in files.items():
        for path, data in each.items():
            placed = folder / source / path
            total += len(data) if placed.is_file() and placed.read_bytes() == data else 0
    dump = folder.with_name("dumped")
    shutil.copytree(folder / ".datacollect", dump)
    rows = []
    # A copy may be older than the tables, or have the file of one instant and the log of another.
    with (
        suppress(apsw.SQLError, apsw.CorruptError),
        closing(apsw.Connection(str(dump / "state.sqlite"))) as db,
    ):
        rows = db.execute(
            "SELECT name, path, file, hashes.offset, hashes.bytes FROM hashes JOIN files ON "
            "files.id = file JOIN sources ON sources.id = files.source WHERE state = 0"
        ).fetchall()
    for source, path, number, offset, n_bytes in rows:
        unfinished = dump / "incoming" / str(number)
        if unfinished.is_file() and not (folder / source / path).exists():
            part = unfinished.read_bytes()[offset : offset + n_bytes]
            total += n_bytes if part == files[source][path][offset : offset + n_bytes] else 0
    shutil.rmtree(dump)
    return total


def is_of_one_instant(folder):
    """Whether the state of a folder is sound, as SQLite itself judges a copy of it."""
    dump = folder.with_name("judged")
    shutil.copytree(folder / ".datacollect", dump)
    try:
        with closing(apsw.Connection(str(dump / "state.sqlite"))) as db:
            return db.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
    except apsw.CorruptError:
        return False
    finally:
        shutil.rmtree(dump)


def pull_elsewhere(collection, into, told):
    try:
        answer = dc.pull(collection, into)
    except dc.ProblemError as error:  # of two instants: as the message says
        if "move state.sqlite and its neighbours" not in str(error):
            raise
        for path in (into / ".datacollect").glob("state.sqlite*"):
            path.unlink()
        answer = dc.pull(collection, into)
    n_bytes = sum(use.n_bytes for use in answer.routes)
    told.write_text(json.dumps([answer.complete, n_bytes, answer.refetched_bytes]))


def pulled(world, into, told):
    """Pull into a folder, in a process of its own; return what it says."""
    child = FORK.Process(target=pull_elsewhere, args=(world.collection, into, told))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return json.loads(told.read_text())


def copied_and_killed(tmp_path, seed, how):
    chance = random.Random(f"{how} {seed}")
    files = {"S1": some_files(2 * seed, 3_000_000), "S2": some_files(2 * seed + 1, 3_000_000)}
    total = sum(len(data) for each in files.values() for data in each.values())
    world = Loopback(tmp_path, files, connections=4, piece_bytes=PIECE_BYTES)
    try:
        world.start("C")
        time.sleep(chance.uniform(0.05, 0.6))
        copy = tmp_path / "copy"
        done = subprocess.run(
            [*COPIES[how], f"{world.into}{'/' if how == 'rsync' else ''}", copy],
            check=False,
            capture_output=True,
            timeout=60,
        )
        world.kill("C")
        world.judge(is_over=False)
        for folder in (copy, world.into):
            if not (folder / ".datacollect/state.sqlite").exists():
                continue  # the copy was made before anything was there, or failed
            there = there_bytes(folder, files)
            is_torn = not is_of_one_instant(folder)
            complete, n_bytes, _ = pulled(world, folder, tmp_path / "told")
            assert complete, (how, seed, done.stderr)
            # Where the state is lost, so is what it knew of unfinished files.
            assert is_torn or n_bytes <= total - there, (how, seed, folder.name)
            world.into = folder
            world.judge(is_over=True)
    finally:
        world.kill_all()


@pytest.mark.slow
def test_of_a_file_that_is_adopted_nothing_unfinished_is_left(tmp_path):
    """A copy may have a file twice: as it came, and under its name."""
    files = {"S1": {"large": random.Random(1).randbytes(2_000_000)}}
    world = Loopback(tmp_path, files, connections=4, piece_bytes=PIECE_BYTES, **A_PART)
    try:
        pulled(world, world.into, tmp_path / "told")
        assert len(list((world.into / ".datacollect/incoming").iterdir())) == 1
        (world.into / "S1").mkdir(exist_ok=True)
        (world.into / "S1/large").write_bytes(files["S1"]["large"])
        complete, n_bytes, _ = pulled(world, world.into, tmp_path / "told")
        assert complete
        assert n_bytes == 0
        world.judge(is_over=True)
    finally:
        world.kill_all()


@pytest.mark.slow
def test_what_is_found_lost_after_a_round_is_fetched_in_the_same_start(tmp_path, monkeypatch):
    """What had come is cut off; before that is read, all that was missing has come."""
    files = {"S1": {"large": random.Random(1).randbytes(2_000_000)}}
    world = Loopback(tmp_path, files, connections=4, piece_bytes=PIECE_BYTES, **A_PART)
    try:
        pulled(world, world.into, tmp_path / "told")
        (unfinished,) = (world.into / ".datacollect/incoming").iterdir()
        whole, before = files["S1"]["large"], unfinished.read_bytes()
        os.truncate(unfinished, 100_000)
        there, read = there_bytes(world.into, files), Rereading._read

        def has_come():
            """Whether all pieces are there, or were before."""
            now, n = unfinished.read_bytes(), PIECE_BYTES
            pieces = [slice(at, at + n) for at in range(0, len(whole), n)]
            return all(whole[one] in (now[one], before[one]) for one in pieces)

        def late(rereading, job):
            until_s = time.monotonic() + 60
            while not has_come() and time.monotonic() < until_s:
                time.sleep(0.05)
            read(rereading, job)

        monkeypatch.setattr(Rereading, "_read", late)
        world.collection["limits"] = {"piece_bytes": PIECE_BYTES}
        complete, n_bytes, refetched_bytes = pulled(world, world.into, tmp_path / "told")
        assert complete
        assert n_bytes == 2_000_000 - there
        assert refetched_bytes > 0
        world.judge(is_over=True)
    finally:
        world.kill_all()


@pytest.mark.slow
@pytest.mark.parametrize("how", COPIES)
def test_copies_at_random_instants_go_on(tmp_path, how):
    if shutil.which(COPIES[how][0]) is None:
        pytest.skip(f"{COPIES[how][0]} is not installed")
    for seed in range(many(25)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        copied_and_killed(folder, seed, how)
        shutil.rmtree(folder)
