"""Some behaviours by every tool; `make misbehaving` takes all."""

from __future__ import annotations

import random
import shutil

import pytest
from conftest import NO_ARIA2, NO_CURL, NO_RCLONE
from judges.misbehaviour import HONEST, Behaviour
from judges.strict_client import VARIANTS, Known
from misbehaving.cases import Case, Starts, Verdict
from misbehaving.pulling import Pulls
from misbehaving.run import PULL, carry_out, cases_of

SIZE = Known(n_bytes=True)
REASONS = {"curl": NO_CURL, "aria2": NO_ARIA2, "rclone": NO_RCLONE}
PROGRAMS = {"curl": "curl", "aria2": "aria2c", "rclone": "rclone"}


def drawn(n, seed, variants=VARIANTS):
    rng = random.Random(seed)
    return [case for known in variants for case in rng.sample(cases_of(known), n // len(variants))]


def bad_ones(results):
    return [(each.verdict, each.behaviour, each.known, each.why) for each in results if each.is_bad]


def need(tool):
    if shutil.which(PROGRAMS[tool]) is None:
        pytest.skip(REASONS[tool])


def test_some_of_all_behaviours_in_one_pull():
    results = carry_out(PULL, Starts.BAD, drawn(80, seed=1))
    assert not bad_ones(results)
    assert {each.verdict for each in results} >= {"identical", "refused by name"}


def test_some_of_all_behaviours_by_a_script_of_curl():
    need("curl")
    quick = [case for case in drawn(60, 2, [SIZE]) if case.behaviour.timing == "prompt"]
    assert not bad_ones(carry_out("curl", Starts.BAD, quick[:12]))


def test_pages_for_all_names_are_told_from_files(tmp_path):
    """A login page with ranges, behind redirects; nothing is known but the names."""
    for word in ("ranges", "whole"):
        page = Behaviour(status=word, redirect="login")
        cases = [Case(page, Known(), n) for n in range(5)]
        (tmp_path / word).mkdir()
        outcomes = list(Pulls(tmp_path / word, cases).run(Starts.BAD))
        assert {each.verdict for each in outcomes} == {Verdict.REFUSED}, word


def test_one_bad_file_takes_no_good_ones_with_it(tmp_path):
    """Each of many ways to fail lies beside a file that is served as it should be."""
    bad = [
        *(Behaviour(status=word) for word in ("503", "500", "404", "403", "416")),
        *(Behaviour(timing=word) for word in ("reset", "closed", "noise")),
        *(Behaviour(length=word) for word in ("malformed", "contradicting", "too large")),
    ]
    cases = [Case(behaviour, Known(), n) for n, behaviour in enumerate(bad)]
    outcomes = list(Pulls(tmp_path, cases).run(Starts.BAD))
    assert {each.verdict for each in outcomes if each.case.behaviour == HONEST} == {
        Verdict.IDENTICAL
    }
    assert not [each for each in outcomes if each.verdict.is_bad]


@pytest.mark.slow
def test_many_behaviours_and_second_starts_of_pulls():
    for n, starts in enumerate(Starts):
        assert not bad_ones(carry_out(PULL, starts, drawn(240, seed=3 + n))), starts


@pytest.mark.slow
@pytest.mark.parametrize("tool", sorted(PROGRAMS))
def test_many_behaviours_and_second_starts_of_scripts(tool):
    need(tool)
    for n, starts in enumerate(Starts):
        cases = drawn(16, 6 + n, [Known(n_bytes=True, sha256=bool(n % 2))])
        assert not bad_ones(carry_out(tool, starts, cases)), starts
