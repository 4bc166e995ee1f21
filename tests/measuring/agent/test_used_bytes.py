"""What tests may take in an hour, and that it counts across restarts."""

from __future__ import annotations

import pytest

from datacollect.errors import NotWrittenError, ProblemError, RefusedError
from datacollect.measuring.agent.used_bytes import UsedBytes


def test_what_is_reserved_counts_and_what_was_not_taken_comes_back(tmp_path):
    used = UsedBytes(tmp_path / "used", 1000)
    used.reserve("a", 700, 0.0)
    with pytest.raises(RefusedError, match="the test may take 400 bytes, and 300 of the 1000"):
        used.reserve("b", 400, 1.0)
    used.settle("a", 500)
    used.reserve("b", 400, 1.0)
    assert used.left_bytes(2.0) == 100


def test_it_counts_across_restarts_for_an_hour(tmp_path):
    UsedBytes(tmp_path / "used", 1000).reserve("a", 700, 10.0)
    again = UsedBytes(tmp_path / "used", 1000)
    assert again.left_bytes(3609.0) == 300
    assert again.left_bytes(3610.0) == 1000


def test_a_test_is_run_once_also_after_a_restart(tmp_path):
    """Also when its bytes do not count any more: its ticket may still hold."""
    UsedBytes(tmp_path / "used", 1000).reserve("a", 1, 10.0)
    again = UsedBytes(tmp_path / "used", 1000)
    again.reserve("b", 1, 3700.0)
    with pytest.raises(RefusedError, match="has been used"):
        again.reserve("a", 1, 3700.0)


def test_a_clock_that_is_set_back_gives_nothing_back(tmp_path):
    used = UsedBytes(tmp_path / "used", 1000)
    used.reserve("a", 900, 1e9)
    assert used.left_bytes(1e9 - 86400) == 100


def test_the_file_stays_small(tmp_path):
    used = UsedBytes(tmp_path / "used", 10**6)
    for i in range(200):
        used.reserve(str(i), 1, i * 600.0)
    assert len((tmp_path / "used").read_text()) < 500


@pytest.mark.parametrize("text", ["", "{", "{}x", '[["a", 1]]', '[["a", "x", 1]]', "3"])
def test_a_file_that_somebody_else_has_written_is_named(tmp_path, text):
    (tmp_path / "used").write_text(text)
    with pytest.raises(ProblemError, match="used: is not what the agent writes"):
        UsedBytes(tmp_path / "used", 1000)


def test_nothing_is_reserved_where_it_cannot_be_kept(tmp_path):
    used = UsedBytes(tmp_path / "none/used", 1000)
    with pytest.raises(NotWrittenError):
        used.reserve("a", 900, 0.0)
    assert used.left_bytes(0.0) == 1000
