"""A narrowed start is a view: what it leaves out stays as it is, and is wanted."""

import os
import shutil
from contextlib import closing

import apsw
import pytest
from instances.stores import UNIT, Held, get_ready, pull, put, rounds
from transfer.pull.test_run import FILES, SHORT, arrived, data

import datacollect as dc
from datacollect.transfer.protocol.patterns import Narrowing
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.store.status import status_of
from datacollect.transfer.store.store import Store

SMALL = {"small/a": b"a" * 100, "small/b": b"b" * 200}
TABLES = ("files", "pieces", "hashes", "unfinished", "sources", "folders", "left_out")
LARGE = {"large": data(40 * UNIT)}


def dump(folder):
    """All that the state says of files, and the unfinished bytes."""
    copy = folder.with_name("dumped")
    shutil.copytree(folder / ".datacollect", copy)
    with closing(apsw.Connection(str(copy / "state.sqlite"))) as db:
        tables = {
            table: db.execute(f"SELECT * FROM {table}").fetchall()
            for table in (
                "files",
                "pieces",
                "hashes",
                "unfinished",
                "sources",
                "folders",
                "left_out",
            )
        }
    unfinished = {path.name: path.read_bytes() for path in (copy / "incoming").iterdir()}
    shutil.rmtree(copy)
    return tables, unfinished


def half_there(into, agents, collection_of):
    """A collection of which most of the large file has come; returns its agent."""
    one = agents("S1", SMALL | LARGE)
    dc.pull(collection_of(one), into, plan_only=True)
    store = Store(into)
    held = Held("S1")
    for path, file in store.state.known_files("S1").items():
        held.files[path] = (file, one.files[path])
    store.state.begin_start(["S1"])
    get_ready(store, held)
    for _ in rounds(store):
        for piece in store.needed("S1")[:36]:
            put(store, held, piece)
    store.close()
    one.calls.clear()
    return one


def n_read(one):
    return sum(target == "/v1/read" for _, target in one.calls)


@pytest.mark.parametrize(
    ("include", "exclude"), [(["small/**"], []), (None, ["large"]), (None, ["**"])]
)
def test_a_dry_run_changes_nothing(include, exclude, agents, collection_of, tmp_path):
    into = tmp_path / "into"
    one = half_there(into, agents, collection_of)
    before = dump(into)
    answer = dc.pull(collection_of(one), into, plan_only=True, include=include, exclude=exclude)
    assert answer.listed
    assert dump(into) == before
    assert not [path for path in (into / ".datacollect").iterdir() if "dry" in path.name]


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_dry_run_of_another_collection_makes_nothing_whole(
    agents, collection_of, tmp_path, is_whole
):
    """Of files that are not there, and that it does not want."""
    one, into = agents("S1", SMALL), tmp_path / "into"
    assert dc.pull(collection_of(one), into, include=None if is_whole else ["small/a"]).complete
    if is_whole:
        (into / "S1/small/b").unlink()
    for wanted in (["small/a"], ["nothing"]):
        part = collection_of(one) | {"sources": {"S1": {"files": wanted}}}
        assert dc.pull(part, into, plan_only=True).complete
        assert not status_of(into).complete
    assert dc.pull(collection_of(one), into).complete
    assert arrived(into, "S1") == SMALL


def test_a_dry_run_adopts_nothing_and_leaves_times_alone(tmp_path):
    """What is there already is compared; only a start adopts it."""
    held = Held(a=100, b=200)
    (tmp_path / "S").mkdir()
    (tmp_path / "S/a").write_bytes(held.files["a"][1])
    before = (tmp_path / "S/a").stat()
    store = Store(tmp_path, is_dry=True)
    store.state.begin_start(["S"])
    get_ready(store, held)
    assert store.state.waiting() == [("S", 1, 200)]
    store.close()
    after = (tmp_path / "S/a").stat()
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
    assert status_of(tmp_path).sources[0].done_files == 0
    assert pull(tmp_path, held).n_bytes == 200


def test_what_a_dry_run_lists_is_known_afterwards(agents, collection_of, tmp_path):
    one, into = agents("S1", FILES), tmp_path / "into"
    dc.pull(collection_of(one), into, plan_only=True)
    (source,) = status_of(into).sources
    assert (source.wanted, source.listed, source.waiting_files) == (True, True, len(FILES))
    one.files["new"] = b"new"
    dc.pull(collection_of(one), into, plan_only=True, exclude=["b"])
    assert status_of(into).sources[0].waiting_files == len(FILES) + 1


def test_a_narrowed_start_keeps_the_pieces_of_the_rest(agents, collection_of, tmp_path):
    """36 of 41 pieces, of the file and what lies before it, have come."""
    into = tmp_path / "into"
    one = half_there(into, agents, collection_of)
    answer = dc.pull(collection_of(one), into, include=["small/**"])
    assert answer.complete
    assert arrived(into, "S1") == SMALL
    one.calls.clear()
    assert dc.pull(collection_of(one), into).complete
    assert arrived(into, "S1") == SMALL | LARGE
    assert n_read(one) <= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("include", "exclude", "options"),
    [
        (["small/**"], [], "--include 'small/**'"),
        (None, ["large"], "--exclude large"),
        (None, ["**"], "--exclude '**'"),
        ([], [], "--exclude '**'"),
    ],
)
def test_the_verdict_on_a_part_is_none_on_the_whole(
    include, exclude, options, agents, collection_of, tmp_path
):
    one, into = agents("S1", SMALL | LARGE), tmp_path / "into"
    answer = dc.pull(collection_of(one), into, include=include, exclude=exclude)
    assert (answer.complete, answer.narrowed_to.options) == (True, options)
    found = status_of(into)
    assert (found.complete, found.complete_as_asked) == (False, True)
    assert found.narrowed_to.options == options
    assert not found.sources[0].listed
    assert status_of(into, as_asked=True).complete
    assert dc.pull(collection_of(one), into).narrowed_to is None
    found = status_of(into)
    assert (found.complete, found.narrowed_to) == (True, None)


def test_what_was_whole_stays_whole_after_a_start_that_asked_for_a_part(
    agents, collection_of, tmp_path
):
    one, into = agents("S1", SMALL | LARGE), tmp_path / "into"
    dc.pull(collection_of(one), into)
    dc.pull(collection_of(one), into, include=["small/**"])
    assert status_of(into).complete
    (into / "S1/large").unlink()
    assert not status_of(into).complete
    assert status_of(into, as_asked=True).complete
    dc.pull(collection_of(one), into, include=["small/**"])
    assert not status_of(into).complete


def test_it_is_whole_no_more_where_the_file_wants_more_by_then(agents, collection_of, tmp_path):
    one, into = agents("S1", SMALL | LARGE), tmp_path / "into"
    part = collection_of(one) | {"sources": {"S1": {"files": ["small/**"]}}}
    assert dc.pull(part, into).complete
    assert status_of(into).complete
    dc.pull(collection_of(one), into, include=["small/a"])
    assert not status_of(into).complete
    dc.pull(part, into, include=["small/a"])
    assert not status_of(into).complete  # not listed again since
    dc.pull(part, into)
    assert status_of(into).complete


def test_it_is_whole_no_more_where_another_agent_has_the_name_by_then(
    agents, collection_of, tmp_path
):
    one, into = agents("S1", SMALL), tmp_path / "into"
    assert dc.pull(collection_of(one), into).complete
    one.stop()
    other = agents("S1", SMALL | {"small/b": b"another"})
    assert dc.pull(collection_of(other), into, include=["small/a"]).complete
    assert not status_of(into).complete
    assert dc.pull(collection_of(other), into).complete
    assert status_of(into).complete
    assert arrived(into, "S1") == other.files


def test_what_is_missing_outside_the_view_stays_missing(agents, collection_of, tmp_path):
    one = agents("S1", SMALL | LARGE, left_out=[("odd", "no file"), ("small/odd", "no file")])
    into = tmp_path / "into"
    dc.pull(collection_of(one), into)
    assert {each.path for each in status_of(into).missing} == {"odd", "small/odd"}
    answer = dc.pull(collection_of(one), into, include=["small/**"])
    assert [each.path for each in answer.missing] == ["small/odd"]
    assert {each.path for each in status_of(into).missing} == {"odd", "small/odd"}
    assert {each.path for each in status_of(into, as_asked=True).missing} == {"small/odd"}


def test_a_file_that_changed_outside_the_view_is_not_looked_at(agents, collection_of, tmp_path):
    one, into = agents("S1", SMALL | LARGE), tmp_path / "into"
    dc.pull(collection_of(one), into)
    one.files["large"] = b"another"
    assert dc.pull(collection_of(one), into, include=["small/**"]).complete
    assert arrived(into, "S1") == SMALL | LARGE
    assert dc.pull(collection_of(one), into).complete
    assert arrived(into, "S1")["large"] == b"another"


def test_what_is_verified_is_what_is_asked_for(agents, collection_of, tmp_path):
    """A file outside the view, which is altered, stays as it is."""
    into = tmp_path / "into"
    one = agents("S1", SMALL)
    assert dc.pull(collection_of(one), into).complete
    path, told = into / "S1/small/b", []
    about = path.stat()
    path.write_bytes(b"B" + SMALL["small/b"][1:])
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    options = {"verify": True, "tell": told.append}
    before = dump(into)
    answer = dc.pull(collection_of(one), into, include=["small/a"], **options)
    assert answer.complete
    assert told == []
    assert dump(into)[0]["files"] == before[0]["files"]
    assert dc.pull(collection_of(one), into, **options).complete
    assert path.read_bytes() == one.files["small/b"]


def test_a_source_that_is_away_makes_neither_whole(agents, collection_of, tmp_path):
    one, two, into = agents("S1", SMALL), agents("S2", {"c": b"c"}), tmp_path / "into"
    two.stop()
    answer = dc.pull(collection_of(one, two, limits=SHORT), into, include=["small/**"])
    assert not answer.complete
    found = status_of(into, as_asked=True)
    assert not found.complete
    assert [(each.name, each.listed) for each in found.sources] == [("S1", True), ("S2", False)]


def test_an_interrupted_view_is_not_complete_as_asked(agents, collection_of, tmp_path):
    into, tree = tmp_path / "into", collection_of(agents("S1", SMALL))
    dc.pull(tree, into)
    wants = Collection.from_dict(tree).wanted_in_all
    store = Store(into)
    store.state.begin_start(["S1"], Narrowing(("small/a",)), wants)
    store.close()
    found = status_of(into)
    # All of it was listed before; of the part that was asked for then nothing was heard.
    assert (found.complete, found.complete_as_asked) == (True, False)
