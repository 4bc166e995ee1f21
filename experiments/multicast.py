"""Multicast: how many streams a correlator receives, with and without; a run over a bridge.

    python experiments/multicast.py [--bridge]

The table is that of the EXPReS report (2009, section 6.2): each of n telescopes' streams is needed
with each of the others, on a host for each pair. Without multicast a stream goes to each host that
needs it: n (n - 1) come in; with it each comes once: n; so n (n - 2) are saved. For 9 telescopes
the report prints 71 pairs' streams, and 9 times 8 is 72.

With --bridge (root, network namespaces) a sender and three receivers stand at a bridge, of which
two have joined; the third counts what reaches its port all the same: without snooping; with it, but
nobody who asks for members; just after somebody has begun to ask; and later.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP, PORT = "239.1.1.1", 9000
HOSTS = ("mcs", "mca", "mcb", "mcc")
BRIDGE = "mcl"
PACKETS, EACH_S = 500, 0.004
# As long as it takes until members have answered who asks for them.
ANSWERED_S = 14.0
CLONE_NEWNET = 0x40000000


def streams(n: int) -> tuple[int, int, int, int]:
    """Return pairs of n telescopes, streams without multicast, with it, and the difference.

    >>> streams(9)
    (36, 72, 9, 63)
    """
    return n * (n - 1) // 2, n * (n - 1), n, n * (n - 2)


def table() -> None:
    """Print the table of 2 to 12 telescopes."""
    print("| telescopes | pairs | streams in, unicast | multicast | saved |")
    print("|--:|--:|--:|--:|--:|")
    for n in range(2, 13):
        print(f"| {n} | {' | '.join(map(str, streams(n)))} |")


def ip(*words: str) -> None:
    """Have iproute2 do something."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def enter(name: str) -> None:
    """Have this process, and what it opens, in a namespace."""
    number = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(number, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(number)


def opened(name: str) -> socket.socket:
    """Return a UDP socket in a namespace."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        enter(name)
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    finally:
        ctypes.CDLL(None).setns(own, CLONE_NEWNET)
        os.close(own)


def received_packets(name: str) -> int:
    """Return what the port of a host has received."""
    path = "/sys/class/net/eth9/statistics/rx_packets"
    words = ["ip", "netns", "exec", name, "cat", path]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


@contextmanager
def at_bridge(snooping: int, querier: int) -> Iterator[None]:
    """Make namespaces of `HOSTS` at a bridge, and take them away."""
    Path("/run/netns").mkdir(parents=True, exist_ok=True)
    with ExitStack() as ending:
        for name in (*HOSTS, BRIDGE):
            ip("netns", "add", name)
            ending.callback(ip, "netns", "del", name)
        options = ("mcast_snooping", str(snooping), "mcast_querier", str(querier))
        ip("-n", BRIDGE, "link", "add", "br9", "type", "bridge", *options)
        ip("-n", BRIDGE, "link", "set", "br9", "up")
        for number, name in enumerate(HOSTS, 1):
            words = ("link", "add", f"p{number}", "type", "veth", "peer", "name", "eth9")
            ip("-n", BRIDGE, *words, "netns", name)
            ip("-n", BRIDGE, "link", "set", f"p{number}", "master", "br9", "up")
            ip("-n", name, "address", "add", f"{address_of(number)}/24", "dev", "eth9")
            ip("-n", name, "link", "set", "eth9", "up")
            ip("-n", name, "route", "add", "239.0.0.0/8", "dev", "eth9")
        yield


def address_of(number: int) -> str:
    """Return the address of a host at the bridge, counted from 1."""
    return f"10.5.0.{number}"


def join(member: socket.socket, number: int) -> None:
    """Have a socket of a host at the bridge receive what is sent to the group."""
    place = socket.inet_aton(GROUP) + socket.inet_aton(address_of(number))
    member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, place)


def run(snooping: int, querier: int, wait_s: float) -> tuple[int, int, int]:
    """Send to the group; return what both members got, and what reached the third port."""
    with at_bridge(snooping, querier), ExitStack() as ending:
        members = []
        for number, name in ((2, HOSTS[1]), (3, HOSTS[2])):
            member = ending.enter_context(contextlib.closing(opened(name)))
            member.bind(("", PORT))
            join(member, number)
            member.setblocking(False)
            members.append(member)
        sender = ending.enter_context(contextlib.closing(opened(HOSTS[0])))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
        time.sleep(wait_s)
        before = received_packets(HOSTS[3])
        got = [0, 0]
        for _ in range(PACKETS):
            sender.sendto(bytes(1400), (GROUP, PORT))
            time.sleep(EACH_S)
            for number, member in enumerate(members):
                with contextlib.suppress(BlockingIOError):
                    while member.recv(2000):
                        got[number] += 1
        return got[0], got[1], received_packets(HOSTS[3]) - before


def bridge() -> None:
    """Print what reaches a port that has not joined."""
    print(f"| bridge | members got, of {PACKETS} | the port that has not joined |")
    print("|---|--:|--:|")
    for what, snooping, querier, wait_s in (
        ("no snooping", 0, 0, 3.0),
        ("snooping, nobody asks", 1, 0, 3.0),
        ("snooping, who asks has just begun", 1, 1, 1.0),
        (f"snooping, asked {ANSWERED_S:g} s before", 1, 1, ANSWERED_S),
    ):
        one, other, third = run(snooping, querier, wait_s)
        print(f"| {what} | {one}, {other} | {third} |", flush=True)


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bridge", action="store_true", help="run over a bridge, too")
    asked = parser.parse_args()
    table()
    if asked.bridge:
        print()
        bridge()


if __name__ == "__main__":
    main()
