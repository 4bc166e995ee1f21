"""The process that holds ns-3: it loads it once, then forks for every run.

Run as ``python -m datacollect.simulation.ns3.worker FD``, where FD is one end of a pipe that goes
in both directions: it reports when ns-3 is loaded, and receives, for every run, the end of another
such pipe and a file for what ns-3 says on stderr. ns-3 is GPL-2.0 software; only this process ever
loads it. Children leave with ``os._exit``, so an abort within ns-3 ends a run and nothing else.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing.spawn
import os
import resource
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.control.controller import Controller
from datacollect.control.decisions import Open, Send, WakeMe
from datacollect.errors import SimulationError
from datacollect.simulation.ns3.driver import Ns3Driver
from datacollect.simulation.ns3.messages import (
    Died,
    Heartbeat,
    RunFailed,
    RunRefused,
    RunRequest,
    RunResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.decisions import Decision
    from datacollect.control.events import Event
    from datacollect.simulation.run import OnProgress

# The C++ program; its headers include each other by this path below this folder.
HEADER = Path(__file__).parent / "collect" / "simulation.h"

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


def load_ns3() -> Any:
    """Return the C++ program's namespace, compiled."""
    cppyy: Any = importlib.import_module("cppyy")
    importlib.import_module("libcppyy").AddSmartPtrType("Ptr")
    root = Path(cppyy.__file__).parents[1] / "ns3"
    cppyy.add_library_path(str(root / "lib64"))
    for folder in (root / "include", HEADER.parents[1]):
        cppyy.add_include_path(str(folder))
    for name in LIBRARIES:
        cppyy.load_library(str(root / "lib64" / f"libns3.44-{name}.so"))
    cppyy.include(str(HEADER.relative_to(HEADER.parents[1])))
    return cppyy.gbl.collect


class Rehearsal(Controller):
    """Decides whatever a controller can, and watches."""

    watches_every_s = 0.01

    def start(self) -> list[Decision]:
        """Relay, with and without a window and a pace, and over a chain."""
        opens = [Open(0, ("a", "b"), 5000, 1e6), Open(1, ("b", "c")), Open(2, ("a", "b", "c"))]
        sends = [Send(connection, "a", 0, 20000) for connection in (0, 1, 2)]
        return [*opens, *sends, WakeMe(0.01, 1)]

    def handle(self, event: Event) -> list[Decision]:
        """Nothing is left to decide."""
        return []


def rehearse(collect: Any) -> None:
    """Have cling compile what it leaves until it is called."""
    simulation = collect.Simulation(REHEARSAL)
    driver = Ns3Driver(simulation, Rehearsal(), ["a", "b", "c"], {"a": 20000}, set())
    driver.run(lambda: None)
    driver.cool_down(0.1, lambda: None)
    str(simulation.Results())
    simulation.__destruct__()


# A run ---------------------------------------------------------------------------------------


def simulate(collect: Any, request: RunRequest, beat: OnProgress) -> RunResult:
    """Carry out one request."""
    simulation = collect.Simulation(request.scenario)
    driver = Ns3Driver(
        simulation,
        request.controller,
        request.hosts,
        request.backlog_bytes,
        request.apart,
        request.plan_remaining,
    )

    def report() -> None:
        beat(simulation.Now(), simulation.Collected())

    stopped = driver.run(report)
    if not stopped:
        driver.cool_down(request.cool_down_s, report)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return RunResult(
        stopped=stopped,
        end_s=simulation.Now(),
        log=driver.log,
        text=str(simulation.Results()),
        events=int(simulation.Events()),
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_memory_bytes=usage.ru_maxrss * 1024,
        answer=request.controller.answer,
    )


def run_child(collect: Any, channel: Connection, stderr: int) -> None:
    """Receive a request, carry it out, and send what came of it."""
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
            channel.send(Heartbeat(time_s, collected_bytes))

    try:
        main_script, arguments = channel.recv()
        if main_script is not None:
            # The script may look at its arguments as it is imported.
            multiprocessing.spawn.prepare(
                {"sys_argv": arguments, "init_main_from_path": main_script}
            )
        channel.send(simulate(collect, channel.recv(), beat))
    except (BrokenPipeError, ConnectionResetError):
        return
    except SimulationError as error:
        channel.send(RunRefused(str(error)))
    except Exception as error:  # noqa: BLE001 - a controller may raise anything
        channel.send(RunFailed(str(error) or repr(error), traceback.format_exc()))


# The process ---------------------------------------------------------------------------------


def serve(control: Connection) -> None:
    """Load ns-3, then fork for every run that is asked for, until the other end is closed."""
    collect = load_ns3()
    rehearse(collect)
    control.send("ready")
    children: dict[int, Connection] = {}
    while True:
        if wait([control], 0.02 if children else None):
            try:
                channel, stderr = Connection(recv_handle(control)), recv_handle(control)
            except (EOFError, OSError):
                _end(children)
                return
            pid = os.fork()
            if pid == 0:
                try:
                    control.close()
                    for other in children.values():
                        other.close()
                    run_child(collect, channel, stderr)
                finally:
                    os._exit(0)
            os.close(stderr)
            children[pid] = channel
        _bury(children)


def _end(children: Mapping[int, Connection]) -> None:
    """End runs that nobody waits for: between two heartbeats one may compute for minutes."""
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _bury(children: dict[int, Connection]) -> None:
    """Let go of runs that have ended; say so of those that could not say it themselves."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        with children.pop(pid) as channel, contextlib.suppress(OSError):
            if status:
                channel.send(Died(os.waitstatus_to_exitcode(status)))


def main() -> None:
    """Serve the pipe whose number is the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this decides when it ends
    with Connection(int(sys.argv[1])) as control:
        serve(control)
    os._exit(0)  # without running ns-3's static destructors


if __name__ == "__main__":
    main()
