"""Verification of finished files: read again, compared with what came."""

import os

import pytest
from instances.stores import UNIT, Held, pull

from datacollect.errors import ProblemError
from datacollect.transfer.store import verifying
from datacollect.transfer.store.status import verify_of


@pytest.fixture
def source():
    held = Held(small=100, other=100, large=3 * UNIT + 5, empty=0)
    held.write("sparse", b"\1" + bytes(10 * UNIT), extents=((0, 1),))
    return held


def rot(path, at=0):
    """Change a byte, as a disk does: without leaving a trace."""
    found = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def test_what_is_as_it_came_is_sound(tmp_path, source):
    pull(tmp_path, source)
    reports = []
    verified = verify_of(tmp_path, reports.append)
    assert verified.is_sound
    assert verified.n_files == 5
    assert verified.to_dict() == {
        "files": 5,
        "bytes": 13 * UNIT + 206,
        "altered": [],
        "gone": [],
        "unverifiable": [],
    }
    assert reports[-1] == (5, 13 * UNIT + 206, 5, 13 * UNIT + 206)
    assert not (tmp_path / ".datacollect/verified.jsonl").exists()


def test_a_byte_that_rots_is_found_and_named_and_mended(tmp_path, source):
    """Also in a hole; neighbours in the same piece stay."""
    pull(tmp_path, source)
    rot(tmp_path / "S/small", 50)
    rot(tmp_path / "S/sparse", 5 * UNIT)
    verified = verify_of(tmp_path)
    assert {each.path for each in verified.altered} == {"small", "sparse"}
    assert not verified.is_sound
    assert pull(tmp_path, source).n_bytes == 0
    mended = pull(tmp_path, source, verify=True)
    assert mended.is_complete
    assert mended.n_bytes == 101
    assert verify_of(tmp_path).is_sound


def test_what_is_gone_is_named(tmp_path, source):
    pull(tmp_path, source)
    (tmp_path / "S/large").unlink()
    verified = verify_of(tmp_path)
    assert [(each.source, each.path) for each in verified.gone] == [("S", "large")]
    assert verified.n_files == 4


def test_verifying_goes_on_where_it_ended(tmp_path, source, monkeypatch):
    pull(tmp_path, source)
    read = []
    is_as_recorded = verifying.is_as_recorded

    def interrupted(fd, n_bytes, hashes):
        read.append(n_bytes)
        if len(read) == 3:
            raise KeyboardInterrupt
        return is_as_recorded(fd, n_bytes, hashes)

    monkeypatch.setattr(verifying, "is_as_recorded", interrupted)
    with pytest.raises(KeyboardInterrupt):
        verify_of(tmp_path)
    notes = tmp_path / ".datacollect/verified.jsonl"
    assert len(notes.read_text().splitlines()) == 2
    with notes.open("a") as file:
        file.write('{"not": "ours"}\n[1, 2\n')
    assert verify_of(tmp_path).n_files == 5
    assert len(read) == 3 + 3
    assert not notes.exists()


def test_what_was_read_and_changed_since_is_read_again(tmp_path, source, monkeypatch):
    pull(tmp_path, source)
    monkeypatch.setattr(verifying._Notes, "remove", lambda _: None)
    assert verify_of(tmp_path).is_sound
    rot(tmp_path / "S/large")
    assert {each.path for each in verify_of(tmp_path).altered} == {"large"}


def test_notes_that_cannot_be_written_are_done_without(tmp_path, source):
    pull(tmp_path, source)
    (tmp_path / ".datacollect/verified.jsonl").mkdir()
    assert verify_of(tmp_path).is_sound


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path, source):
    pull(tmp_path / "into", source)
    outside = tmp_path / "outside"
    outside.write_bytes(source.files["small"][1])
    (tmp_path / "into/S/small").unlink()
    (tmp_path / "into/S/small").symlink_to(outside)
    assert {each.path for each in verify_of(tmp_path / "into").altered} == {"small"}


def test_where_nothing_was_pulled_nothing_is_verified(tmp_path):
    with pytest.raises(ProblemError, match="no pull has written"):
        verify_of(tmp_path)
