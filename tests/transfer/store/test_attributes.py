"""Modes, times and folders are kept, so that they can be read, verified and pulled again."""

import os

import pytest
from instances.stores import TIME_NS, UNIT, Held, pull

from datacollect.transfer.protocol.source import ListedFolder
from datacollect.transfer.store.status import verify_of


@pytest.fixture
def source():
    """A read-only file in a read-only folder, a set-id program, a large file, an empty folder."""
    held = Held()
    held.write("ro/file", b"r" * 10, mode=0o444)
    held.write("program", b"p" * 10, mode=0o4755)
    held.write("large", b"l" * (2 * UNIT + 1), mode=0o640)
    held.write("empty", b"", mode=0o600)
    held.folders = [
        ListedFolder("ro", 0o555, TIME_NS + 100),
        ListedFolder("void", 0o2750, TIME_NS - 5 * 10**17),
        ListedFolder("void/inner", 0o700, None),
    ]
    return held


def modes(into, *paths):
    return [oct((into / "S" / path).stat().st_mode & 0o7777) for path in paths]


def test_modes_and_times_are_those_of_the_source(tmp_path, source):
    assert pull(tmp_path, source).is_complete
    assert modes(tmp_path, "ro/file", "program", "large", "empty") == [
        "0o644",
        "0o755",
        "0o640",
        "0o600",
    ]
    for path, (listed, _) in source.files.items():
        assert (tmp_path / "S" / path).stat().st_mtime_ns == listed.mtime_ns
    assert modes(tmp_path, "ro", "void", "void/inner") == ["0o755", "0o750", "0o700"]
    assert (tmp_path / "S/ro").stat().st_mtime_ns == TIME_NS + 100
    assert (tmp_path / "S/void").stat().st_mtime_ns == TIME_NS - 5 * 10**17


@pytest.mark.parametrize("umask", [0o077, 0o000, 0o022])
def test_another_umask_makes_no_difference(tmp_path, source, umask):
    before = os.umask(umask)
    try:
        assert pull(tmp_path, source).is_complete
        assert modes(tmp_path, "ro/file", "large", "ro") == ["0o644", "0o640", "0o755"]
        again = pull(tmp_path, source)
        assert again.is_complete
        assert again.n_bytes == again.n_lost == 0
        assert verify_of(tmp_path).is_sound
    finally:
        os.umask(before)


def test_without_modes_and_times_files_are_as_they_fall(tmp_path, source):
    before = os.umask(0o022)
    try:
        assert pull(tmp_path, source, modes=False, times=False).is_complete
    finally:
        os.umask(before)
    assert modes(tmp_path, "program", "large", "void") == ["0o644", "0o644", "0o755"]
    assert (tmp_path / "S/large").stat().st_mtime_ns > TIME_NS + 10**17
    assert pull(tmp_path, source, modes=False, times=False).n_bytes == 0


def test_a_mode_that_alone_changed_is_applied_without_fetching(tmp_path, source):
    pull(tmp_path, source)
    source.tell_besides("large", mode=0o604)
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == 0
    assert modes(tmp_path, "large") == ["0o604"]
    assert pull(tmp_path, source).n_lost == 0


def test_modes_that_an_older_agent_did_not_tell_come_later(tmp_path, source):
    source.tell_besides("large", mode=None)
    pull(tmp_path, source)
    source.tell_besides("large", mode=0o600)
    assert pull(tmp_path, source).n_bytes == 0
    assert modes(tmp_path, "large") == ["0o600"]


@pytest.mark.parametrize("mtime_ns", [-(2**40), -1, 2**63 - 1, 2**63, 2**70, -(2**70)])
def test_any_time_is_taken_as_far_as_the_file_system_takes_it(tmp_path, mtime_ns):
    source = Held()
    source.write("f", b"data", mtime_ns=mtime_ns)
    assert pull(tmp_path, source).is_complete
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == again.n_lost == 0
    source.write("f", b"more", mtime_ns=mtime_ns + 10**9)
    assert pull(tmp_path, source).n_bytes == 4


def test_a_folder_that_cannot_be_made_is_named(tmp_path, source):
    (tmp_path / "S").mkdir()
    (tmp_path / "S/void").write_text("mine")
    pulled = pull(tmp_path, source)
    assert not pulled.is_complete
    assert pulled.missing.keys() == {"void", "void/inner"}
    (tmp_path / "S/void").unlink()
    assert pull(tmp_path, source).is_complete
    assert (tmp_path / "S/void/inner").is_dir()


def test_what_a_file_system_does_not_keep_is_no_failure(tmp_path, source, monkeypatch):
    from datacollect.transfer.store import attributes

    def refused(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(attributes.os, "fchmod", refused)
    monkeypatch.setattr(attributes.os, "utime", refused)
    assert pull(tmp_path, source).is_complete
