"""Status of a server's files: whose fault a failure is, and which versions tell something."""

from datacollect.transfer.sources.web.core.versions import Version
from datacollect.transfer.sources.web.standing import MOST_FAILURES, MOST_WITNESSES, Standing

A, B, C = Version('"a"'), Version('"b"'), Version('"c"')


def test_failures_count_until_a_file_is_answered_for():
    standing = Standing(["f", "g"])
    for n in range(1, MOST_FAILURES + 1):
        assert not standing.failures("f").are_too_many
        assert standing.failed("f", "reset") == n
    assert standing.failures("f").are_too_many
    assert standing.failures("f").text.startswith("reset; it failed")
    standing.answered("f", is_good=True)
    assert standing.failures("f").n == 0


def test_good_files_are_asked_first_whether_the_server_is_there_and_bad_ones_never():
    standing = Standing([f"f{n}" for n in range(50)])
    standing.answered("f40", is_good=True)
    standing.answered("f41", is_good=False)
    for n in range(20):
        standing.failed(f"f{n}", "reset")
    for _ in range(20):
        others = standing.witnesses("f40")
        assert len(others) == MOST_WITNESSES
        assert not set(others) & {"f40", *(f"f{n}" for n in range(20))}
        assert standing.witnesses("f1")[0] == "f40"


def test_one_file_has_no_witness():
    assert Standing(["f"]).is_alone
    assert Standing(["f"]).witnesses("f") == []


def noted(standing, *versions):
    """Note versions, each in answer to a request that was made after the one before."""
    return [standing.note("f", found, standing.mark("f"), was) for found, was in versions]


def test_a_version_that_comes_again_tells_of_nodes_that_differ():
    first, second, third = noted(Standing(["f"]), (B, A), (B, A), (A, None))
    assert first is second is None
    assert '"a" and "b" in turn' in third


def test_an_answer_that_was_under_way_when_a_file_changed_is_no_other_node():
    standing = Standing(["f"])
    mark = standing.mark("f")
    assert standing.note("f", B, standing.mark("f"), A) is None
    assert standing.note("f", A, mark) is None


def test_a_file_that_changes_now_and_then_only_changes():
    assert noted(Standing(["f"]), (B, A), (B, None), (C, B), (C, None)) == [None] * 4


def test_a_version_that_is_new_each_time_tells_nothing():
    versions = [(Version(None, f"{n} o'clock"), A) for n in range(3)]
    *_, last = noted(Standing(["f"]), *versions)
    assert "a new version of it each time" in last
