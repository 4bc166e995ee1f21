"""Counters of a host's interfaces: bytes sent and received, by its kernel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

# By the process's own folder: units of systemd with ProcSubset=pid have no /proc/net.
COUNTERS = Path("/proc/self/net/dev")
# Where they stand behind an interface's name.
RECEIVED, SENT = 0, 8
# What one shows of a host with many, such as one of containers.
MOST_INTERFACES = 32


def interface_counters() -> dict[str, Any]:
    """Return the counters of this host, loopback left out.

    Returns
    -------
    dict
        ``at_s``, by a clock that never jumps; ``interfaces``: by name the bytes received and sent
        since the interface is there. Where the kernel shows none there are none.
    """
    try:
        lines = COUNTERS.read_text(encoding="utf-8", errors="replace").splitlines()[2:]
    except OSError:
        lines = []
    found = {}
    for line in lines[: MOST_INTERFACES + 1]:
        name, _, rest = line.partition(":")
        fields = rest.split()
        if name.strip() != "lo" and len(fields) > SENT:
            found[name.strip()] = [int(fields[RECEIVED]), int(fields[SENT])]
    return {"at_s": time.monotonic(), "interfaces": found}
