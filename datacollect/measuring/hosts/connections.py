"""TCP, and TLS by the agent's and the pull's own code: time of processors at each end."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from datacollect.errors import TransferError
from datacollect.machine.parts import BOTH, LOOPBACK, RECEIVES, SENDS, TCP, TLS, VETH, Cost, Rate
from datacollect.measuring.hosts.processor_times import TICK_S, ProcessorTimes
from datacollect.measuring.hosts.repeats import interval_of, line_through, per_gib
from datacollect.measuring.hosts.serving import NAME, READY_S, line_of, serving_agent
from datacollect.orphans import running_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from datacollect.measuring.hosts.namespaces import Ends

# What is handed over at once: TCP in calls, as agents send files; TLS in requests for pieces, as
# pulls ask for them. The larger is the usual one.
UNITS = {TCP: ("call", (16 * 2**10, 256 * 2**10)), TLS: ("request", (2**16, 2**24))}
SEVERAL = 4
REPEATS = 5
CASES = tuple(
    (kind, size, at_once)
    for kind, (_, sizes) in UNITS.items()
    for size, at_once in ((sizes[0], 1), (sizes[1], 1), (sizes[1], SEVERAL))
)
# Buffers of the kernel are full by then, and congestion windows open.
WARM_UP_PART = 0.15
FILE_BYTES = 128 * 2**20
FILE = "bytes"
TICKET_S = 600.0
LOOK_S = 0.01


def measured_between(
    ends: Ends, seconds: float, folder: Path, cases: Sequence[tuple[str, int, int]] = CASES
) -> list[dict[str, Any]]:
    """Measure connections between two ends; return a row for each setting and repeat.

    Parameters
    ----------
    ends : Ends
    seconds : float
        For all of it.
    folder : Path
        Where the sender's file may lie.
    cases : sequence of (str, int, int)
        Kind, bytes handed over at once, connections.
    """
    each_s = seconds / (len(cases) * REPEATS)
    with _agent(ends, folder) as agent, _plain_sender(ends) as place:

        def opened(kind: str, size: int) -> _Connection:
            return _Tcp(place, size) if kind == TCP else _Tls(agent, size)

        rows = []
        with ends.at(1):
            for _ in range(REPEATS):
                for kind, size, at_once in cases:
                    row = _received(ends, partial(opened, kind, size), at_once, each_s)
                    rows.append({"kind": kind, "unit_bytes": size, "at_once": at_once, **row})
    return rows


def costs_of(
    rows: Sequence[Mapping[str, Any]], *, apart: bool, has_two: bool
) -> tuple[list[Cost], list[Rate]]:
    """Return what rows say: costs at each end where these are apart, else of both together.

    Parameters
    ----------
    rows : sequence of mapping
        As `measured_between` returns them.
    apart : bool
        Whether each end had a processor of its own, and its protocol work there.
    has_two : bool
        Whether there were two processors at all.
    """
    costs, rates = [], []
    for kind, (unit, sizes) in UNITS.items():
        of_kind = [row for row in rows if row["kind"] == kind]
        over = VETH if apart else LOOPBACK
        ends = (SENDS, RECEIVES) if apart else (BOTH,)
        costs += [_cost(of_kind, kind, end, unit, sizes, over) for end in ends]
        for at_once in (1, SEVERAL):
            seen = [
                row["n_bytes"] / row["took_s"]
                for row in of_kind
                if (row["unit_bytes"], row["at_once"]) == (sizes[1], at_once)
            ]
            if has_two:
                rates.append(Rate(kind, *interval_of(seen), at_once=at_once))
    return costs, rates


def _cost(
    rows: Sequence[Mapping[str, Any]],
    kind: str,
    end: str,
    unit: str,
    sizes: tuple[int, int],
    over: str,
) -> Cost:
    """Return the cost of a byte, and of a unit, by the line through units of two sizes."""
    columns = {SENDS: ("sender_s",), RECEIVES: ("receiver_s",), BOTH: ("sender_s", "receiver_s")}
    taken = {
        size: [
            sum(row[column] for column in columns[end]) / row["n_bytes"]
            for row in rows
            if row["unit_bytes"] == size and row["at_once"] == 1
        ]
        for size in sizes
    }
    usual = sizes[1]
    line = line_through({size: interval_of(seen).value * size for size, seen in taken.items()})
    # The line goes through the middle of the usual size; its own repeats say how far they spread.
    middle, low, high = per_gib(taken[usual])
    by_line = per_gib([line.s_per_byte]).value
    own = [row["own_s"] / row["n_bytes"] for row in rows if row["unit_bytes"] == usual]
    return Cost(
        kind,
        end,
        over,
        by_line,
        by_line * low / middle,
        by_line * high / middle,
        us_per_unit=line.s_per_unit * 1e6,
        unit=unit,
        unit_bytes=usual,
        own_s_per_gib=None if end == SENDS else per_gib(own).value,
    )


# The receiver, which also looks at the clocks -----------------------------------------------------


def _received(
    ends: Ends, opened: Callable[[], _Connection], at_once: int, seconds: float
) -> dict[str, float]:
    """Receive over so many connections for a while; return what came, and what it took."""
    times, over = ProcessorTimes(sorted(set(ends.cores))), threading.Event()
    connections: list[_Connection] = []
    failures: list[Exception] = []

    def receive() -> None:
        try:
            connection = opened()
            connections.append(connection)
            while not over.is_set():
                connection.receive()
            connection.close()
        except Exception as error:  # noqa: BLE001 - raised by who waits, whatever it is
            failures.append(error)

    def so_far() -> tuple[int, float, Mapping[int, float], float]:
        n_bytes = sum(each.received_bytes for each in connections)
        return n_bytes, time.monotonic(), times.busy_s(), time.process_time()

    threads = [threading.Thread(target=receive, daemon=True) for _ in range(at_once)]
    for thread in threads:
        thread.start()

    def wait_until(has_come: Callable[[], bool]) -> None:
        """Wait for what comes soon, but on a machine that is very busy."""
        last_s = time.monotonic() + READY_S
        while not has_come() and not failures and time.monotonic() < last_s:
            time.sleep(LOOK_S)

    wait_until(lambda: sum(each.received_bytes > 0 for each in connections) == at_once)
    time.sleep(WARM_UP_PART * seconds)
    before = so_far()
    time.sleep((1 - WARM_UP_PART) * seconds)
    wait_until(lambda: so_far()[0] > before[0])
    after = so_far()
    over.set()
    for thread in threads:
        thread.join(READY_S)
    if failures:
        raise TransferError(f"a connection failed: {failures[0]}")
    n_bytes = after[0] - before[0]
    if n_bytes <= 0:
        raise TransferError("nothing arrived in the given time; give more --seconds")
    sender, receiver = ends.cores
    # What is below a tick of the kernel's clock is not told: no work is for nothing.
    busy_s = {number: max(after[2][number] - before[2][number], TICK_S) for number in after[2]}
    return {
        "n_bytes": n_bytes,
        "took_s": after[1] - before[1],
        "sender_s": busy_s[sender],
        "receiver_s": busy_s[receiver] if receiver != sender else 0.0,
        "own_s": after[3] - before[3],
    }


class _Connection(Protocol):
    @property
    def received_bytes(self) -> int: ...

    def receive(self) -> None: ...

    def close(self) -> None: ...


class _Tcp:
    """Receives what one connection brings, as pulls do, in blocks."""

    def __init__(self, place: tuple[str, int], unit_bytes: int) -> None:
        self._socket = socket.create_connection(place, READY_S)
        self._socket.sendall(unit_bytes.to_bytes(8, "big"))
        self._block = memoryview(bytearray(unit_bytes))
        self.received_bytes = 0

    def receive(self) -> None:
        """Receive what one call brings."""
        n_bytes = self._socket.recv_into(self._block)
        if not n_bytes:
            raise TransferError("the sender has ended")
        self.received_bytes += n_bytes

    def close(self) -> None:
        self._socket.close()


class _Tls:
    """Asks an agent for pieces, two ahead, and verifies each, as pulls do."""

    def __init__(self, agent: Mapping[str, Any], unit_bytes: int) -> None:
        from datacollect.net.tls import client_context
        from datacollect.transfer.protocol.messages import Read, WireSegment
        from datacollect.transfer.sources.agent.session import connect

        self._session = connect(
            [], NAME, agent["place"], client_context(), agent["fingerprint"], timeout_s=READY_S
        )
        [entry] = self._session.inventory(agent["ticket"]).files
        size = min(unit_bytes, FILE_BYTES)
        self._reads = [
            Read((WireSegment(entry, at, size),)) for at in range(0, FILE_BYTES - size + 1, size)
        ]
        self._buffer = memoryview(bytearray(size))
        self._asked = 0
        for _ in range(2):
            self._ask()

    def _ask(self) -> None:
        self._session.send_read(self._reads[self._asked % len(self._reads)])
        self._asked += 1

    @property
    def received_bytes(self) -> int:
        """All bytes so far."""
        return self._session.received_bytes

    def receive(self) -> None:
        """Receive a piece, ask for another, verify it."""
        from blake3 import blake3

        answer = self._session.receive_into(self._buffer)
        self._ask()
        if blake3(self._buffer[: answer.n_bytes]).digest() != answer.blake3:
            raise TransferError("a piece has not the hash that its sender names")

    def close(self) -> None:
        self._session.close()


# The sender --------------------------------------------------------------------------------------


@contextmanager
def _plain_sender(ends: Ends) -> Iterator[tuple[str, int]]:
    """Have a process at the first end that sends as much as it can; yield where it listens."""
    with (
        ends.at(0),
        running_program([sys.executable, "-m", __name__, ends.addresses[0]]) as process,
    ):
        port = int(line_of(process))
        with ends.at(1):
            yield ends.addresses[0], port


def send_for_ever(address: str) -> None:
    """Send to whoever connects, in calls as large as they ask for, until they end."""
    with socket.create_server((address, 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_send, args=(connection,), daemon=True).start()


def _send(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        size = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
        block = bytes(min(size, 2**26))
        while True:
            connection.sendall(block)


@contextmanager
def _agent(ends: Ends, folder: Path) -> Iterator[dict[str, Any]]:
    """Have an agent at the first end that serves a file; yield what its clients need."""
    from datacollect.net.keys import PrivateKey
    from datacollect.net.tickets import Ticket, sign_ticket

    key = PrivateKey(os.urandom(32))
    served = folder / "served"
    served.mkdir()
    with (served / FILE).open("wb") as file:
        for _ in range(FILE_BYTES // 2**20):
            file.write(os.urandom(2**20))
    with (
        ends.at(0),
        serving_agent(folder, served.name, ends.addresses[0], key.public) as facts,
    ):
        now_s = time.time()
        ticket = Ticket(
            key.public,
            NAME,
            "source",
            "calibrate",
            issued_s=now_s,
            expires_s=now_s + TICKET_S,
            most_sockets=1000,
        )
        port = int(facts["url"].rpartition(":")[2])
        yield {
            "place": (ends.addresses[0], port),
            "fingerprint": facts["fingerprint"],
            "ticket": sign_ticket(ticket, key),
        }


if __name__ == "__main__":
    send_for_ever(sys.argv[1])
