"""Processes with as little as units of systemd: `packaging/systemd/datacollect-agent.service`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest
from conftest import NO_HARDENED, REPOSITORY

# Ordinary users are root in a namespace of their own; the network stays that of the tests.
AS_ROOT = ("unshare", "--map-root-user")
# ProcSubset=pid and ProtectProc=invisible.
HIDDEN_PROC = (
    *(*AS_ROOT, "--mount", "--pid", "--fork", "sh", "-ec"),
    'mount -t proc -o subset=pid,hidepid=2 proc /proc; exec "$@"',
    "sh",
)
# CapabilityBoundingSet= and NoNewPrivileges=yes.
NO_CAPABILITIES = (*AS_ROOT, "setpriv", "--bounding-set=-all", "--no-new-privs")


def run_python(before: Sequence[str], code: str, *arguments: str) -> str:
    """Return what code prints that a command runs; the test is skipped where the command cannot."""
    if not can_run([*before, "true"]):
        pytest.skip(NO_HARDENED)
    done = subprocess.run(
        [*before, sys.executable, "-c", code, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def can_run(command: Sequence[str]) -> bool:
    """Return whether a command is there, and goes well."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
