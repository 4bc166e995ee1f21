"""Network namespaces for two ends, with a wire between them, each on a processor of its own.

They last as long as a process in them. Over loopback the receiver's protocol work is done on the
sender's processor, by soft interrupts that nobody is charged for; between namespaces the kernel is
told to do it on the receiver's (receive steering), so that times of processors are times of ends.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Iterator

CLONE_NEWNET = 0x40000000
OWN_NAMESPACE = Path("/proc/self/ns/net")
ADDRESSES = ("10.213.77.1", "10.213.77.2")
LOOPBACK_ADDRESS = "127.0.0.1"
# As long as packets over loopback: one call to send is one packet, whatever its size.
MTU_BYTES = "65535"
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Ends:
    """The namespaces, addresses and processors of two ends.

    Attributes
    ----------
    namespaces : tuple of str
        Paths that lead to them; none where both ends are here.
    addresses : tuple of str
    cores : tuple of int
    """

    namespaces: tuple[str, ...]
    addresses: tuple[str, str]
    cores: tuple[int, int]

    @contextmanager
    def at(self, end: int) -> Iterator[None]:
        """Be at an end for a while: what is started meanwhile stays there."""
        own, cores = os.open(OWN_NAMESPACE, os.O_RDONLY), os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {self.cores[end]})
            if self.namespaces:
                _enter(self.namespaces[end])
            yield
        finally:
            _must(_libc().setns(own, CLONE_NEWNET), "setns")
            os.close(own)
            os.sched_setaffinity(0, cores)


def made_ends(cores: tuple[int, int], *, apart: bool) -> Ends:
    """Make two namespaces with a wire between them; unless they are apart, both ends are here."""
    if not apart:
        return Ends((), (LOOPBACK_ADDRESS, LOOPBACK_ADDRESS), cores)
    paths = []
    for _ in ADDRESSES:
        _must(_libc().unshare(CLONE_NEWNET), "unshare")
        paths.append(f"/proc/{os.getpid()}/fd/{os.open(OWN_NAMESPACE, os.O_RDONLY)}")
    ends = Ends(tuple(paths), ADDRESSES, cores)
    _enter(paths[0])
    _ip("link", "add", "end0", "type", "veth", "peer", "name", "end1", "netns", paths[1])
    for number, address in enumerate(ADDRESSES):
        _enter(paths[number])
        name = f"end{number}"
        _ip("link", "set", "lo", "up")
        _ip("address", "add", f"{address}/24", "dev", name)
        _ip("link", "set", name, "mtu", MTU_BYTES, "up")
        _steer(name, cores[number])
    return ends


def _steer(name: str, core: int) -> None:
    """Have the kernel do on this end's processor what is to be done for what comes in."""
    # What /sys shows of networks is that of who has mounted it.
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "sysfs", "sys", folder], check=False).returncode == 0:
            try:
                queues = Path(folder, "class/net", name, "queues").glob("rx-*/rps_cpus")
                words = -(-(core + 1) // 32)
                digits = f"{1 << core:0{8 * words}x}"
                mask = ",".join(digits[i : i + 8] for i in range(0, len(digits), 8))
                for queue in queues:
                    queue.write_text(mask, encoding="ascii")
            finally:
                subprocess.run(["umount", folder], check=False)
        else:
            raise TransferError(
                "receive steering cannot be set: the network namespace has no /sys of its own"
            )


def _ip(*words: str) -> None:
    done = subprocess.run(
        ["ip", *words], capture_output=True, text=True, check=False, env={"PATH": SYSTEM_PATH}
    )
    if done.returncode != 0:
        raise TransferError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _enter(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        _must(_libc().setns(number, CLONE_NEWNET), "setns")
    finally:
        os.close(number)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _must(code: int, what: str) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
