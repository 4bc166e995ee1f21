"""What advises whoever measures a machine, or asks what it can do."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from functools import partial
from pathlib import Path
from unittest import mock

from instances.host_profiles import COSTS, profile
from remedies.trying import Example

from datacollect.commands.main import run
from datacollect.errors import DatacollectWarning
from datacollect.machine.profile import HostProfile, host_profile
from datacollect.measuring.hosts import calibrating, connections, disk_writes
from datacollect.measuring.hosts.disk_writes import require_disk
from datacollect.measuring.hosts.namespaces import Ends
from datacollect.measuring.hosts.repeats import interval_of


def receives(costs=COSTS, **needs):
    return lambda: repr(profile(costs=costs).receives(**needs))


def of_processors(number):
    tree = {**profile().to_dict(), "processors": number}
    return lambda: repr(HostProfile.from_dict(tree))


def read(text):
    """Read a profile; return what is warned of."""

    def warned():
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", DatacollectWarning)
            path = Path(folder, "p.toml")
            path.write_text(text, encoding="utf-8")
            host_profile(path)
            return " ".join(str(each.message) for each in said)

    return warned


def dated(when):
    return read(profile().to_toml().replace(profile().measured_at, when))


def calibrate(*words, found=None):
    """Calibrate with what is found; return what is said."""

    def said():
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),
            mock.patch.object(calibrating, "calibrated", return_value=found or profile()),
            mock.patch.object(disk_writes, "NEEDED_BYTES", 1),
            io.StringIO() as both,
            contextlib.redirect_stdout(both),
            contextlib.redirect_stderr(both),
        ):
            run(["host", "calibrate", "-o", "p.toml", *words])
            return both.getvalue()

    return said


def predict(*words):
    """Predict by a profile that knows TCP alone; return what is said."""

    def said():
        with tempfile.TemporaryDirectory() as folder, io.StringIO() as out:
            path = Path(folder, "p.toml")
            path.write_text(profile(costs=COSTS[:2], rates=()).to_toml(), encoding="utf-8")
            with contextlib.redirect_stdout(out):
                run(["host", "predict", str(path), *words])
            return out.getvalue()

    return said


def disk(kind="ext4", free=2**40, *, is_there=True, fails=False):
    """Look whether a disk can be measured."""

    def look():
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            mounts = folder / "mounts"
            mounts.write_text(f"x / {kind} rw 0 0\n", encoding="ascii")
            usage = mock.Mock(free=free)
            stack.enter_context(
                mock.patch.object(disk_writes.shutil, "disk_usage", return_value=usage)
            )
            if fails:
                refuse = mock.Mock(side_effect=OSError(30, "Read-only file system"))
                stack.enter_context(
                    mock.patch.object(disk_writes.tempfile, "TemporaryFile", refuse)
                )
            return require_disk(folder if is_there else folder / "none", mounts)

    return look


class Silent:
    """A connection over which something comes, or nothing."""

    def __init__(self, n_bytes):
        self.received_bytes, self._n_bytes = 0, n_bytes

    def receive(self):
        connections.time.sleep(0.001)
        self.received_bytes += self._n_bytes

    def close(self):
        """Have nothing to close."""


def received(n_bytes):
    def receive():
        ends = Ends((), ("", ""), (0, 0))
        ready_s = connections.READY_S if n_bytes else 0.05
        with mock.patch.object(connections, "READY_S", ready_s):
            connections._received(ends, partial(Silent, n_bytes), 1, 0.05)

    return receive


EXAMPLES = [
    Example("nothing known: give --nic", predict(), predict("--nic", "10 Gbit/s")),
    Example(
        "measure again: `datacollect host calibrate -o PROFILE.toml`",
        of_processors(0),
        of_processors(2),
    ),
    Example(
        "measured_at is {}, {}: machines change;",
        dated("2019-11-30T00:00:00"),
        read(profile().to_toml()),
    ),
    Example(
        "; `datacollect host calibrate -o PROFILE.toml` writes one",
        read(""),
        read(profile().to_toml()),
    ),
    Example(
        "no cost of {} was measured where a host {};",
        receives(COSTS[:2], tls=True),
        receives(tls=True),
    ),
    Example(
        "packet_bytes (--packet-bytes) must be at most {}",
        receives(packet_bytes=70_000),
        receives(packet_bytes=35_000),
    ),
    Example(
        "asks for datagrams, which TLS and pulls do not use; leave out",
        receives(packet_bytes=64, tls=True),
        receives(packet_bytes=64),
    ),
    Example("leave it out for all of them", receives(cores=3), receives()),
    Example(
        "a window limits what comes in each round trip; give both",
        receives(window_bytes=5),
        receives(window_bytes=5, rtt_s=1),
    ),
    Example(
        "all other measurements are written; measure again when the machine is idle",
        calibrate(found=profile(refused={"tls": "other programs are busy"})),
        calibrate(),
    ),
    Example(
        "60 give each number five repeats",
        calibrate("--seconds", "1"),
        calibrate("--seconds", "60"),
    ),
    Example("nothing arrived in the given time;", received(0), received(5)),
    Example("must have {} free, has {}; make room", disk(free=5), disk()),
    Example(
        "cannot be written: {}; name another folder",
        disk(fails=True),
        disk(),
        "measuring.hosts.disk_writes",
    ),
    Example("lies on another machine's disk ({})", disk("nfs4"), disk()),
    Example(
        "no such folder; make it, or name another",
        disk(is_there=False),
        disk(),
        "measuring.hosts.disk_writes",
    ),
    Example(
        "nothing was measured in the given time",
        lambda: interval_of([]),
        lambda: interval_of([5.0]),
    ),
]
