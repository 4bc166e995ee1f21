"""Feeds by UDP: schedules of loss, reordering, kills, forgeries, full disks, by the cores alone."""

from __future__ import annotations

from simulated.udp_feeds import case

__all__ = ["case"]
