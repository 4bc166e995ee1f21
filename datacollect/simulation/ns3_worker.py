"""The process that holds ns-3: it loads it once, then forks for every run.

Run as ``python -m datacollect.simulation.ns3_worker FD``, where FD is a Unix socket. ns-3 is
GPL-2.0 software; only this process ever loads it. Children leave with ``os._exit``, so an abort
within ns-3 ends a run and nothing else.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing.spawn
import os
import pickle
import resource
import select
import signal
import socket
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.control import (
    Close,
    ConnectionClosed,
    ConnectionHasRoom,
    ConnectionOpened,
    ConnectionStalled,
    Open,
    RangeArrived,
    Send,
    Timer,
    WakeMe,
)
from datacollect.errors import SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.control import Controller, Decision, Event

HEADER = Path(__file__).with_name("collect.h")

# Libraries come before headers, and only these: loading all of ns-3 takes 6–26 s and 650 MB.
LIBRARIES = (
    "core",
    "network",
    "stats",
    "bridge",
    "mobility",
    "traffic-control",
    "internet",
    "point-to-point",
)

# As collect.h numbers them.
OPENED, STALLED, CLOSED, ARRIVED, ROOM, TIMER = range(6)
EVENTS, TICK, LIMIT, COOLED, NOTHING = range(5)

HEARTBEAT_S = 0.2

# A transfer that makes cling compile all that a run calls, before the first fork.
REHEARSAL = """seed 1
nodes 3
wire 0 1 1e6 0.001 10 1
wire 1 0 1e6 0.001 10 0
wire 1 2 1e6 0.001 10 3
wire 2 1 1e6 0.001 10 2
target 0 -1 1 3
target 1 0 -1 3
target 2 0 2 -1
host 0 20000
host 1 0
host 2 0
background 0 0 2 0 0 0 0
background 1 0 2 0 1e5 0.01 0.01
run 2 0.1 10 1 1 10000 500 1000
"""


def send_message(channel: socket.socket, message: object) -> None:
    """Send a pickled message, its length first."""
    data = pickle.dumps(message)
    channel.sendall(struct.pack("!Q", len(data)) + data)


def receive_message(channel: socket.socket) -> Any:
    """Return the next message; raise EOFError where there is none."""
    (n,) = struct.unpack("!Q", _receive(channel, 8))
    return pickle.loads(_receive(channel, n))


def _receive(channel: socket.socket, n: int) -> bytes:
    data = bytearray()
    while len(data) < n:
        part = channel.recv(min(n - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def load_ns3() -> Any:
    """Return the compiled namespace of ``collect.h``."""
    cppyy: Any = importlib.import_module("cppyy")
    importlib.import_module("libcppyy").AddSmartPtrType("Ptr")
    root = Path(cppyy.__file__).parents[1] / "ns3"
    cppyy.add_library_path(str(root / "lib64"))
    cppyy.add_include_path(str(root / "include"))
    for name in LIBRARIES:
        cppyy.load_library(str(root / "lib64" / f"libns3.44-{name}.so"))
    cppyy.cppdef(HEADER.read_text(encoding="utf-8"))
    return cppyy.gbl.collect


# A run ---------------------------------------------------------------------------------------


class Driver:
    """Carry out a controller's decisions in one simulation, and keep the log of connections.

    Parameters
    ----------
    simulation : collect::Simulation
    controller : Controller
    hosts : list of str
        By number.
    backlog_bytes : mapping of str to int
    apart : set of pairs of str
        Hosts that cannot reach each other.
    """

    def __init__(
        self,
        simulation: Any,
        controller: Controller,
        hosts: list[str],
        backlog_bytes: Mapping[str, int],
        apart: set[tuple[str, str]],
    ) -> None:
        self._simulation = simulation
        self._controller = controller
        self._hosts = hosts
        self._number = {name: i for i, name in enumerate(hosts)}
        self._backlog_bytes = backlog_bytes
        self._apart = apart
        self._ends: dict[int, tuple[str, str]] = {}
        self._closed: set[int] = set()
        self.log: list[tuple[Any, ...]] = []

    def run(self, beat: Callable[[], None]) -> str:
        """Simulate until all is collected; return why it stopped, "" if it is complete."""
        simulation = self._simulation
        simulation.WarmUp()
        self._apply(self._controller.start())
        while not simulation.Complete():
            if getattr(self._controller, "finished", False):
                return "the controller has finished"
            if simulation.Idle() and not self._handle_events():
                return "nothing left to do: no data queued, no connection opening, no timer set"
            reason = simulation.Run()
            if reason == EVENTS:
                self._handle_events()
            elif reason == TICK:
                beat()
            elif reason == LIMIT:
                self._handle_events()
                return "" if simulation.Complete() else "time limit"
        self._handle_events()
        return ""

    def cool_down(self, cool_down_s: float, beat: Callable[[], None]) -> None:
        """End all connections and let the background go on."""
        for connection in sorted(self._ends.keys() - self._closed):
            self._simulation.Close(connection, True)
        self._handle_events()
        self._simulation.CoolDown(cool_down_s)
        while (reason := self._simulation.Run()) not in (COOLED, NOTHING):
            if reason == EVENTS:
                self._simulation.TakeEvents()
            beat()

    def _handle_events(self) -> bool:
        """Hand all that happened to the controller; True if anything had."""
        any_event = False
        while events := list(self._simulation.TakeEvents()):
            any_event = True
            for raw in events:
                event = self._event(raw)
                if not self._simulation.Complete():
                    self._apply(self._controller.handle(event))
        return any_event

    def _event(self, raw: Any) -> Event:
        kind, time_s, connection = raw.kind, raw.time_s, raw.connection
        if kind == ARRIVED:
            return RangeArrived(
                time_s,
                connection,
                self._hosts[raw.host],
                self._hosts[raw.source],
                raw.offset,
                raw.bytes,
            )
        if kind == ROOM:
            return ConnectionHasRoom(time_s, connection, raw.bytes)
        if kind == TIMER:
            return Timer(time_s, raw.offset)
        if kind == OPENED:
            self.log.append(("opened", connection, time_s))
            return ConnectionOpened(time_s, connection)
        if kind == STALLED:
            self.log.append(("stalled", connection))
            return ConnectionStalled(time_s, connection)
        self.log.append(("closed", connection, time_s))
        self._closed.add(connection)
        return ConnectionClosed(time_s, connection)

    def _apply(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            match decision:
                case Send(connection, source, offset, n):
                    self._check_range(decision)
                    self._simulation.Send(connection, self._number[source], offset, n)
                case Open(connection, from_host, to_host, window, pace):
                    self._check_open(decision)
                    self._ends[connection] = (from_host, to_host)
                    now_s = self._simulation.Now()
                    self.log.append(("asked", connection, from_host, to_host, now_s))
                    tail, head = self._number[from_host], self._number[to_host]
                    self._simulation.Open(connection, tail, head, window or 0, pace or 0.0)
                case Close(connection, drop):
                    self._check_known(decision)
                    self._simulation.Close(connection, drop)
                case WakeMe(time_s, tag):
                    if not time_s >= 0:
                        self._refuse(decision, "time_s must be >= 0")
                    self._simulation.WakeAt(time_s, tag)
                case _:
                    self._refuse(decision, "not a decision")

    def _check_open(self, open_: Open) -> None:
        pair = (open_.from_host, open_.to_host)
        for host in pair:
            if host not in self._number:
                self._refuse(open_, f"host {host!r} is not in the network")
        if pair in self._apart or pair[0] == pair[1]:
            self._refuse(open_, f"no route between {pair[0]!r} and {pair[1]!r}")
        if open_.connection in self._ends:
            self._refuse(open_, "its number has been used before")
        if open_.pace_bytes_per_s is not None and not open_.pace_bytes_per_s > 0:
            self._refuse(open_, "pace_bytes_per_s must be > 0")

    def _check_range(self, send: Send) -> None:
        self._check_known(send)
        backlog = self._backlog_bytes.get(send.source, 0)
        end = send.offset_bytes + send.n_bytes
        if send.n_bytes < 1 or send.offset_bytes < 0 or end > backlog:
            self._refuse(send, f"the range must lie within the source's {backlog} bytes")

    def _check_known(self, decision: Send | Close) -> None:
        if decision.connection not in self._ends:
            self._refuse(decision, "this connection was never opened")

    def _refuse(self, decision: object, why: str) -> None:
        raise SimulationError(f"the controller decided {decision}: {why}")


def simulate(collect: Any, request: Mapping[str, Any], beat: Callable[..., None]) -> dict[str, Any]:
    """Carry out one request; return plain data."""
    simulation = collect.Simulation(request["scenario"])
    driver = Driver(
        simulation,
        request["controller"],
        request["hosts"],
        request["backlog_bytes"],
        request["apart"],
    )

    def report() -> None:
        beat(simulation.Now(), simulation.Collected())

    stopped = driver.run(report)
    if not stopped:
        driver.cool_down(request["cool_down_s"], report)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "stopped": stopped,
        "end_s": simulation.Now(),
        "log": driver.log,
        "text": str(simulation.Results()),
        "events": int(simulation.Events()),
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_memory_bytes": usage.ru_maxrss * 1024,
        "answer": getattr(request["controller"], "answer", None),
    }


def _child(collect: Any, channel: socket.socket, stderr: int) -> None:
    os.dup2(stderr, 2)
    # cling would have a debugger print its stacks, for seconds; a core of 200 MB helps nobody.
    for number in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    last = time.monotonic()

    def beat(time_s: float, collected_bytes: int) -> None:
        # Also finds out whether anybody still waits for the result.
        nonlocal last
        if time.monotonic() - last >= HEARTBEAT_S:
            last = time.monotonic()
            send_message(channel, ("progress", time_s, collected_bytes))

    try:
        main_script = receive_message(channel)
        if main_script is not None:
            multiprocessing.spawn.prepare({"init_main_from_path": main_script})
        request = receive_message(channel)
        send_message(channel, ("result", simulate(collect, request, beat)))
    except (BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:  # noqa: BLE001 - a controller may raise anything
        kind = "refused" if isinstance(error, SimulationError) else "failed"
        send_message(channel, (kind, str(error) or repr(error), traceback.format_exc()))


# The process ---------------------------------------------------------------------------------


def _rehearse(collect: Any) -> None:
    """Compile what cling leaves until it is called."""

    class Rehearsal:
        def start(self) -> list[Decision]:
            opens = [Open(0, "a", "b", 5000, 1e6), Open(1, "b", "c")]
            sends = [Send(hop, "a", 0, 20000) for hop in (0, 1)]
            return [*opens, *sends, WakeMe(0.01, 1)]

        def handle(self, event: Event) -> list[Decision]:
            return []

    hosts = ["a", "b", "c"]
    simulation = collect.Simulation(REHEARSAL)
    driver = Driver(simulation, Rehearsal(), hosts, {"a": 20000}, set())
    driver.run(lambda: None)
    driver.cool_down(0.1, lambda: None)
    str(simulation.Results())
    simulation.__destruct__()


def _end(runs: Mapping[int, socket.socket]) -> None:
    """End runs that nobody waits for: between two heartbeats one may compute for minutes."""
    for pid in runs:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def serve(control: socket.socket) -> None:
    """Load ns-3, then fork for every run that is asked for, until the other end is closed."""
    collect = load_ns3()
    _rehearse(collect)
    send_message(control, "ready")
    children: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control], [], [], 0.02 if children else None)
        if ready:
            _, fds, _, _ = socket.recv_fds(control, 1, 2)
            if len(fds) < 2:
                _end(children)
                return
            channel, stderr = socket.socket(fileno=fds[0]), fds[1]
            pid = os.fork()
            if pid == 0:
                try:
                    control.close()
                    for other in children.values():
                        other.close()
                    _child(collect, channel, stderr)
                finally:
                    os._exit(0)
            os.close(stderr)
            children[pid] = channel
        while children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            channel = children.pop(pid)
            if status:
                with contextlib.suppress(OSError):
                    send_message(channel, ("died", os.waitstatus_to_exitcode(status)))
            channel.close()


def main() -> None:
    """Serve the socket whose number is the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this decides when it ends
    with socket.socket(fileno=int(sys.argv[1])) as control:
        serve(control)
    os._exit(0)  # without running ns-3's static destructors


if __name__ == "__main__":
    main()
