"""Where bytes come from."""

from __future__ import annotations

import os

from datacollect.feeds.sender.source import read_blocks


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
