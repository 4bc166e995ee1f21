"""A simulated host that lacks nothing, with other values in place of some."""

from __future__ import annotations

from typing import Any

from datacollect.simulation.hosts.setting import HostSimulation

WHOLE = {
    "kernel": {"packet_s": 1e-6},
    "memory": {"copies": 1, "copy_bytes_per_s": 1e9},
    "stream": {"rate_bytes_per_s": 1e6},
    "job": {"period_s": 0.01},
}


def simulated_host(**tables: Any) -> HostSimulation:
    """Return the host; each table that is given stands in place of the whole one."""
    return HostSimulation.from_dict({"format": "datacollect-host-simulation/1", **WHOLE, **tables})
