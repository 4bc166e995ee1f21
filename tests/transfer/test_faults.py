"""One call fails, of the system or inside of Python: a pull is never wrong and never stuck.

What is tried stands in `faults.experiments`, what has to be true afterwards in `faults.judge`. All
of it, which takes hours, is `python tests/faults/run.py`.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from faults.experiments import STRACE, one_of_each_pair, one_of_each_site
from faults.laboratory import NO_TRACING, Laboratory, carry_out_all
from faults.run import summary
from faults.sample import SAMPLE
from instances.how_many import many


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    """Two agents, a relay, a web server, and a place for experiments with them."""
    with Laboratory(tmp_path_factory.mktemp("faults")) as laboratory:
        yield laboratory


@pytest.fixture(scope="module")
def benches(laboratory):
    """Places for one experiment at a time: while one waits for patience to end, another works."""
    return [laboratory.bench(), laboratory.bench()]


@pytest.fixture(scope="module")
def experiments(benches):
    """Experiments by target; each needs a record of clean runs, made when it is asked for."""
    return cache(lambda target: benches[0].experiments((target,), with_imports=False))


def carried_out(benches, found):
    """Return the results by key."""
    results = {}
    for _ in carry_out_all(benches, found, lambda result: results.update({result.key: result})):
        pass
    return results


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_whatever_fails_a_pull_is_right_and_goes_on(name, laboratory, benches, experiments):
    group = SAMPLE[name]
    if group.injector == STRACE and not laboratory.may_trace:
        pytest.skip(NO_TRACING)
    known = experiments(group.target)
    wanted_here = group.wanted[::5]  # the slow test has the others: half a second each
    chosen = [wanted.found_in(known, group.injector) for wanted in wanted_here]
    chosen = {experiment.key: experiment for experiment in chosen if experiment is not None}
    # Another system may do without one of them.
    assert len(chosen) >= len(wanted_here) - 1, "these sites are not there: choose others"
    results = carried_out(benches, chosen.values())
    assert any(result.reached for result in results.values()), "none was reached: choose others"
    assert not any(result.findings for result in results.values()), summary(results, chosen)


@pytest.mark.slow
def test_each_site_and_error_once(benches, capsys):
    found = one_of_each_site(one_of_each_pair(benches[0].experiments()))
    random.Random(0).shuffle(found)  # where few are taken, some of every kind, everywhere the same
    del found[many(len(found) // 4) :]
    results = carried_out(benches, found)
    said = summary(results, {experiment.key: experiment for experiment in found})
    with capsys.disabled():
        print("", *said.splitlines()[:4], sep="\n")  # noqa: T201 - how often it was not reached
    assert not any(result.findings for result in results.values()), said
