"""A host short of something, or a mount that cannot: the right words, and each remedy works."""

import errno
import json
import os
import shlex
import stat
import subprocess
import sys

import pytest
from faults.laboratory import NO_TRACING, why_no_tracing

import datacollect as dc
from datacollect.errors import DatacollectError
from datacollect.files.durability import Promise
from datacollect.transfer.store.folder import opening

FILES = {"a/one": b"1" * 100, "b": b"2" * 70_000, "empty": b""}
MANY = {f"{i:03}": b"x" * i for i in range(100)}
UNPROMISED = (
    "note: {}: its file system does not promise that {} survive a loss of power: after one, start "
    "the same command with --verify"
)


@pytest.fixture
def into(tmp_path):
    return tmp_path / "into"


@pytest.fixture
def sync_fails(monkeypatch):
    """Return a function that has syncs of folders, or of files, fail."""

    def fail(number, *, of_folders=False, of_files=False):
        for name in ("fsync", "fdatasync"):
            real = getattr(os, name)

            def sync(fd, real=real):
                if of_folders if stat.S_ISDIR(os.fstat(fd).st_mode) else of_files:
                    raise OSError(number, os.strerror(number))
                real(fd)

            monkeypatch.setattr(os, name, sync)

    return fail


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_where_folders_are_not_synced_the_pull_goes_on_and_says_so_once(
    agents, collection_of, into, sync_fails, number
):
    sync_fails(number, of_folders=True)
    told = []
    assert dc.pull(collection_of(agents("S1", FILES)), into, tell=told.append).complete
    assert (into / "S1/b").read_bytes() == FILES["b"]
    assert told == [UNPROMISED.format(into, "names")]


def test_where_files_are_not_synced_either_the_note_says_that(
    agents, collection_of, into, sync_fails
):
    sync_fails(errno.EINVAL, of_folders=True, of_files=True)
    told = []
    assert dc.pull(collection_of(agents("S1", FILES)), into, tell=told.append).complete
    assert told == [UNPROMISED.format(into, "files and names")]


REMEDIES = {
    errno.EIO: "repair the disk",
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room, or have the quota raised",
    errno.ESTALE: "mount it again",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["of_folders", "of_files"])
@pytest.mark.parametrize("number", REMEDIES)
def test_a_disk_that_refuses_to_keep_anything_ends_the_pull(
    agents, collection_of, into, sync_fails, monkeypatch, number, kind
):
    """At the start, where it is tried out what the file system promises, and later on."""
    collection = collection_of(agents("S1", FILES))
    sound = Promise(of_files=True, of_names=True)
    for tried in (True, False):
        with monkeypatch.context() as patch:
            if not tried:
                patch.setattr(opening, "promise_of", lambda _: sound)
            sync_fails(number, **{kind: True})
            with pytest.raises(DatacollectError, match=os.strerror(number)) as caught:
                dc.pull(collection, into)
            assert caught.value.exit_code == 3
            assert REMEDIES[number] in str(caught.value)
        monkeypatch.undo()
    assert dc.pull(collection, into).complete


@pytest.fixture
def pull_beside(agents, collection_of, tmp_path):
    """Return a function that pulls in a process of its own, by a shell's words before it."""
    collection = collection_of(agents("S1", FILES | MANY))

    def run(before, **limits):
        file = tmp_path / "collection.toml"
        agent = " ".join(
            f"{key} = {json.dumps(v)}\n" for key, v in collection["agents"]["S1"].items()
        )
        told = "".join(f"{key} = {value}\n" for key, value in limits.items())
        file.write_text(
            f'format = "{collection["format"]}"\ndestination = "D"\nkey = "collector.key"\n'
            f"[agents.S1]\n{agent}[limits]\npatience_s = 20\ntimeout_s = 20\n{told}"
        )
        command = [sys.executable, "-m", "datacollect", "pull", str(file), "--into", "into"]
        done = subprocess.run(
            ["bash", "-c", f"{before} {shlex.join(command)}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stderr

    return run


@pytest.mark.slow
def test_of_descriptors_the_number_is_told_and_each_remedy_works(pull_beside, tmp_path):
    code, said = pull_beside("ulimit -Sn 14; exec")
    assert code == 3
    assert "Too many open files: this process may have 14;" in said
    assert "raise `ulimit -n`, or lower `limits.connections` in the collection file" in said
    code, said = pull_beside("ulimit -n 60; exec")
    assert code == 0, said
    assert (tmp_path / "into/S1/b").read_bytes() == FILES["b"]


@pytest.mark.slow
@pytest.mark.parametrize("limit_mib", [120, 220, 300])
def test_of_memory_it_is_told_how_much_there_is_and_no_package_is_missing(pull_beside, limit_mib):
    code, said = pull_beside(f"ulimit -v {limit_mib * 1024}; exec")
    assert code == 3
    assert said.count("\n") == 1
    assert "memory is short: this process has " in said
    assert f" of the {limit_mib * 1.048576:.4g} MB that it may" in said
    assert "raise `ulimit -v`" in said
    assert "install" not in said


@pytest.mark.slow
def test_each_remedy_for_memory_works(pull_beside, tmp_path):
    told = pull_beside("ulimit -v 500000; exec")
    assert told[0] == 3
    assert "16 connections" in told[1]
    assert "raise `ulimit -v`, or lower `limits.connections` in the collection file" in told[1]
    code, said = pull_beside("ulimit -v 500000; exec", connections=2)
    assert code == 0, said
    assert (tmp_path / "into/S1/b").read_bytes() == FILES["b"]
    code, said = pull_beside("ulimit -v 700000; exec")
    assert code == 0, said


@pytest.mark.slow
def test_a_mount_that_syncs_nothing_at_all_is_pulled_to(pull_beside, tmp_path):
    """SQLite's own syncs and syncfs, too: the calls themselves are refused."""
    if why_no_tracing() is not None:
        pytest.skip(NO_TRACING)
    calls = "fsync,fdatasync,syncfs"
    traced = f"exec strace -f -o trace -e trace={calls} -e inject={calls}:error=EINVAL"
    code, said = pull_beside(traced)
    assert code == 0, said
    assert said.count(UNPROMISED.format("into", "files and names")) == 1
    assert (tmp_path / "into/S1/099").read_bytes() == MANY["099"]
    traces = (tmp_path / "trace").read_text()
    assert all(f"{call}(" in traces for call in ("fsync", "syncfs"))
