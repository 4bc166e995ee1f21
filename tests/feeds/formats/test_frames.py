"""Frames and lines: whatever comes in whichever parts."""

from __future__ import annotations

import random

import pytest

from datacollect.feeds.formats import frames
from datacollect.feeds.formats.frames import HEAD, FrameError, Frames, Lines, hello_of


def test_frames_come_alike_in_whichever_parts():
    sent = [
        frames.data_frame(7, 99, b"abc"),
        frames.missing_frame(8, 2, 6),
        frames.time_frame(5),
        frames.note_frame({"a": 1}),
        frames.end_frame(10, 30),
    ]
    whole = [(kind, n, stamp, bytes(b)) for kind, n, stamp, b in Frames(3).take(b"".join(sent))]
    assert [row[0] for row in whole] == [1, 2, 4, 5, 3]
    assert whole[0] == (frames.DATA, 7, 99, b"abc")
    rng = random.Random(3)
    for _ in range(50):
        reader, found, left = Frames(3), [], b"".join(sent)
        while left:
            n = rng.randrange(1, 40)
            found += [(k, n_, s, bytes(b)) for k, n_, s, b in reader.take(left[:n])]
            left = left[n:]
        assert found == whole


@pytest.mark.parametrize(
    "data",
    [
        HEAD.pack(9, 0, 0, 0),
        HEAD.pack(0, 0, 0, 0),
        HEAD.pack(frames.DATA, 0, 0, 4),
        HEAD.pack(frames.END, 0, 0, 1),
        HEAD.pack(frames.NOTE, 0, 0, 2**31),
        HEAD.pack(frames.DATA, 2**63, 0, 1) + b"x",
    ],
)
def test_malformed_frames_are_noticed_before_their_bytes_come(data):
    with pytest.raises(FrameError):
        list(Frames(3).take(data))


@pytest.mark.parametrize(
    "data", [b"[]\n", b"\xff\n", b"{\n", b"[" * 100_000 + b"\n", b"x" * 70_000]
)
def test_malformed_lines(data):
    with pytest.raises(FrameError):
        list(Lines().take(data))


def test_a_beginning_that_leaves_its_folder_is_none():
    line = frames.Hello("scan7", "s", "tcp", 1.0, 1, 0.1, "b", 1).line()
    assert hello_of(line).name == "scan7"
    for old, new in (
        (b"scan7", b"../x"),
        (b'"message_bytes":1', b'"message_bytes":0'),
        (b'"rate_bytes_per_s":1.0', b'"rate_bytes_per_s":0'),
        (b'"stream":"s"', b'"stream":"' + b"s" * 65 + b'"'),
        (b'"boot":"b"', b'"other":"b"'),
    ):
        assert old in line
        with pytest.raises(FrameError):
            hello_of(line.replace(old, new))
