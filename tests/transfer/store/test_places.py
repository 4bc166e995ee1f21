"""Links, mounts, files where folders are wanted: found before a byte moves, with a remedy."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from conftest import NO_NAMESPACES
from instances.inventories import as_nobody, closed
from instances.stores import UNIT, Held, fetch, get_ready, pull

from datacollect.transfer.protocol.source import Listed, Page
from datacollect.transfer.store.path_lookup import displaced_files
from datacollect.transfer.store.places import Places
from datacollect.transfer.store.state.snapshot import snapshot_of
from datacollect.transfer.store.store import Store


@pytest.fixture
def source():
    held = Held(top=10)
    held.write("a/b/c", b"x" * (UNIT + 1))
    return held


def unmoved(into, source, **options):
    """Pull what has nothing but trouble; return why."""
    pulled = pull(into, source, **options)
    assert not pulled.is_complete
    return pulled


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_source_whose_folder_is_none_is_named(tmp_path, source, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    into = tmp_path / "into"
    into.mkdir()
    if kind == "link":
        (into / "S").symlink_to(outside)
    else:
        (into / "S").write_text("mine")
    for overwrite in (False, True):
        pulled = unmoved(into, source, overwrite=overwrite)
        assert pulled.n_bytes == 0
        (why,) = set(pulled.missing.values())
        assert why == (
            f"S is a {kind} where the folder of this source belongs; links are not followed: "
            "move it away, or mount its target there"
        )
    assert not any(outside.iterdir())


def test_a_link_on_the_way_is_named(tmp_path, source):
    outside, into = tmp_path / "outside", tmp_path / "into"
    outside.mkdir()
    (into / "S").mkdir(parents=True)
    (into / "S/a").symlink_to(outside)
    pulled = unmoved(into, source)
    assert pulled.n_bytes == 10
    assert pulled.missing == {
        "a/b/c": "S/a is a link where a folder belongs; links are not followed: move it away, "
        "or start with --overwrite, which replaces it"
    }
    assert not any(outside.iterdir())
    assert pull(into, source, overwrite=True).is_complete
    assert not any(outside.iterdir())
    assert (into / "S/a/b/c").is_file()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_under_the_final_name_is_kept(tmp_path, source, kind):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    into = tmp_path / "into"
    (into / "S").mkdir(parents=True)
    if kind == "link":
        (into / "S/top").symlink_to(victim)
    else:
        os.mkfifo(into / "S/top")
    assert "S/top exists already and is" in unmoved(into, source).missing["top"]
    assert pull(into, source, overwrite=True).is_complete
    assert victim.read_text() == "mine"
    assert (into / "S/top").is_file()
    assert not (into / "S/top").is_symlink()


def test_both_a_file_and_a_folder_of_one_name_ends_well(tmp_path):
    """No source has both; one that says so gets one of them."""
    source = Held(a=10)
    source.write("a/b", b"x")
    assert pull(tmp_path, source).missing.keys() == {"a/b"}
    again = pull(tmp_path, source)
    assert again.missing.keys() == {"a/b"}
    assert again.n_bytes == 0


MOUNTED = """
import subprocess, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from instances.stores import Held, pull
from datacollect.transfer.protocol.source import ListedFolder

into = Path({into!r})
source = Held(top=10)
source.write("a/b/c", b"x" * 100_000)
def mount(path):
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *{how!r}, str(path)], check=True)
{body}
"""
TMPFS = ["-t", "tmpfs", "none"]


def in_namespace(tmp_path, body, how=TMPFS):
    """Run some code where file systems may be mounted."""
    paths = [str(Path(__file__).resolve().parents[2]), *sys.path]
    code = MOUNTED.format(paths=paths, into=str(tmp_path / "into"), how=how, body=body)
    unshare = ["unshare", "-Urm", sys.executable, "-c"]
    try:
        probe = subprocess.run(
            [*unshare, "import os; os.execvp('mount', ['mount', '-t', 'tmpfs', 'none', '/mnt'])"],
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip(NO_NAMESPACES)
    if probe.returncode:
        pytest.skip(NO_NAMESPACES)
    done = subprocess.run([*unshare, code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_source_whose_folder_is_a_file_system_is_staged_in_it(tmp_path, kind):
    (tmp_path / "elsewhere").mkdir()
    how = TMPFS if kind == "tmpfs" else ["--bind", str(tmp_path / "elsewhere")]
    in_namespace(
        tmp_path,
        """
mount(into / "S")
pulled = pull(into, source)
assert pulled.is_complete, pulled.missing
assert (into / "S/a/b/c").read_bytes() == b"x" * 100_000
assert not any((into / "S/.datacollect/incoming").iterdir())
assert pull(into, source).n_bytes == 0
""",
        how,
    )


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_file_system_within_is_named_before_a_byte_moves(tmp_path, kind):
    (tmp_path / "elsewhere").mkdir()
    how = TMPFS if kind == "tmpfs" else ["--bind", str(tmp_path / "elsewhere")]
    in_namespace(
        tmp_path,
        """
mount(into / "S/a/b")
pulled = pull(into, source)
assert pulled.missing == {
    "a/b/c": "S/a/b is a file system of its own, so no file can be renamed into it: "
    "unmount it, or mount it at S itself"
}, pulled.missing
assert pulled.n_bytes == 10
""",
        how,
    )


def test_a_state_in_another_file_system_is_no_trouble(tmp_path):
    in_namespace(
        tmp_path,
        """
mount(into / ".datacollect")
pulled = pull(into, source)
assert pulled.is_complete, pulled.missing
assert not any((into / "S/.datacollect/incoming").iterdir())
""",
    )


def test_a_read_only_file_system_is_named(tmp_path):
    in_namespace(
        tmp_path,
        """
mount(into / "S")
subprocess.run(["mount", "-o", "remount,bind,ro", str(into / "S")], check=True)
source.folders.append(ListedFolder("empty", 0o755, 0))
pulled = pull(into, source)
assert "Read-only file system" in pulled.missing["empty"], pulled.missing
assert "Read-only file system" in pulled.missing["top"], pulled.missing
subprocess.run(["mount", "-o", "remount,bind,rw", str(into / "S")], check=True)
assert pull(into, source).is_complete
""",
    )


def test_names_that_are_one_file_in_the_file_system_of_a_source_are_named(tmp_path):
    """Each source may have its own: what the state's file system does says nothing of it."""
    in_namespace(
        tmp_path,
        """
from datacollect.transfer.store import store
from datacollect.transfer.store.folder.paths import Folding
real = store.folding_of
def folding_of(fd):
    import os
    inside = os.readlink(f"/proc/self/fd/{fd}").startswith(str(into / "S"))
    return Folding(case=True) if inside else real(fd)
store.folding_of = folding_of
mount(into / "S")
source.write("TOP", b"other")
pulled = pull(into, source)
assert list(pulled.missing) == ["top"], pulled.missing
assert "treats it as 'TOP'" in pulled.missing["top"], pulled.missing
""",
    )


@pytest.mark.usefixtures("usual_umask")
def test_a_folder_that_may_not_be_written_is_named_before_a_byte_moves(tmp_path, source):
    into = tmp_path / "into"
    (into / "S/a").mkdir(parents=True)
    with closing(Store(into)) as store:
        store.state.begin_start(["S"])
        listing = store.listing("S")
        listing.take(source.page())
        listing.end()
        with closed(0o555, into / "S", into / "S/a"), as_nobody():
            store.prepare("S", UNIT, apart=False)
        remedy = "cannot be written: Permission denied; fix that, and start the same command again"
        whys = {entry.path: entry.why for entry in store.state.missing()}
        assert whys == {"top": f"S {remedy}", "a/b/c": f"S/a {remedy}"}
        store.know("S")
        assert store.needed("S") == []


@pytest.mark.usefixtures("usual_umask")
def test_what_may_not_be_looked_at_is_not_called_gone(tmp_path, source, monkeypatch):
    into = tmp_path / "into"
    pull(into, source)
    monkeypatch.chdir(into)
    with (
        closing(snapshot_of(into / ".datacollect/state.sqlite")) as state,
        closed(0, into / "S/a"),
        as_nobody(),
    ):
        (found,) = displaced_files(Path(), state)
    assert found.why == "S/a cannot be examined: Permission denied; fix that"


def test_of_a_folder_that_is_not_there_one_file_is_looked_at(tmp_path, monkeypatch):
    """Of three folders one is there: each of its files is looked at, and one of each other."""
    (tmp_path / "S" / "b").mkdir(parents=True)
    real, looked = Places.taken, []

    def taken(self, number, source, path, n_bytes):
        looked.append(path)
        return real(self, number, source, path, n_bytes)

    monkeypatch.setattr(Places, "taken", taken)
    paths = [f"{folder}/{i}" for folder in ("a", "a/x", "b", "c") for i in range(3)]
    with closing(Store(tmp_path)) as store:
        store.state.begin_start(["S"])
        listing = store.listing("S")
        listing.take(Page([Listed(path, 1, 0, 0) for path in sorted(paths)]))
        listing.end()
        assert store.prepare("S", UNIT, apart=False) == []
        store.know("S")
        assert len(store.needed("S")) == 1
    assert looked == ["a/0", "a/x/0", "b/0", "b/1", "b/2", "c/0"]


@pytest.mark.slow
def test_a_folder_that_is_mounted_twice_is_one(tmp_path):
    in_namespace(
        tmp_path,
        """
(into / "S").mkdir(parents=True)
other = Held("T")
other.write("a/b/c", b"y" * 100_000)
mount(into / "T")
pulled = pull(into, source, other)
assert pulled.missing.keys() == {"a/b/c"}, pulled.missing
assert pulled.missing["a/b/c"].startswith("T is the folder S here"), pulled.missing
assert (into / "S/a/b/c").read_bytes() == b"x" * 100_000
""",
        ["--bind", str(tmp_path / "into/S")],
    )


@pytest.mark.slow
def test_files_of_two_sources_at_one_place_are_not_both_there(tmp_path):
    """One of them was replaced, by the user's will, by one of its size and time."""
    in_namespace(
        tmp_path,
        """
from datacollect.transfer.store.status import status_of
(into / "S/a/b").mkdir(parents=True)
other = Held("T")
other.write("c", b"y" * 100_000)
other.write("d", b"z")
mount(into / "T")
assert pull(into, source, other).missing.keys() == {"c"}
assert pull(into, source, other, overwrite=True).is_complete
found = status_of(into)
assert not found.complete
(missing,) = found.missing
assert (missing.source, missing.path) == ("T", "c"), missing
assert missing.why.startswith("lies in the folder S/a/b, which is mounted twice"), missing
""",
        ["--bind", str(tmp_path / "into/S/a/b")],
    )


def test_what_only_looks_like_the_file_is_not_replaced(tmp_path):
    """Somebody else's file of the same size and time, made while the other came."""
    held = Held(a=100)
    store = Store(tmp_path)
    try:
        store.state.begin_start(["S"])
        get_ready(store, held)
        (tmp_path / "S").mkdir()
        (tmp_path / "S/a").write_bytes(b"m" * 100)
        os.utime(tmp_path / "S/a", ns=(0, held.files["a"][0].mtime_ns))
        fetch(store, held)
        assert not store.state.is_complete()
    finally:
        store.close()
    # Neither now nor at the next start.
    assert pull(tmp_path, held).missing.keys() == {"a"}
    assert (tmp_path / "S/a").read_bytes() == b"m" * 100
