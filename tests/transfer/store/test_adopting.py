"""Files at the destination: replaced, kept or adopted, by what is known of them."""

import os

import pytest
from instances.stores import UNIT, Held, pull

from datacollect.errors import TransferError


@pytest.fixture
def source():
    """Three files: of a part of a piece, of several pieces, of none."""
    return Held(small=100, large=3 * UNIT + 5, empty=0)


def there(into, source):
    return all((into / "S" / p).read_bytes() == data for p, (_, data) in source.files.items())


def lose_state(into):
    for path in (into / ".datacollect").glob("state.sqlite*"):
        path.unlink()


def test_what_is_ours_is_replaced_when_the_source_changed(tmp_path, source):
    assert pull(tmp_path, source).is_complete
    source.write("large", b"x" * 10)
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == 10
    assert there(tmp_path, source)


def test_an_altered_file_is_kept_and_named(tmp_path, source):
    pull(tmp_path, source)
    (tmp_path / "S/small").write_bytes(b"mine")
    for _ in range(2):
        again = pull(tmp_path, source)
        assert not again.is_complete
        assert again.n_bytes == 0
        assert again.missing == {
            "small": "S/small was altered after it came: move it away, or start with --overwrite, "
            "which replaces it"
        }
    assert (tmp_path / "S/small").read_bytes() == b"mine"
    source.write("small", b"a new version")
    assert pull(tmp_path, source).missing.keys() == {"small"}
    assert (tmp_path / "S/small").read_bytes() == b"mine"
    assert pull(tmp_path, source, overwrite=True).is_complete
    assert there(tmp_path, source)


def test_an_altered_file_of_the_same_size_is_kept_and_named(tmp_path, source):
    pull(tmp_path, source)
    (tmp_path / "S/small").write_bytes(b"m" * 100)
    assert pull(tmp_path, source).missing.keys() == {"small"}
    assert (tmp_path / "S/small").read_bytes() == b"m" * 100
    assert pull(tmp_path, source, overwrite=True).n_bytes == 100
    assert there(tmp_path, source)


def test_a_file_that_was_only_touched_is_ours(tmp_path, source):
    pull(tmp_path, source)
    os.utime(tmp_path / "S/large", (1, 1))
    source.files.clear()
    source.write("other", b"o")
    assert pull(tmp_path, source).is_complete


def test_a_file_that_was_moved_away_comes_again(tmp_path, source):
    pull(tmp_path, source)
    (tmp_path / "S/small").write_bytes(b"mine")
    pull(tmp_path, source)
    (tmp_path / "S/small").unlink()
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == 100


def test_another_file_that_is_there_is_kept(tmp_path, source):
    (tmp_path / "S").mkdir()
    (tmp_path / "S/small").write_bytes(b"s" * 100)
    (tmp_path / "S/large").write_bytes(b"of another size")
    first = pull(tmp_path, source)
    assert not first.is_complete
    assert first.missing == {
        path: f"S/{path} exists already and is another file: move it away, or start with "
        "--overwrite, which replaces it"
        for path in ("small", "large")
    }
    assert (tmp_path / "S/small").read_bytes() == b"s" * 100
    assert pull(tmp_path, source, overwrite=True).is_complete
    assert there(tmp_path, source)


def test_with_the_state_lost_nothing_equal_is_fetched_again(tmp_path, source):
    pull(tmp_path, source)
    lose_state(tmp_path)
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == 0
    assert {file.path for _, file in source.asked} == {"small", "large"}
    # What was adopted is ours.
    source.write("small", b"new")
    assert pull(tmp_path, source).n_bytes == 3


def test_large_files_are_compared_by_parts_that_a_source_reads_at_once(tmp_path):
    source = Held(large=2**24 + 1, other=2**24 + 9)
    (tmp_path / "S").mkdir()
    for path, (_, data) in source.files.items():
        (tmp_path / "S" / path).write_bytes(data)
    (tmp_path / "S/other").write_bytes(bytes(2**24 + 9))
    pulled = pull(tmp_path, source)
    assert pulled.missing.keys() == {"other"}
    assert [span.n_bytes for span, _ in source.asked] == [2**24, 1, 2**24]


def test_many_small_files_are_compared_by_few_questions(tmp_path):
    source = Held(**{f"f{i:04}": 10 for i in range(1500)})
    pull(tmp_path, source)
    lose_state(tmp_path)
    questions = []
    digests = source.digests
    source.digests = lambda segments: questions.append(len(segments)) or digests(segments)
    assert pull(tmp_path, source).is_complete
    assert questions == [1024, 476]


def test_a_file_with_a_known_sha256_is_compared_by_it_without_asking(tmp_path):
    import hashlib

    source = Held()
    for path, data in (("right", b"r" * 50), ("wrong", b"w" * 50)):
        source.write(path, data, sha256=hashlib.sha256(data).hexdigest())
    (tmp_path / "S").mkdir()
    (tmp_path / "S/right").write_bytes(b"r" * 50)
    (tmp_path / "S/wrong").write_bytes(b"x" * 50)
    pulled = pull(tmp_path, source)
    assert pulled.missing.keys() == {"wrong"}
    assert source.asked == []


def test_a_source_that_hashes_nothing_has_files_kept(tmp_path, source):
    (tmp_path / "S").mkdir()
    (tmp_path / "S/small").write_bytes(source.files["small"][1])
    source.digests = lambda _: None
    why = pull(tmp_path, source).missing["small"]
    assert why.endswith("(this source gives no hashes to compare it by)")


def test_a_source_that_fails_meanwhile_leaves_files_kept(tmp_path, source):
    (tmp_path / "S").mkdir()
    (tmp_path / "S/small").write_bytes(source.files["small"][1])

    def fail(_):
        raise TransferError("the connection failed")

    good, source.digests = source.digests, fail
    with pytest.raises(TransferError, match="the connection failed"):
        pull(tmp_path, source)
    source.digests = good
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == 3 * UNIT + 5


def test_a_file_that_became_a_folder_makes_way_if_it_is_ours(tmp_path, source):
    pull(tmp_path, source)
    del source.files["small"]
    source.write("small/inner", b"inner")
    assert pull(tmp_path, source).is_complete
    assert there(tmp_path, source)
    assert pull(tmp_path, source).n_bytes == 0


def test_a_file_that_became_a_folder_is_kept_if_it_was_altered(tmp_path, source):
    pull(tmp_path, source)
    del source.files["small"]
    source.write("small/inner", b"inner")
    (tmp_path / "S/small").write_bytes(b"mine")
    assert pull(tmp_path, source).missing == {
        "small/inner": "S/small is a file where a folder belongs: move it away, or start with "
        "--overwrite, which replaces it"
    }
    assert (tmp_path / "S/small").read_bytes() == b"mine"
    assert pull(tmp_path, source, overwrite=True).is_complete
    assert there(tmp_path, source)


def test_a_folder_that_became_a_file_is_kept(tmp_path):
    source = Held()
    source.write("a/b", b"old")
    pull(tmp_path, source)
    source.files.clear()
    source.write("a", b"new")
    first = pull(tmp_path, source)
    assert first.missing["a"].startswith("S/a is a folder here, and a file at the source: ")
    assert (tmp_path / "S/a/b").read_bytes() == b"old"
    assert pull(tmp_path, source, overwrite=True).is_complete
    assert (tmp_path / "S/a").read_bytes() == b"new"
    assert not any((tmp_path / ".datacollect/incoming").iterdir())


def test_a_folder_that_became_a_file_and_was_moved_away_makes_no_trouble(tmp_path):
    source = Held()
    source.write("a/b", b"old")
    pull(tmp_path, source)
    source.files.clear()
    source.write("a", b"new")
    pull(tmp_path, source)
    (tmp_path / "S/a").rename(tmp_path / "away")
    assert pull(tmp_path, source).is_complete


def test_a_file_that_appears_while_another_comes_is_kept(tmp_path, source):
    """It is asked again when the file is to get its name."""
    from instances.stores import fetch, get_ready

    from datacollect.transfer.store.store import Store

    store = Store(tmp_path)
    store.state.begin_start(["S"])
    get_ready(store, source)
    (tmp_path / "S").mkdir(exist_ok=True)
    (tmp_path / "S/small").write_bytes(b"meanwhile")
    fetch(store, source)
    assert [m.path for m in store.state.missing()] == ["small"]
    store.close()
    assert (tmp_path / "S/small").read_bytes() == b"meanwhile"
