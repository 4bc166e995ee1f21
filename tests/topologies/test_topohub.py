"""Networks of the package topohub, from a stand-in of our own: the package is optional."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from datacollect.errors import DatacollectError, ProblemError
from datacollect.topologies import from_topohub

# As the package's `get` returns it: ids are numbers or text, names may be missing.
TREE = {
    "nodes": [
        {"id": 0, "name": "Ayr", "pos": [-4.63, 55.46]},
        {"id": 7, "pos": [-4.25, 55.86]},
        {"id": 9, "name": "Oban", "pos": None},
    ],
    "edges": [
        {"source": 0, "target": 7, "dist": 199.861639, "ecmp_fwd": {"uni": 1.0}},
        {"source": 9, "target": 7, "dist": None},
    ],
}


@pytest.fixture
def names_asked(monkeypatch):
    """Install the stand-in; return the names that it is asked for."""
    asked = []

    def get(name):
        asked.append(name)
        if name.endswith("/nowhere"):
            raise KeyError
        return TREE

    monkeypatch.setitem(sys.modules, "topohub", SimpleNamespace(get=get))
    return asked


def test_lengths_become_delays(names_asked):
    """199.86 km at 199 861.6 km/s take 1 ms; where nothing is known the default stands."""
    topology = from_topohub("sndlib/west", rate_bytes_per_s=5.0, default_delay_s=0.25)
    assert names_asked == ["sndlib/west"]
    assert topology.names == ("Ayr", "node 7", "Oban")
    assert topology.delay_s.tolist() == [pytest.approx(0.001), 0.25]
    assert np.all(topology.rate_bytes_per_s == 5.0)
    assert topology.positions[0].tolist() == [-4.63, 55.46]


def test_places_in_a_plane_are_not_degrees(names_asked):
    assert from_topohub("gabriel/3/0", rate_bytes_per_s=5.0).positions is None


def test_unknown_names_are_refused(names_asked):
    with pytest.raises(ProblemError, match=r"no network 'topozoo/nowhere'; .*'topozoo/Abilene'"):
        from_topohub("topozoo/nowhere", rate_bytes_per_s=5.0)


def test_without_the_package_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "topohub", None)  # makes its import fail
    with pytest.raises(DatacollectError, match=r"not installed .*: .*pip install 'topohub>=1.5'"):
        from_topohub("topozoo/Abilene", rate_bytes_per_s=5.0)
