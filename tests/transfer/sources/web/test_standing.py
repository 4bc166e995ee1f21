"""Whose fault a failure is, and which versions tell something."""

import pytest

from datacollect.transfer.sources.web.core.messages import Answer, Worth
from datacollect.transfer.sources.web.core.sameness import Sameness, is_page_elsewhere
from datacollect.transfer.sources.web.core.urls import target_of
from datacollect.transfer.sources.web.core.versions import Version
from datacollect.transfer.sources.web.standing import MOST_FAILURES, MOST_WITNESSES, Standing

A, B, C = Version('"a"'), Version('"b"'), Version('"c"')


def test_failures_count_until_a_file_is_answered_for():
    standing = Standing(["f", "g"])
    for n in range(1, MOST_FAILURES + 1):
        assert not standing.failures("f").are_too_many
        assert standing.failed("f", "reset") == n
    assert standing.failures("f").are_too_many
    assert standing.failures("f").text.startswith("reset; so it went")
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


# Pages ----------------------------------------------------------------------------------------


def page(etag=None, landed=None, n_bytes=700, begins=b"<", **more):
    where = None if landed is None else target_of(landed)
    return Answer(
        Worth.GOOD, "", n_bytes, Version(etag), where, is_html=True, begins=begins, **more
    )


LOGIN = "https://x.example/login?next="


@pytest.mark.parametrize(
    ("answers", "are_pages"),
    [
        ([page('"p"')] * 2, True),
        ([page('"p"'), page('W/"p"')], True),
        ([page(), page()], False),
        ([page(), page(), page()], True),
        ([page('"p"'), page('"q"')], False),
        ([page(None, LOGIN + "a", 700), page(None, LOGIN + "b", 701)], True),
        ([page(None, "https://x.example/a2", 700), page(None, "https://x.example/b2", 701)], False),
        ([page('"p"', begins=b"\x1f")] * 3, False),
        ([page(n_bytes=n) for n in (1, 2, 3)], False),
    ],
)
def test_what_is_one_page_for_many_files(answers, are_pages):
    sameness = Sameness()
    for n, answer in enumerate(answers):
        sameness.suspects(f"f{n}.bin", answer)
    whys = [sameness.why(f"f{n}.bin") for n in range(len(answers))]
    assert [why is not None for why in whys] == [are_pages] * len(answers)


def test_one_file_that_is_asked_for_twice_is_one():
    sameness = Sameness()
    assert sameness.suspects("f.bin", page('"p"'))
    assert sameness.suspects("f.bin", page('"p"'))
    assert sameness.why("f.bin") is None


def test_pages_that_are_called_so_are_none():
    sameness = Sameness()
    assert not any(sameness.suspects(f"{n}.html", page('"p"')) for n in range(3))


def test_a_redirect_to_the_same_name_leads_to_the_file():
    target = target_of("https://x.example/a/f.bin")
    for to, is_elsewhere in (("/login", True), ("/mirror/f.bin?s=1", False)):
        answer = page(landed=f"https://x.example{to}")
        assert is_page_elsewhere("f.bin", target, answer) == is_elsewhere
