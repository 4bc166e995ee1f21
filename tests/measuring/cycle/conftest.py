"""Cycles with short tests."""

from __future__ import annotations

import pytest

from datacollect.measuring.operator.pair_tests import PingSettings, TcpSettings
from datacollect.measuring.operator.tools import TOOLS, Tool


@pytest.fixture
def short_tools(monkeypatch):
    """Tests of less than a second."""
    ping = Tool(lambda _: PingSettings(2, 0.2), loads_wires=False)
    tcp = Tool(lambda _: TcpSettings(1, 0.3, 300_000))
    monkeypatch.setitem(TOOLS, "ping", ping)
    monkeypatch.setitem(TOOLS, "tcp", tcp)
