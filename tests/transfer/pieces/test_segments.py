"""Segments: what is closed never changes, and each step may be the last before a crash."""

import pytest

from datacollect.errors import StoreError
from datacollect.transfer.pieces.segments import SegmentFiles, segment_name


@pytest.fixture
def files(tmp_path):
    found = SegmentFiles(tmp_path / "open", tmp_path / "closed")
    yield found
    found.close()


def test_a_segment_moves_once_and_is_read_before_and_after(files, tmp_path):
    files.write(3, 0, b"abc")
    files.write(3, 3, b"defg")
    files.sync([3])
    assert files.read(3, 2, 3) == b"cde"
    files.close_segment(3, 5, {"segments/beside": b"index"})
    assert files.read(3, 2, 3) == b"cde"
    assert (tmp_path / "closed" / segment_name(3)).read_bytes() == b"abcde"
    assert (tmp_path / "closed" / "segments" / "beside").read_bytes() == b"index"
    assert not list((tmp_path / "open").iterdir())


def test_to_close_again_after_a_crash_changes_nothing(files, tmp_path):
    files.write(3, 0, b"abc")
    files.sync([3])
    files.close_segment(3, 3)
    files.close_segment(3, 3, {"segments/beside": b"x"})
    files.close_segment(3, 3, {"segments/beside": b"other"})
    assert (tmp_path / "closed" / "segments" / "beside").read_bytes() == b"x"


def test_less_than_was_written_is_an_error(files):
    files.write(0, 0, b"abc")
    with pytest.raises(StoreError, match="segment 0 has changed since it was written"):
        files.read(0, 1, 3)


def test_what_is_open_can_be_forgotten_and_what_is_closed_discarded(files, tmp_path):
    files.write(0, 0, b"abc")
    files.sync([0])
    files.close_segment(0, 3)
    files.write(1, 0, b"defg")
    files.forget_open()
    assert not list((tmp_path / "open").iterdir())
    assert files.discard(0) == 3
    assert files.discard(0) == 0
    with pytest.raises(StoreError):
        files.read(0, 0, 1)
