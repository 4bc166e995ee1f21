"""Round trips and traces in a unit without capabilities, where programs that need one cannot start.

Debian's ping bears a capability. The kernel refuses to start such a program (EPERM) where it is
taken from all that the process may start, which is something else than a program that fails.
"""

from __future__ import annotations

import json
import sys

import pytest
from conftest import NO_HARDENED
from instances.hardened_units import AS_ROOT, NO_CAPABILITIES, can_run, run_python

# Puts programs into a folder that bear cap_net_raw (linux/capability.h, as setcap would have it),
# and goes on in that folder's world as the rest of its command line.
BEARING = """
import os, shutil, struct, sys

folder, *command = sys.argv[1:]
for name in ("ping", "scamper", "traceroute"):
    path = shutil.copy(shutil.which("true"), f"{folder}/{name}")
    os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
os.execvp(command[0], command)
"""
MEASURING = """
import json, sys
from pathlib import Path
from instances.measuring import OPERATOR, entry_of, measuring
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.pair_tests import measure_pair
from datacollect.measuring.operator.traces import TraceSettings

folder = Path(sys.argv[1])
with measuring(folder, "D") as to, measuring(folder, "S", {"D": to.place}) as by:
    for settings in (PingSettings(2, 0.2), TraceSettings(seconds=10.0)):
        print(json.dumps(measure_pair(entry_of(by), entry_of(to), OPERATOR, settings)))
"""


def rows_of(before, folder):
    return [json.loads(line) for line in run_python(before, MEASURING, str(folder)).splitlines()]


def test_programs_that_cannot_start_are_named_and_handshakes_stand_for_ping(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    before = [*AS_ROOT, sys.executable, "-c", BEARING, str(folder), *NO_CAPABILITIES]
    # Of disks that are mounted without such rights the kernel starts them after all.
    if not can_run([*before, "true"]) or can_run([*before, "ping"]):
        pytest.skip(NO_HARDENED)
    by_ping, traced = rows_of(before, tmp_path)
    assert (by_ping["ended"], by_ping["loss"]) == ("done", 0.0)
    assert json.loads(by_ping["settings"])["by"] == "tcp handshake"
    assert 0 < by_ping["rtt_s"] < 1
    refused = "{0} fails: Operation not permitted"
    assert traced["ended"] == "no program on this host can trace: " + "; ".join(
        f"{by}: {refused.format(by.partition(',')[0])}"
        for by in ("scamper", "traceroute", "traceroute, many flows")
    )
    assert "routers" not in traced


def test_with_this_hosts_own_programs_rows_say_by_what_they_are(tmp_path):
    by_ping, traced = rows_of(NO_CAPABILITIES, tmp_path)
    assert by_ping["ended"] == "done"
    assert json.loads(by_ping["settings"])["by"] in ("icmp", "tcp handshake")
    if traced["ended"] == "done":
        assert json.loads(traced["settings"])["by"].startswith(("scamper", "traceroute"))
    else:
        assert traced["ended"].startswith("no program on this host can trace: scamper: ")
