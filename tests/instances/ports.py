"""A port of loopback for who has to be told one beforehand; and one where nobody listens."""

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The kernel gives ports from this range to whoever connects, at any moment.
GIVEN_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST, LAST = 10_240, 32_767
# Workers of one test run must not draw the same numbers, whatever seeds tests set.
CHANCE = random.SystemRandom()


def free_port() -> int:
    """Return a port that nobody listens on, and that nobody who connects is given meanwhile."""
    last = LAST
    with suppress(OSError):
        last = min(LAST, int(GIVEN_OUT.read_text().split()[0]) - 1)
    for _ in range(1000):
        port = CHANCE.randint(FIRST, last) if last > FIRST else 0
        # Bound, never listening: a program that another thread starts meanwhile holds a copy of
        # this socket until its exec, and a copy that listens would keep the port taken.
        with suppress(OSError), socket.socket() as bound:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(("127.0.0.1", port))
            return int(bound.getsockname()[1])
    raise AssertionError("no port is free")


@contextmanager
def closed_port() -> Iterator[int]:
    """Hold a port that nobody listens on, nor is given: who connects there is refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", free_port()))
        yield held.getsockname()[1]
