"""Some behaviours by every tool; `make misbehaving` takes all."""

from __future__ import annotations

import random

import pytest
from conftest import need
from instances.how_many import many
from judges.misbehaviour import Behaviour
from judges.strict_client import VARIANTS, Known
from misbehaving.cases import Case, Starts
from misbehaving.run import PULL, carry_out, cases_of

SIZE = Known(n_bytes=True)


def drawn(n, seed, variants=VARIANTS):
    rng = random.Random(seed)
    return [case for known in variants for case in rng.sample(cases_of(known), n // len(variants))]


def bad_ones(results):
    return [(each.verdict, each.behaviour, each.known, each.why) for each in results if each.is_bad]


def quick(cases, n):
    """Return so many that fail at once, where they do."""
    return [c for c in cases if c.behaviour.timing == "prompt" and not c.behaviour.is_busy][:n]


# Each lies beside a file that is served as it should be.
FAILING = (
    *(Behaviour(status=word) for word in ("404", "403", "416", "multipart")),
    *(Behaviour(timing=word) for word in ("reset", "closed", "noise")),
    *(Behaviour(length=word) for word in ("malformed", "contradicting", "too large")),
    *(Behaviour(body=word) for word in ("endless", "one byte", "replaced")),
)
# A login page with ranges, or without, behind redirects.
PAGES = (
    *(Behaviour(status=word, redirect="login") for word in ("ranges", "whole")),
    *(Behaviour(body=word, names="half") for word in ("error JSON", "error text")),
    *(Behaviour(body=word, type="data") for word in ("error XML", "pointer", "page")),
)


@pytest.mark.slow
def test_some_of_all_behaviours_in_one_pull():
    chosen = [(FAILING[n % len(FAILING)], VARIANTS[n % 4]) for n in range(2 * len(FAILING))]
    chosen += [(page, Known()) for page in PAGES for _ in range(4)]
    cases = [Case(behaviour, known, n) for n, (behaviour, known) in enumerate(chosen)]
    results = carry_out(PULL, Starts.BAD, [*cases, *quick(drawn(160, 1), 30)])
    assert not bad_ones(results)
    verdicts = {}
    for each in results:
        verdicts.setdefault(each.behaviour, set()).add(each.verdict)
    for page in PAGES:
        assert verdicts[page.key] == {"refused by name"}
    beside = [found for words, found in verdicts.items() if words.startswith("a plain file")]
    assert len(beside) >= 4
    assert all(found == {"identical"} for found in beside)


@pytest.mark.slow
def test_sources_that_are_late_keep_nobody_waiting_without_end():
    """Each ends rounds, in which the others are waited for anew."""
    known = Known(n_bytes=True, sha256=True)
    behaviours = (
        *(Behaviour(body="pointer", timing=word) for word in ("late", "stall")),
        Behaviour(body="page", names="half", timing="late"),
        Behaviour(content_range="total 0", length="too large", body="error XML"),
    )
    cases = [Case(behaviour, known, n) for n, behaviour in enumerate(behaviours)]
    results = carry_out(PULL, Starts.BAD, cases)
    assert not bad_ones(results)


@pytest.mark.slow
def test_what_was_verified_stays_where_one_answer_comes_for_all():
    cases = [Case(page, Known(), n) for n, page in enumerate(PAGES)]
    results = carry_out(PULL, Starts.GOOD_BAD, cases)
    assert not bad_ones(results)
    assert {each.verdict for each in results} == {"identical"}


def test_some_of_all_behaviours_by_a_script_of_curl():
    need("curl")
    assert not bad_ones(carry_out("curl", Starts.BAD, quick(drawn(60, 2, [SIZE]), 10)))


@pytest.mark.slow
def test_many_behaviours_and_second_starts_of_pulls():
    for n, starts in enumerate(Starts):
        cases = drawn(many(80, at_least=40), seed=3 + n)
        assert not bad_ones(carry_out(PULL, starts, cases)), starts


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["aria2", "curl", "rclone"])
def test_many_behaviours_and_second_starts_of_scripts(tool):
    need(tool)
    for n, starts in enumerate(Starts):
        cases = drawn(many(16, at_least=8), 6 + n, [Known(n_bytes=True, sha256=bool(n % 2))])
        assert not bad_ones(carry_out(tool, starts, cases)), starts
