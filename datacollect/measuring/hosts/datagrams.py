"""Datagrams: what each takes of a processor, and each byte of it, sent and received."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections import defaultdict
from importlib.resources import files
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.machine.parts import GIB, RECEIVES, SENDS, UDP, Cost
from datacollect.measuring.hosts.repeats import Line, interval_of, line_through

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

# A line through these two says what all between them take, within a few parts in a hundred.
SMALL, LARGE = 64, 8192
SIZES = (64, 256, 512, 1024, 1472, 2048, 4096, 8192)
BURST = 64
# The least of so many bursts: others only ever add to what one takes.
BURSTS = 40
USUAL_BYTES = 1472
RECEIVE_BUFFER_BYTES = 4 * 2**20
COMPILERS = ("cc", "gcc", "clang")
PATIENCE_S = 30.0

# Of each size, nanoseconds that a packet took to send and to receive, in each burst.
Bursts = dict[int, list[tuple[float, float]]]


def compiled(folder: Path) -> Path | None:
    """Return the program, compiled into a folder; None where no compiler makes one."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return None
    source = files(__package__).joinpath("datagrams.c").read_bytes()
    program = folder / "datagrams"
    done = subprocess.run(
        [compiler, "-O2", "-x", "c", "-o", str(program), "-"],
        input=source,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return program if done.returncode == 0 else None


def bursts_of(lines: Iterable[str]) -> Bursts:
    """Return what the program's lines say."""
    found: Bursts = defaultdict(list)
    for line in lines:
        size, sent_ns, received_ns = line.split()
        found[int(size)].append((float(sent_ns), float(received_ns)))
    return dict(found)


def run_program(words: Sequence[str], seconds: float) -> Bursts:
    """Run the program; return what each burst took.

    Raises
    ------
    TransferError
        It fails, or does not end.
    """
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=seconds + PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TransferError(f"udp: {error}") from None
    if done.returncode != 0:
        raise TransferError(f"udp: {done.stderr.strip() or f'code {done.returncode}'}")
    return bursts_of(done.stdout.splitlines())


def bursts_from_python(seconds: float) -> Bursts:
    """Measure without the program: each call of Python's adds its own time."""
    found: Bursts = defaultdict(list)
    buffer = bytearray(65_536)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        receiver.settimeout(1.0)
        receiver.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            for size in SIZES:
                data = memoryview(buffer)[:size]
                begin = time.thread_time_ns()
                for _ in range(BURST):
                    sender.send(data)
                sent = time.thread_time_ns()
                for _ in range(BURST):
                    receiver.recv_into(buffer)
                received = time.thread_time_ns()
                found[size].append(((sent - begin) / BURST, (received - sent) / BURST))
    return dict(found)


def line_of(bursts: Mapping[int, Sequence[tuple[float, float]]], end: int) -> Line:
    """Return the line through the least of two sizes; end 0 sends, 1 receives."""
    least_s = {size: min(burst[end] for burst in bursts[size]) * 1e-9 for size in (SMALL, LARGE)}
    return line_through(least_s)


def costs_of(bursts: Mapping[int, Sequence[tuple[float, float]]], over: str) -> list[Cost]:
    """Return what datagrams cost, from as many bursts as there are: the least of `BURSTS` each."""
    n_bursts = min(map(len, bursts.values()), default=0)
    starts = range(0, max(n_bursts - BURSTS + 1, 1), BURSTS)
    costs = []
    for number, end in enumerate((SENDS, RECEIVES)):
        parts = [
            line_of({size: each[at : at + BURSTS] for size, each in bursts.items()}, number)
            for at in starts
            if n_bursts
        ]
        per_byte = interval_of([line.s_per_byte * GIB for line in parts])
        per_unit = interval_of([line.s_per_unit * 1e6 for line in parts])
        costs.append(
            Cost(
                UDP,
                end,
                over,
                *per_byte,
                us_per_unit=per_unit.value,
                low_us_per_unit=per_unit.low,
                high_us_per_unit=per_unit.high,
                unit="packet",
                unit_bytes=USUAL_BYTES,
            )
        )
    return costs
