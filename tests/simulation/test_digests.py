"""Runs of both engines are what they were when their digests were recorded.

A change that is meant to alter none shows here if it does; one that is meant to records them again,
with the reason (see `record_digests.py`).
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec

import pytest
from conftest import NO_NS3, OTHER_PLATFORM
from instances.digest_runs import RUNS, carried_out
from judges import digests

from datacollect import control
from datacollect.control.controller import Controller

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


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "name"), EVERY_RUN)
def test_a_run_is_what_was_recorded(engine, name):
    recorded = digests.read(engine)
    exactly = recorded["platform"] == digests.platform_of(engine)
    found = digests.run_case(engine, name)
    lines = digests.differences(recorded["runs"][name], found, exactly=exactly)
    assert not lines, "\n".join(
        [f"{engine}, {name}: if this is meant, python tests/record_digests.py --why ...", *lines]
    )


# What packet by packet is not carried out: a plan's times are the same to any engine.
LEFT_OUT = {"fluid": set(), "ns3": {"PlannedController"}}


def controllers():
    """Return all classes of controllers in `datacollect.control`, by name."""
    for module in pkgutil.walk_packages(control.__path__, "datacollect.control."):
        import_module(module.name)
    found, waiting = {}, [Controller]
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        found |= {kind.__name__: kind for kind in below}
    # Engines have some of their own, which measure; so have tests.
    room = f"{control.__name__}."
    return {name: kind for name, kind in found.items() if kind.__module__.startswith(room)}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_every_controller_carries_some_run_out(engine, monkeypatch, tmp_path):
    wanted = {name for name in controllers() if name[0] != "_"} - LEFT_OUT[engine]
    made = set()
    for kind in controllers().values():
        monkeypatch.setattr(kind, "__init__", noting(made, kind.__init__))
    for case in RUNS[engine].values():
        if not wanted <= made:
            carried_out(engine, case(), tmp_path)
    assert wanted <= made, "add a run to tests/instances/digest_runs.py for each"


def noting(made, begin):
    """The constructor of a controller, which notes who was made."""

    def note(self, *arguments, **options):
        made.add(type(self).__name__)
        begin(self, *arguments, **options)

    return note
