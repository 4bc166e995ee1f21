"""A sweep whose numbers are made up, for reports."""

from __future__ import annotations

import pytest
from instances.made_sweeps import SMALL, gains, write_sweep


@pytest.fixture
def sweep_folder(tmp_path):
    write_sweep(tmp_path / "sweep", "figure3", gains, only=SMALL, documents=True, noise=0.02)
    return tmp_path / "sweep"
