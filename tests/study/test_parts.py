"""Append-only parts: torn at the end, damaged within, several writers, a full disk."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from datacollect.errors import NotWrittenError
from datacollect.study import parts
from datacollect.study.parts import Record, append, part_file, read_line, records_of, remove

ONE, TWO, THREE = (Record("row", f'{{"n": {n}, "text": "Zürich"}}') for n in (1, 2, 3))


@pytest.fixture
def part(tmp_path):
    return tmp_path / "a.rows"


def read(file):
    return [record for _, record in records_of(file)]


def test_records_come_back_each_at_its_place(part):
    append(part, [ONE, TWO])
    append(part, [THREE])
    found = list(records_of(part))
    assert [record for _, record in found] == [ONE, TWO, THREE]
    assert [line.number for line, _ in found] == [1, 2, 3]
    assert [read_line(part, line) for line, _ in found] == [ONE, TWO, THREE]


def test_whatever_is_cut_off_the_records_before_it_are_read(part):
    """As a kill leaves it: every length that the file ever had."""
    append(part, [ONE, TWO])
    data = part.read_bytes()
    first = data.index(b"\n") + 1
    for n_bytes in range(len(data)):
        part.write_bytes(data[:n_bytes])
        assert read(part) == ([ONE] if n_bytes >= first else [])


def test_every_damaged_bit_is_found(part):
    append(part, [ONE, TWO, THREE])
    data = part.read_bytes()
    begin = data.index(b"\n") + 1
    for at in range(begin, data.index(b"\n", begin)):
        part.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        found = read(part)
        # Where the bit makes a line break, two lines are damaged instead of one.
        assert (found[0], found[-1]) == (ONE, THREE)
        assert set(found[1:-1]) == {None}


def test_what_follows_a_torn_line_is_kept(part):
    """A process that was forked goes on in the part of one that was killed."""
    append(part, [ONE])
    part.write_bytes(part.read_bytes() + b"0123")
    append(part, [TWO])
    assert read(part) == [ONE, None, TWO]


def test_a_full_disk_leaves_what_was_there(part, monkeypatch):
    append(part, [ONE])
    before, write = part.read_bytes(), os.write

    def half(number, data):
        if len(data) < 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(number, bytes(data[: len(data) // 2]))

    with monkeypatch.context() as disk:
        disk.setattr(parts.os, "write", half)
        with pytest.raises(NotWrittenError, match=r"No space left on device; what was kept") as e:
            append(part, [TWO])
    assert e.value.exit_code == 3
    assert part.read_bytes() == before
    append(part, [TWO])
    assert read(part) == [ONE, TWO]


def test_several_writers_of_one_part_lose_nothing(part):
    """Threads of a Dask worker share one; each line is whole."""
    wanted = [Record("row", str(n) * 200) for n in range(40)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda record: append(part, [record]), wanted))
    assert sorted(read(part), key=str) == sorted(wanted, key=str)


def test_a_part_that_has_grown_since_it_was_folded_stays(part):
    append(part, [ONE])
    n_bytes = part.stat().st_size
    append(part, [TWO])
    remove(part, n_bytes)
    assert read(part) == [ONE, TWO]
    remove(part, part.stat().st_size)
    assert not part.exists()
    remove(part, 0)  # as another start has done already
    assert read(part) == []


def test_who_waits_for_a_part_that_goes_away_begins_another(part, monkeypatch):
    """It was opened, and is folded and removed before it is held."""
    append(part, [ONE])
    flock = parts.fcntl.flock

    def late(number, how):
        monkeypatch.setattr(parts.fcntl, "flock", flock)
        part.unlink()
        flock(number, how)

    monkeypatch.setattr(parts.fcntl, "flock", late)
    append(part, [TWO])
    assert read(part) == [TWO]


def test_each_process_has_parts_of_its_own(tmp_path, monkeypatch):
    own = part_file(tmp_path, "rows")
    assert own == part_file(tmp_path, "rows")
    assert own.with_suffix(".documents") == part_file(tmp_path, "documents")
    monkeypatch.setattr(parts.os, "getpid", lambda: -1)
    assert part_file(tmp_path, "rows") != own
