"""Runs of both engines are what they were when their digests were recorded.

A change that is meant to alter none shows here if it does; one that is meant to records them anew,
with the reason (see `record_digests.py`).
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from conftest import NO_NS3, OTHER_PLATFORM
from instances.digest_runs import RUNS
from judges import digests

needs_ns3 = pytest.mark.skipif(find_spec("ns3") is None, reason=NO_NS3)
MARKS = {"fluid": (), "ns3": (needs_ns3,)}
ENGINES = [pytest.param(engine, marks=marks) for engine, marks in MARKS.items()]
EVERY_RUN = [
    pytest.param(engine, name, marks=marks, id=f"{engine} {name}")
    for engine, marks in MARKS.items()
    for name in RUNS[engine]
]


@pytest.mark.parametrize("engine", MARKS)
def test_every_run_is_recorded(engine):
    assert list(digests.read(engine)["runs"]) == list(RUNS[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_digests_are_compared_to_the_last_digit(engine):
    if digests.read(engine)["platform"] != digests.platform_of(engine):
        pytest.skip(OTHER_PLATFORM)


@pytest.mark.parametrize(("engine", "name"), EVERY_RUN)
def test_a_run_is_what_was_recorded(engine, name):
    recorded = digests.read(engine)
    exactly = recorded["platform"] == digests.platform_of(engine)
    found = digests.run_case(engine, name)
    lines = digests.differences(recorded["runs"][name], found, exactly=exactly)
    assert not lines, "\n".join(
        [f"{engine}, {name}: if this is meant, python tests/record_digests.py --why ...", *lines]
    )
