"""Probes: their arithmetic on rows of ours, and slow: that they measure, and leave nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NO_NAMESPACES

from datacollect.errors import ProblemError, TransferError
from datacollect.machine.parts import GIB
from datacollect.measuring.hosts import datagrams, disk_writes, memory_copies, two_ends
from datacollect.measuring.hosts.connections import UNITS, costs_of
from datacollect.measuring.hosts.disk_writes import file_system_of, require_disk
from datacollect.measuring.hosts.repeats import interval_of, line_through

# Datagrams ---------------------------------------------------------------------------------------


def bursts(extra_ns=0.0):
    """Return bursts of a machine that takes 2000 ns and 0.05 per byte to send, 400 and 0.02."""
    return {
        size: [
            (2000 + 0.05 * size + noise, 400 + 0.02 * size + noise)
            for noise in (extra_ns, 900.0, 0.0, 50.0)
        ]
        for size in datagrams.SIZES
    }


def test_the_least_of_many_bursts_is_what_a_packet_costs():
    sends, receives = datagrams.costs_of(bursts(5000.0), "loopback")
    assert (sends.end, receives.end) == ("sends", "receives")
    assert sends.us_per_unit == pytest.approx(2.0)
    assert sends.s_per_gib == pytest.approx(0.05e-9 * GIB)
    assert receives.us_per_unit == pytest.approx(0.4)
    assert receives.s_per_byte(1000) == pytest.approx(420e-12)


def test_the_program_s_lines_are_bursts():
    assert datagrams.bursts_of(["64 2000 400", "64 2100 390"]) == {64: [(2000, 400), (2100, 390)]}


def test_a_program_that_fails_says_why():
    with pytest.raises(TransferError, match="udp: no such luck"):
        datagrams.run_program([sys.executable, "-c", "raise SystemExit('no such luck')"], 1)


# Connections --------------------------------------------------------------------------------------


def rows():
    """Return rows of a machine: 1 ns a byte to send, 3 to receive; a unit 1 and 2 µs more."""
    found = []
    for kind, (_, sizes) in UNITS.items():
        for size, at_once in ((sizes[0], 1), (sizes[1], 1), (sizes[1], 4)):
            n = 1000 * size
            found += [
                {
                    "kind": kind,
                    "unit_bytes": size,
                    "at_once": at_once,
                    "n_bytes": n,
                    "took_s": n / 3e8,
                    "sender_s": n * 1e-9 + 1e-3,
                    "receiver_s": n * 3e-9 + 2e-3,
                    "own_s": n * 2e-9,
                }
            ] * 3
    return found


def test_ends_that_are_apart_have_a_cost_each():
    costs, rates = costs_of(rows(), apart=True, has_two=True)
    assert [(each.work, each.end) for each in costs] == [
        *(("tcp", "sends"), ("tcp", "receives"), ("tls", "sends"), ("tls", "receives"))
    ]
    tcp_receives = costs[1]
    assert tcp_receives.s_per_gib == pytest.approx(3e-9 * GIB)
    assert tcp_receives.us_per_unit == pytest.approx(2.0)
    assert tcp_receives.own_s_per_gib == pytest.approx(2e-9 * GIB)
    assert costs[0].own_s_per_gib is None
    assert [(each.of, each.at_once) for each in rates] == [
        *(("tcp", 1), ("tcp", 4), ("tls", 1), ("tls", 4))
    ]
    assert rates[0].bytes_per_s == pytest.approx(3e8)


def test_ends_that_are_not_apart_have_the_sum():
    costs, rates = costs_of(rows(), apart=False, has_two=False)
    assert {each.end for each in costs} == {"both"}
    assert costs[0].s_per_gib == pytest.approx(4e-9 * GIB)
    assert rates == []


def test_a_repeat_is_the_least_there_may_be():
    assert interval_of([5.0]) == (5.0, 5.0, 5.0)
    with pytest.raises(TransferError, match="give more --seconds"):
        interval_of([])


def test_a_larger_unit_that_took_less_costs_no_less():
    line = line_through({10: 5.0, 1000: 4.0})
    assert line.s_per_byte > 0
    assert line.s_per_unit >= 0


# The disk ---------------------------------------------------------------------------------------


def mounted(tmp_path, kind):
    path = tmp_path / "mounts"
    path.write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    return path


def test_the_file_system_is_the_one_mounted_nearest(tmp_path):
    assert file_system_of(tmp_path, mounted(tmp_path, "xfs")) == "xfs"
    assert file_system_of(Path("/"), mounted(tmp_path, "xfs")) == "ext4"
    assert file_system_of(tmp_path, tmp_path / "none") == "unknown"


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "cifs"])
def test_another_machine_s_disk_is_named(tmp_path, kind):
    with pytest.raises(ProblemError, match=rf"another machine's disk \({kind}\)"):
        require_disk(tmp_path, mounted(tmp_path, kind))


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    usage = disk_writes.shutil.disk_usage(tmp_path)._replace(free=5)
    monkeypatch.setattr(disk_writes.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ProblemError, match=r"must have 1.074 GB free, has 5 B; make"):
        require_disk(tmp_path)


def test_a_disk_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def read_only(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(disk_writes.tempfile, "TemporaryFile", read_only)
    with pytest.raises(ProblemError, match="cannot be written: Read-only file system"):
        require_disk(tmp_path)


def test_no_folder_is_named(tmp_path):
    with pytest.raises(ProblemError, match="no such folder; make it"):
        require_disk(tmp_path / "none")


# For real ---------------------------------------------------------------------------------------


def test_memory_is_copied_by_blocks_and_by_all_cores(monkeypatch):
    monkeypatch.setattr(memory_copies, "BLOCKS_BYTES", (2**10, 2**12, 2**14))
    found = memory_copies.measure_memory(0.02, lambda: 0.5, 2)
    assert [each.at_once for each in found] == [1, 1, 1, 2]
    assert all(each.low_bytes_per_s > 0 for each in found)
    assert {each.load for each in found} == {0.5}


def test_datagrams_are_measured_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setattr(datagrams.shutil, "which", lambda _: None)
    assert datagrams.compiled(tmp_path) is None
    sends, receives = datagrams.costs_of(datagrams.bursts_from_python(0.01), "loopback")
    assert sends.s_per_byte(64) > 0 < receives.s_per_byte(64)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason=NO_NAMESPACES)
def test_connections_are_measured_over_loopback_and_nothing_is_left(tmp_path):
    before = processes()
    cores = two_ends.processors_of_ends()
    wanted = two_ends.Wanted("connections", 6.0, False, cores, folder=str(tmp_path))
    costs, _ = costs_of(two_ends.between_two_ends(wanted), apart=False, has_two=True)
    assert {each.work for each in costs} == {"tcp", "tls"}
    assert {each.end for each in costs} == {"both"}
    tcp, tls = costs
    assert tcp.s_per_gib > 0
    assert tls.own_s_per_gib > 0
    assert processes() <= before


@pytest.mark.slow
def test_ends_in_namespaces_have_processors_of_their_own_and_nothing_is_left(tmp_path):
    if two_ends.why_not_apart() or not shutil.which("cc"):
        pytest.skip(NO_NAMESPACES)
    before, names = processes(), interfaces()
    program = datagrams.compiled(tmp_path)
    cores = two_ends.processors_of_ends()
    wanted = two_ends.Wanted("datagrams", 0.2, True, cores, program=str(program))
    found = {int(size): each for size, each in two_ends.between_two_ends(wanted).items()}
    assert found.keys() == set(datagrams.SIZES)
    assert processes() <= before
    assert interfaces() == names


@pytest.mark.slow
def test_the_disk_is_measured_by_the_pull_s_own_way_and_nothing_is_left(tmp_path):
    cost, rate = disk_writes.measure_disk(tmp_path, 0.5, 0.0)
    assert cost.s_per_gib > 0
    assert rate.low_bytes_per_s > 0
    assert list(tmp_path.iterdir()) == []


def processes():
    """Return the numbers of all processes that probes have started."""
    command = ["ps", "-o", "pid=,args=", "-U", str(os.getuid())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {line.split()[0] for line in done.stdout.splitlines() if "measuring.hosts" in line}


def interfaces():
    return sorted(Path("/sys/class/net").iterdir()) if Path("/sys/class/net").exists() else []
