"""Cycles with short tests."""

from __future__ import annotations

import pytest

from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.tools import TOOLS


@pytest.fixture
def short_tools(monkeypatch):
    """Tests of less than a second."""
    ping = TOOLS["ping"]._replace(settings_for=lambda _: PingSettings(2, 0.2))
    tcp = TOOLS["tcp"]._replace(settings_for=lambda _: TcpSettings(1, 0.3, 300_000))
    monkeypatch.setitem(TOOLS, "ping", ping)
    monkeypatch.setitem(TOOLS, "tcp", tcp)
