"""Slotted plans on few arcs of the time-expanded graph, on small problems too."""

from __future__ import annotations

import pytest

from datacollect.methods.slotted import search as slotted_search


@pytest.fixture
def few_arcs(monkeypatch):
    """No problem is small enough to take all arcs."""
    monkeypatch.setattr(slotted_search, "all_at_once", lambda *_, **__: False)
