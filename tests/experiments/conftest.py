"""The scripts of experiments/, as modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import datacollect as dc

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture(scope="session")
def scripts():
    """Import a script by name; scripts import each other from their own folder."""
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(EXPERIMENTS))


@pytest.fixture
def speed(scripts):
    return scripts("planning_speed")


@pytest.fixture
def references(scripts):
    return scripts("reference_solvers")


@pytest.fixture
def relay_problem():
    """S holds 12 MB; 1 MB/s to D, 2 MB/s to K and on to D: 3 MB/s in all, 4 s."""
    rates = [[0, 2e6, 1e6], [0, 0, 2e6], [0, 0, 0]]
    return dc.Problem.from_matrix(["S", "K", "D"], rates, [12_000_000, 0, 0], "D")
