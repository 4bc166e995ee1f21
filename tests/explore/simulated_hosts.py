"""Simulated hosts, from reading to reading, against packet by packet: losses, readings, buffers."""

from __future__ import annotations

import random

from instances.host_cases import differences, host_case


def case(seed: int) -> str | None:
    """Return what differs."""
    given = host_case(random.Random(seed).randint)
    found = differences(given)
    return f"{given}: {found}" if found else None
