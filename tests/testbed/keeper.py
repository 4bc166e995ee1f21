"""The first process of a bed: makes network namespaces, starts processes in them, outlives nothing.

`bed.py` starts it by ``unshare``, in a process namespace of its own, and talks to it in lines of
JSON. It ends when its input does, and removes the bed's folder, its argument. As it is process 1
there, the kernel then kills all that it started, and with the last process go the namespaces and
their interfaces: whoever started a bed may be killed at any time, and nothing stays. It runs as a
script, with the standard library alone.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
# Without checksums by the device there is no segmentation by it either.
OFFLOADS = {"tx checksum": 0x17, "generic receive": 0x2C}
BARE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}

_libc = ctypes.CDLL(None, use_errno=True)


class Keeper:
    """Resources of a bed: its namespaces by number, and what runs in them by process number."""

    def __init__(self) -> None:
        self.namespaces: list[int] = []
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def namespace(self) -> str:
        """Make a network namespace; return a path that leads to it for all within the bed."""
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        _must(_libc.unshare(CLONE_NEWNET), "unshare")
        made = os.open("/proc/self/ns/net", os.O_RDONLY)
        _must(_libc.setns(own, CLONE_NEWNET), "setns")
        os.close(own)
        self.namespaces.append(made)
        return f"/proc/1/fd/{made}"

    def write(self, namespace: int, values: dict[str, str]) -> None:
        """Write kernel settings of a namespace; those that this kernel lacks are left out."""
        with self._within(namespace):
            for name, value in values.items():
                path = Path("/proc/sys", name)
                if path.exists():
                    path.write_text(value, encoding="ascii")

    def plain_interfaces(self, namespace: int, names: list[str]) -> None:
        """Have the kernel make whole frames with whole checksums: these wires carry no others."""
        with self._within(namespace), socket.socket() as any_socket:
            for name in names:
                for what, command in OFFLOADS.items():
                    value = ctypes.create_string_buffer(struct.pack("II", command, 0))
                    request = struct.pack("16sP", name.encode(), ctypes.addressof(value))
                    try:
                        fcntl.ioctl(any_socket, SIOCETHTOOL, request)
                    except OSError as error:
                        raise OSError(f"{name}: {what} offload stays on: {error}") from error

    def run(self, namespace: int, argv: list[str], text: str = "") -> str:
        """Run a short command to its end; return what it says."""
        done = subprocess.run(
            argv,
            input=text,
            text=True,
            capture_output=True,
            check=False,
            timeout=60,
            env=BARE,
            preexec_fn=lambda: self._enter(namespace),
        )
        if done.returncode:
            raise OSError(f"{' '.join(argv)}: {done.stderr.strip()}\n{text}")
        return done.stdout

    def start(
        self,
        namespace: int,
        argv: list[str],
        stdin: str,
        stdout: str,
        stderr: str,
        env: dict[str, str],
        cwd: str,
    ) -> int:
        """Start a process, the first of a group of its own; return its number in the bed."""
        with (
            Path(stdin).open("rb") as entrance,
            Path(stdout).open("wb") as output,
            Path(stderr).open("wb") as errors,
        ):
            process = subprocess.Popen(
                argv,
                stdin=entrance,
                stdout=output,
                stderr=errors,
                env=env,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=lambda: self._enter(namespace),  # noqa: PLW1509 - no threads here
            )
        self.processes[process.pid] = process
        return process.pid

    def poll(self, pid: int) -> int | None:
        """Return a process's code; None while it runs."""
        return self.processes[pid].poll()

    def kill(self, pid: int, number: int) -> None:
        """Send a signal to a process and its children, unless it is gone."""
        if self.processes[pid].poll() is None:
            os.killpg(pid, number)

    def _enter(self, namespace: int) -> None:
        _must(_libc.setns(self.namespaces[namespace], CLONE_NEWNET), "setns")

    def _within(self, namespace: int) -> _Within:
        return _Within(self.namespaces[namespace])


class _Within:
    """This process is in a namespace, for a while."""

    def __init__(self, namespace: int) -> None:
        self.own = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.other = namespace

    def __enter__(self) -> None:
        _must(_libc.setns(self.other, CLONE_NEWNET), "setns")

    def __exit__(self, *_: object) -> None:
        _must(_libc.setns(self.own, CLONE_NEWNET), "setns")
        os.close(self.own)


def _must(code: int, what: str) -> None:
    if code < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def main() -> None:
    """Answer line by line until there are no more."""
    keeper = Keeper()
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        try:
            answer = {"answer": getattr(keeper, asked["do"])(**asked["with"])}
        except (OSError, subprocess.SubprocessError) as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    # Process 1 ignores signals that it does not handle; nothing here is to wait for a thread.
    assert threading.active_count() == 1, "forking needs a process without threads"
    try:
        main()
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)
