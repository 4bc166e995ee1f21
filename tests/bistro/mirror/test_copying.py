"""A copy of a log: it grows by what is proved, names what cannot be, and never goes backwards."""

from __future__ import annotations

import errno
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from instances.custody import custody_event, service_log, verdict_log

from datacollect.bistro.auditor.verdict_reading import Folder
from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict
from datacollect.bistro.formats.log.sizes import STRETCH, read_sizes, sizes_data, sizes_path
from datacollect.bistro.formats.log.tree import leaf_hash
from datacollect.bistro.log_service import log_copy, tile_files
from datacollect.bistro.log_service.log_copy import LogCopy
from datacollect.bistro.mirror import copying
from datacollect.bistro.mirror.copying import ForkError, LogCopying
from datacollect.errors import DatacollectError, ProblemError, StoreError, TransferError
from datacollect.net.http_asking import Answer

EVENT = custody_event()
LOG = EVENT.services[0].log


def leaf(i: int, salt: str = "") -> bytes:
    """Return an entry: most of 32 bytes, some of 64, some longer; a log may hold any."""
    digest = sha256(f"{salt}{i}".encode()).digest()
    return digest * (5 if i % 50 == 49 else 2 if i % 3 == 1 else 1)


def entries(n: int, since: int = 10**9) -> list[bytes]:
    """Return the first entries of a log; from `since` on they are those of another one."""
    return [leaf(i, "other " if i >= since else "") for i in range(n)]


def log_of(sizes, since: int = 10**9, n_witnesses: int = 4):
    """Return a log with checkpoints of these sizes, each a second after the one before."""
    heads = [(size, 1000 + i) for i, size in enumerate(sizes)]
    return service_log(EVENT, 0, entries(sizes[-1], since), heads, n_witnesses=n_witnesses)


def copy_in(folder) -> LogCopy:
    return LogCopy(folder, LOG, EVENT)


def taken(copy, asker, **how) -> str:
    """Take what a source has; return what is the matter with it."""
    try:
        LogCopying(copy, EVENT, **how).take(asker)
    except DatacollectError as error:
        return str(error)
    return ""


def require_is(copy, log) -> None:
    """The copy is a log as it is served, by its own files alone."""
    size = log.heads[-1].checkpoint.size
    held = copy_in(copy.folder)
    assert (held.size, [*held.leaves()]) == (size, log.entries[:size])
    assert [*held.sizes()] == log.sizes()
    for each in log.sizes():
        assert held.checkpoint(each).note.data == log.checkpoint(each)
    files = Folder(copy.folder)
    for tile in copying.tiles_of(size):
        assert files.get(f"/{tile.path}", 10**6).body == log.get(f"/{tile.path}").body


class Changed:
    """Answers as a log does, but for what a function changes."""

    def __init__(self, log, change) -> None:
        self._log, self._change = log, change
        self.paths: list[str] = []

    def get(self, path: str, most_bytes: int = 0) -> Answer:
        self.paths.append(path)
        answer = self._change(path)
        return self._log.get(path) if answer is None else answer


def test_copy_has_entries_tiles_and_checkpoints_of_all_sizes(tmp_path):
    copy = copy_in(tmp_path)
    for sizes in ([0], [0, 3], [0, 3, 255, 256, 257], [0, 3, 255, 256, 257, 700, 701]):
        log = log_of(sizes)
        assert taken(copy, log) == ""
        require_is(copy, log)
    # What is there is not fetched again.
    asker = Changed(log, lambda _: None)
    assert taken(copy, asker) == ""
    assert not [path for path in asker.paths if path.startswith("/tile")]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.integers(0, 800), min_size=1), st.data())
def test_copy_is_the_log_however_it_came(tmp_path_factory, sizes, data):
    copy, all_sizes = copy_in(tmp_path_factory.mktemp("copy")), sorted(sizes)
    stops = data.draw(st.sets(st.sampled_from(all_sizes))) | {all_sizes[-1]}
    for stop in sorted(stops):
        assert taken(copy, log_of([size for size in all_sizes if size <= stop])) == ""
        if data.draw(st.booleans()):
            copy = copy_in(copy.folder)
    require_is(copy, log_of(all_sizes))


def test_service_of_an_earlier_version_lists_no_sizes(tmp_path):
    log = log_of([3, 300])
    asker = Changed(log, lambda path: Answer(404, b"") if path.startswith("/sizes") else None)
    assert taken(copy_in(tmp_path), asker) == ""
    assert [*copy_in(tmp_path).sizes()] == [300]


def test_cosignatures_that_come_later_are_kept(tmp_path):
    copy = copy_in(tmp_path)
    assert taken(copy, log_of([5], n_witnesses=3)) == ""
    assert taken(copy, log_of([5])) == ""
    require_is(copy, log_of([5]))
    # And none is lost again.
    assert taken(copy, log_of([5], n_witnesses=3)) == ""
    require_is(copy, log_of([5]))


def test_shorter_log_is_named_and_takes_nothing_away(tmp_path):
    copy = copy_in(tmp_path)
    taken(copy, log_of([3, 300]))
    assert "shows 3 entries, but has published 300" in taken(copy, log_of([3]))
    empty = Changed(log_of([3]), lambda path: Answer(404, b"") if path == "/checkpoint" else None)
    assert "shows no checkpoint, but has published 300" in taken(copy, empty)
    # Another mirror may be behind.
    assert taken(copy, log_of([3]), is_mirror=True) == ""
    assert taken(copy, empty, is_mirror=True) == ""
    require_is(copy, log_of([3, 300]))


FORKS = {
    "shorter": ([3, 300], [3, 200], 150),
    "as long": ([3, 300], [3, 300], 299),
    "longer": ([3, 300], [3, 600], 10),
    "longer, apart in the last bundle": ([3, 300], [3, 301], 299),
    "a checkpoint between": ([3], [3, 100, 300], 10**9),
}


@pytest.mark.parametrize("name", FORKS)
def test_fork_is_kept_as_evidence_and_names_who_has_signed_both(tmp_path, name):
    before, after, since = FORKS[name]
    copy = copy_in(tmp_path)
    assert taken(copy, log_of(before)) == ""
    other = log_of(after, since)
    if name == "a checkpoint between":
        other.heads[1] = log_of([3, 100], 50).heads[1]
    with pytest.raises(ForkError, match="has signed two logs that differ within"):
        LogCopying(copy, EVENT).take(other)
    held = log_of(after if since == 10**9 else before)
    assert [*copy_in(tmp_path).leaves()] == held.entries
    for kept in (copy, copy_in(tmp_path)):
        assert [line.partition(": ")[0] for line in kept.forks()] == [
            LOG.name,
            *(f"w{i}.example" for i in range(4)),
        ]
    # The same again is one piece of evidence; the log itself is gone on with.
    assert "two logs" in taken(copy, other) or name == "a checkpoint between"
    assert len(copy.forks()) == 5
    assert taken(copy, log_of([3, 700])) == ""
    assert copy_in(tmp_path).size == 700


def test_log_that_forks_is_read_whole_once_for_each_checkpoint(tmp_path):
    copy = copy_in(tmp_path)
    taken(copy, log_of([300]))
    asker, one = Changed(log_of([600], 10), lambda _: None), LogCopying(copy, EVENT)
    for _ in range(3):
        with pytest.raises(ForkError):
            one.take(asker)
    assert asker.paths.count("/tile/entries/000") == 1


def answering(path: str, body: bytes, status: int = 200):
    return lambda asked: Answer(status, body) if asked == path else None


HOSTILE = {
    "of another log": (
        answering("/checkpoint", service_log(EVENT, 1, entries(5), [(5, 1)]).head()),
        "not signed by the log's key",
    ),
    "two witnesses": (
        answering("/checkpoint", log_of([400], n_witnesses=2).head()),
        "2 witnesses have signed the checkpoint of 400 entries, and 3 are needed",
    ),
    "no checkpoint": (answering("/checkpoint", b"\xff\0"), "the checkpoint"),
    "fails": (answering("/checkpoint", b"", 500), "answers 500"),
    "a bundle that is cut": (answering("/tile/entries/001.p/144", b"\0"), "must hold 144 entries"),
    "no bundle": (answering("/tile/entries/001.p/144", b"", 404), "answers 404"),
    "other entries": (
        answering(
            "/tile/entries/001.p/144", log_of([400], 399).get("/tile/entries/001.p/144").body
        ),
        "its 400 entries have another root than the one that it has signed",
    ),
    "sizes of another stretch": (answering("/sizes/0", b"9999\n"), "must have sizes from 0"),
    "no sizes": (answering("/sizes/0", b"\xff\n"), "must be a whole number"),
    "a size that it has not": (answering("/sizes/0", b"399\n400\n"), "answers 404"),
    "another size": (
        answering("/checkpoints/350", log_of([300]).head()),
        "the checkpoint at /checkpoints/350 must be of 350 entries, and is of 300",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_is_named_and_changes_nothing(tmp_path, name):
    change, why = HOSTILE[name]
    copy = copy_in(tmp_path)
    taken(copy, log_of([3, 300]))
    log = log_of([3, 300, 350, 400])
    assert why in taken(copy, Changed(log, change))
    require_is(copy, log_of([3, 300]))
    assert copy.forks() == []
    assert taken(copy, log) == ""
    require_is(copy, log)


def test_log_of_verdicts_is_copied_like_any_other(tmp_path):
    said = [Verdict(EVENT.id, sha256(b"%d" % i).digest(), COLLECTED) for i in range(300)]
    log = verdict_log(EVENT, said)
    copy = LogCopy(tmp_path, EVENT.verdicts, EVENT)
    asker = Changed(log, lambda _: None)
    LogCopying(copy, EVENT).take(asker)
    assert [*copy.leaves()] == [each.data for each in said]
    assert "/amendments" not in asker.paths


def test_mirror_is_read_like_a_log(tmp_path):
    log = log_of([3, 300, 700])
    first, second = copy_in(tmp_path / "first"), copy_in(tmp_path / "second")
    taken(first, log)
    assert taken(second, Folder(first.folder), is_mirror=True) == ""
    require_is(second, log)
    assert second.amendments() == first.amendments() is not None
    assert taken(copy_in(tmp_path / "third"), Folder(tmp_path / "none"), is_mirror=True) == ""


@pytest.mark.parametrize("file", ["checkpoint", "tile/0/001.p/44", "tile/entries/001.p/44"])
def test_copy_that_is_damaged_says_so(tmp_path, file):
    taken(copy_in(tmp_path), log_of([300]))
    (tmp_path / file).write_bytes(b"damaged")
    with pytest.raises(ProblemError, match="move the folder away, and it is copied again"):
        copy_in(tmp_path)
    (tmp_path / file).unlink()
    if file != "checkpoint":
        with pytest.raises(ProblemError, match="is damaged"):
            copy_in(tmp_path)


class Killed(BaseException):
    """The process ends here."""


def failing_at(patch, step: int, error) -> list[int]:
    """Have the call that names a file fail, which is the step-th; return how many there were."""
    calls = [0]

    def named(*arguments, **options):
        calls[0] += 1
        if calls[0] == step:
            raise error
        return real(*arguments, **options)

    real = tile_files.name_durably
    for module in (tile_files, log_copy):
        patch.setattr(module, "name_durably", named)
    return calls


@pytest.mark.parametrize("error", [Killed(), OSError(errno.ENOSPC, "full")], ids=["kill", "full"])
def test_copy_goes_on_after_a_kill_or_a_full_disk_at_every_step(tmp_path, error):
    before, log = log_of([3, 300]), log_of([3, 300, 550, 600])
    step, n_steps = 0, 1
    while step < n_steps:
        step += 1
        folder = tmp_path / str(step)
        taken(copy_in(folder), before)
        with pytest.MonkeyPatch.context() as patch:
            calls = failing_at(patch, step, error)
            try:
                LogCopying(copy_in(folder), EVENT).take(log)
            except (Killed, StoreError):
                n_steps = step + 1
            assert calls[0] <= step or n_steps == step
        # What is there is a log that was published, whole.
        held = copy_in(folder)
        assert held.size in (300, 600)
        assert [*held.leaves()] == log.entries[: held.size]
        assert taken(held, log) == ""
        require_is(held, log)
    assert step > 5


def test_what_has_come_of_a_long_log_is_kept_when_its_source_falls_silent(tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "KEPT_EVERY", 256)
    log = log_of([300, 600, 900])

    def silent(path: str) -> None:
        if path.startswith("/tile/entries/003"):
            raise TransferError("does not answer")

    copy = copy_in(tmp_path)
    assert taken(copy, Changed(log, silent)) == "does not answer"
    require_is(copy, log_of([300, 600]))
    asker = Changed(log, lambda _: None)
    assert taken(copy, asker) == ""
    assert "/tile/entries/001" not in asker.paths
    require_is(copy, log)


def test_sizes_are_listed_by_stretches():
    assert sizes_path(STRETCH - 1) == "sizes/0"
    assert sizes_path(STRETCH) == "sizes/1"
    sizes = [STRETCH, STRETCH + 5]
    assert read_sizes(sizes_data(sizes), 1) == sizes
    for wrong in (b"4096", b"4097\n4096\n", b"4096\n4096\n", b"1\n", b"x\n", b"\n"):
        with pytest.raises(ProblemError):
            read_sizes(wrong, 1)
    # The line at fault is named, not the first.
    for wrong, line in ((b"4096\n4098\n4097\n", "4097"), (b"4096\n4097", "4097")):
        with pytest.raises(ProblemError, match=f"got '{line}'$"):
            read_sizes(wrong, 1)


def test_leaves_of_any_length_are_told_apart():
    assert len({leaf_hash(leaf(i)) for i in range(150)}) == 150
    assert {len(leaf(i)) for i in range(150)} == {32, 64, 160}
