"""Counters of interfaces from the kernel."""

from __future__ import annotations

import pytest
from instances.hardened_units import HIDDEN_PROC, run_python

from datacollect.measuring.probes import interface_counters as counting

COUNTING = """
from pathlib import Path
from datacollect.measuring.probes.interface_counters import COUNTERS, interface_counters

assert not Path("/proc/net").exists()
print("lo:" in COUNTERS.read_text(), bool(interface_counters()["interfaces"]))
"""

HEADER = "Inter-|   Receive                  |  Transmit\n face |bytes packets |bytes packets\n"
COUNTERS = "{} {} 7 0 0 0 0 0 0 {} 9 0 0 0 0 0 0\n"


@pytest.fixture
def counters(tmp_path, monkeypatch):
    path = tmp_path / "dev"
    monkeypatch.setattr(counting, "COUNTERS", path)
    return path


def test_bytes_received_and_sent_by_interface_without_loopback(counters):
    lines = [COUNTERS.format(*row) for row in (("lo:", 1, 1), ("eth0:", 20, 30), ("wg-a:", 4, 5))]
    counters.write_text(HEADER + "".join(lines))
    assert counting.interface_counters()["interfaces"] == {"eth0": [20, 30], "wg-a": [4, 5]}


@pytest.mark.parametrize("text", [None, "", HEADER, HEADER + "eth0: 1 2\n", HEADER + "nonsense\n"])
def test_where_there_are_none_none_are_said(counters, text):
    if text is not None:
        counters.write_text(text)
    assert counting.interface_counters()["interfaces"] == {}


def test_of_a_host_with_many_some_are_said(counters):
    counters.write_text(HEADER + "".join(COUNTERS.format(f"v{i}:", 1, 1) for i in range(500)))
    assert len(counting.interface_counters()["interfaces"]) <= 33


def test_a_hardened_unit_counts_as_others_do():
    """Each host has loopback. Of the others only whether there are any: they come and go."""
    has_others = bool(counting.interface_counters()["interfaces"])
    assert run_python(HIDDEN_PROC, COUNTING).split() == ["True", str(has_others)]
