"""Memory that is held so that the next gets other pages, and given back at the end."""

from __future__ import annotations

import io
import os
from types import SimpleNamespace

from datacollect.measuring.hosts import new_memory
from datacollect.measuring.hosts.new_memory import memory_held

BLOCK = new_memory.BLOCK_BYTES


def use_file(monkeypatch, file):
    make = SimpleNamespace(TemporaryFile=lambda **_: file)
    monkeypatch.setattr(new_memory, "tempfile", make)


def test_holes_are_read_each_once(tmp_path, monkeypatch):
    """Two blocks and a half, then one more: no byte is read again."""
    read = []

    class Watched(io.FileIO):
        def readinto(self, block):
            read.append(super().readinto(block))
            return read[-1]

    use_file(monkeypatch, Watched(tmp_path / "holes", "w+"))
    with memory_held(tmp_path) as hold:
        hold(5 * BLOCK // 2)
        hold(BLOCK)
    assert read == [BLOCK, BLOCK, BLOCK // 2, 0, BLOCK, 0]


def test_nothing_is_left(tmp_path):
    with memory_held(tmp_path) as hold:
        hold(BLOCK)
    assert list(tmp_path.iterdir()) == []


def test_where_files_may_not_be_so_long_nothing_is_held(tmp_path, monkeypatch):
    class NoLonger(io.FileIO):
        def truncate(self, _):
            raise OSError(27, "File too large")

    use_file(monkeypatch, NoLonger(tmp_path / "holes", "w+"))
    with memory_held(tmp_path) as hold:
        hold(BLOCK)
    assert (tmp_path / "holes").stat().st_size == 0


def test_a_file_system_without_holes_has_its_room_again(tmp_path, monkeypatch):
    """It says that the file has blocks: then it is empty again, and nothing is read."""
    lengths, found_of = [], os.fstat

    def full(number):
        lengths.append(found_of(number).st_size)
        return SimpleNamespace(st_blocks=8)

    monkeypatch.setattr(new_memory, "os", SimpleNamespace(fstat=full, SEEK_END=os.SEEK_END))
    with memory_held(tmp_path) as hold:
        hold(4096)
        hold(4096)
    assert lengths == [4096, 4096]
