"""Identity of this machine: a name, and what tells it from others that are called the same."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path

MACHINE_ID = Path("/etc/machine-id")


def machine_name() -> str:
    """Return what this machine calls itself."""
    return socket.gethostname() or "host"


def machine_mark(path: Path = MACHINE_ID) -> str | None:
    """Return what tells this machine from others, and says nothing about it; None: not known."""
    try:
        number = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return hashlib.sha256(f"datacollect {number}".encode()).hexdigest()[:16] if number else None
