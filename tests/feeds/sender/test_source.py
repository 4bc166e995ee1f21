"""Where bytes come from."""

from __future__ import annotations

import os

import pytest

from datacollect.errors import ProblemError
from datacollect.feeds.sender.source import opened_source, read_blocks


def test_a_pipe_that_says_nothing_can_be_left():
    """Else an interruption would wait for the source."""
    out, into = os.pipe()
    try:
        blocks = read_blocks(out, 1e6, 0)
        assert next(blocks) == b""
        os.write(into, b"abc")
        assert next(blocks) == b"abc"
        os.close(into)
        assert [*blocks] == []
    finally:
        os.close(out)


def test_a_folder_is_no_source(tmp_path):
    with pytest.raises(ProblemError, match="is a folder, and a feed is one file"):
        opened_source(tmp_path)


def test_nobody_waits_for_who_writes_into_a_pipe(tmp_path):
    """It can be opened, and gives nothing, until somebody has written; then it ends with that."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    fd = opened_source(path)
    blocks = read_blocks(fd, 1e6, 0)
    assert next(blocks) == b""
    with path.open("wb") as writer:
        writer.write(b"some")
    assert [block for block in blocks if block] == [b"some"]
    os.close(fd)
