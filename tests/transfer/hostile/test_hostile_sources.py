"""A healthy source beside sources that do all that the grammar knows: it is never kept waiting."""

import itertools

import pytest
from instances.how_many import many
from transfer.hostile.grammar import case_by_words, case_of
from transfer.hostile.judging import LONG, Trial, complaints_of

# Together in one collection, so that they also meet each other.
AT_ONCE = 8
FIXED_SEEDS = range(16)
MANY_SEEDS = range(16, 16 + many(800))


def in_groups(items, n):
    items = list(items)
    return [items[i : i + n] for i in range(0, len(items), n)]


def group_id(seeds):
    return f"seeds{seeds[0]}to{seeds[-1]}"


def require_none(complaints):
    assert not complaints, "\n\n".join(["complaints:", *complaints])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", in_groups(FIXED_SEEDS, AT_ONCE), ids=group_id)
def test_hostile_sources_of_fixed_seeds(tmp_path, seeds):
    require_none(complaints_of(tmp_path, map(case_of, seeds)))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", in_groups(MANY_SEEDS, AT_ONCE), ids=group_id)
def test_hostile_sources_of_many_seeds(tmp_path, seeds):
    require_none(complaints_of(tmp_path, map(case_of, seeds)))


# What drips, one step at a time: each has its own deadline, and no other source waits for it.
DRIPS = [
    ("greeting", "a byte of TLS every 0.05 s"),
    ("greeting", "a byte of TLS every 5 s"),
    ("facts", "it sends a byte every 5 s"),
    ("facts", "it sends a byte every 0.3 s"),
    ("inventory", "it sends a byte every 5 s"),
    ("inventory", "it sends the head, then a byte of the body every 0.3 s"),
    ("confirm", "it sends a byte every 5 s"),
    ("confirm", "it sends the head, then a byte of the body every 0.3 s"),
    ("hash", "it sends a byte every 5 s"),
    ("read", "it sends a byte every 5 s"),
    ("read", "it sends the head, then a byte of the body every 0.3 s"),
]


@pytest.mark.slow
@pytest.mark.parametrize("drips", [DRIPS[:6], DRIPS[6:]], ids=["before-bytes", "of-bytes"])
def test_sources_that_drip_keep_nobody_from_the_first_byte(tmp_path, drips):
    cases = {f"H{i}": case_by_words(*each) for i, each in enumerate(drips)}
    trial = Trial(tmp_path, cases, limits=LONG, relents=True)
    require_none(trial.run())
    assert trial.answer.complete, trial.answer.missing


ENDLESS = [
    "pages without end, each with an entry",
    "pages without end, each without an entry",
    "pages without end, each with 10000 entries",
    "pages without end, each with an entry after 0.4 s",
    "a million names",
]


@pytest.mark.slow
def test_lists_without_end_keep_nobody_from_the_first_byte(tmp_path):
    cases = {f"H{i}": case_by_words("inventory", words) for i, words in enumerate(ENDLESS)}
    trial = Trial(tmp_path, cases, limits=LONG, relents=True)
    require_none(trial.run())


@pytest.mark.slow
@pytest.mark.parametrize("words", ["it sends 20 KB, then silence", "it sends 20 KB, then the end"])
def test_bytes_that_never_make_a_piece_are_no_progress(tmp_path, words):
    """Patience is longer than the longest wait between two tries: each try brings some bytes."""
    trial = Trial(
        tmp_path,
        {"H0": case_by_words("read", words)},
        limits={"patience_s": 8.0, "timeout_s": 1.0},
        ends_within_s=40.0,
    )
    require_none(trial.run())


CASES = [
    ("inventory", "huge files"),
    ("inventory", "files of 2^63 - 1 bytes"),
    ("inventory", "a file that is a folder of others"),
    ("inventory", "names that differ by case"),
    ("inventory", "a name in two normal forms"),
    ("facts", "its body is 16 MiB of empty objects"),
    ("confirm", "unreadable holds a file whose reason is terminal escapes"),
    ("confirm", "unreadable holds a file whose reason is an empty text"),
    ("inventory", "why of all lines with left_out is an empty text"),
    ("read", "its bytes: a wrong digest"),
    ("read", "it sends half, then silence"),
    ("read", "it sends 20 KB, then silence"),
    ("read", "it sends 20 KB, then the end"),
    ("hash", "its bytes: wrong hashes"),
    ("read", "it sends every answer twice"),
]


@pytest.mark.slow
def test_some_that_chance_might_leave_out(tmp_path):
    require_none(complaints_of(tmp_path, itertools.starmap(case_by_words, CASES)))


def test_a_name_that_reads_like_an_escape_may_end_a_page(tmp_path):
    """A file may be called so: a backslash, x, 0, 0."""
    trial = Trial(
        tmp_path, {"H0": case_by_words("inventory", "the page after a name with a backslash")}
    )
    require_none(trial.run())
    assert trial.answer.complete, trial.answer.missing


@pytest.mark.slow
@pytest.mark.parametrize("method", ["coordinated", "best-path", "direct"])
def test_every_method_stands_them(tmp_path, method):
    require_none(complaints_of(tmp_path, map(case_of, range(1000, 1004)), method))
