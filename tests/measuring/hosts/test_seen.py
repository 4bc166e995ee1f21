"""What is seen of a machine, by system files of ours."""

from __future__ import annotations

import pytest

from datacollect.measuring.hosts.seen import (
    facts_of,
    gives_memory_back,
    nics_of,
    offloads_in,
    processors_of,
)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


VERSION_2 = {"proc/self/cgroup": "0::/a/b\n"}
VERSION_1 = {"proc/self/cgroup": "3:cpu,cpuacct:/a\n2:memory:/a\n0::/x\n"}
CPU_1 = "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_"


@pytest.mark.parametrize(
    ("files", "n"),
    [
        ({}, 64),
        (VERSION_2, 64),
        ({**VERSION_2, "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, 64),
        ({**VERSION_2, "sys/fs/cgroup/a/b/cpu.max": "200000 100000\n"}, 2),
        # That of a group around counts, too.
        ({**VERSION_2, "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 1.5),
        ({**VERSION_1, f"{CPU_1}quota_us": "-1\n", f"{CPU_1}period_us": "100000\n"}, 64),
        ({**VERSION_1, f"{CPU_1}quota_us": "50000\n", f"{CPU_1}period_us": "100000\n"}, 0.5),
        ({**VERSION_2, "sys/fs/cgroup/a/cpu.max": "nonsense\n"}, 64),
    ],
)
def test_a_container_has_its_share_of_the_processors(tmp_path, files, n):
    write(tmp_path, files)
    assert processors_of(64, tmp_path) == n


@pytest.mark.parametrize(
    ("device", "features", "gives_back"),
    [
        ("0x0005", "01100101", True),
        ("0x0005", "01100001", False),
        ("0x0005", "", False),
        ("0x0001", "11111111", False),
    ],
)
def test_who_gives_memory_back_is_told(tmp_path, device, features, gives_back):
    of = "sys/bus/virtio/devices/virtio"
    write(tmp_path, {f"{of}0/device": "0x0002\n", f"{of}0/features": "11111111\n"})
    write(tmp_path, {f"{of}1/device": f"{device}\n", f"{of}1/features": f"{features}\n"})
    assert gives_memory_back(tmp_path) is gives_back
    assert ("memory" in facts_of(tmp_path)) is gives_back


def test_network_cards_are_those_that_lead_out_and_tell(tmp_path):
    card = "sys/class/net/not-there-0"
    write(
        tmp_path,
        {
            "sys/class/net/lo/operstate": "unknown",
            f"{card}/operstate": "up\n",
            f"{card}/speed": "10000\n",
            f"{card}/mtu": "9000\n",
            f"{card}/queues/rx-0/rps_cpus": "0",
            f"{card}/queues/rx-1/rps_cpus": "0",
            "sys/class/net/not-there-1/operstate": "up",
            "sys/class/net/not-there-1/speed": "-1",
            "sys/class/net/not-there-2/operstate": "down",
        },
    )
    found = nics_of(tmp_path)
    assert [(nic.name, nic.bytes_per_s, nic.mtu_bytes, nic.queues) for nic in found] == [
        ("not-there-0", 1.25e9, 9000, 2),
        ("not-there-1", None, None, None),
    ]


def test_offloads_are_named_in_words():
    text = "rx-checksumming: on\ntcp-segmentation-offload: on\ngeneric-receive-offload: on\n"
    assert offloads_in(text) == "TSO, GRO"
    assert offloads_in("") == "none"


def test_facts_tell_a_virtual_machine(tmp_path):
    write(
        tmp_path,
        {
            "proc/cpuinfo": "model name\t: Quick 3000\nflags\t\t: fpu hypervisor sse\n",
            "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        },
    )
    facts = facts_of(tmp_path)
    assert (facts["processor"], facts["virtual"]) == ("Quick 3000", "yes")
    assert facts["tcp_rmem"] == "4096 131072 6291456"
    assert facts["governor"] == "not told"
