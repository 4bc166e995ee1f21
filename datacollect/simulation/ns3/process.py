"""Starting the process that holds ns-3, and having it run something."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
from importlib import metadata
from multiprocessing import Pipe
from multiprocessing.reduction import send_handle
from typing import IO, TYPE_CHECKING

from datacollect.errors import SimulationError
from datacollect.installation import command_for_extra
from datacollect.simulation.ns3.messages import Died, Heartbeat, RunFailed, RunRefused, RunResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.simulation.ns3.messages import RunRequest
    from datacollect.simulation.run import OnProgress

NS3_VERSION = "3.44.post0"

# Loading takes about 3 s; a busy machine may need a multiple.
START_TIMEOUT_S = 120.0


def check_installed() -> None:
    """Raise unless the one version of ns-3 is there whose results we know.

    Raises
    ------
    SimulationError
        It is not, with the command that installs it.
    """
    needs = "it needs a C++ compiler, 500 MB and about 75 s"
    if any(importlib.util.find_spec(name) is None for name in ("ns3", "cppyy")):
        raise SimulationError(f"ns-3 is not installed: {command_for_extra('ns3')} ({needs})")
    version = metadata.version("ns3")
    if version != NS3_VERSION:
        raise SimulationError(
            f"ns3 must be version {NS3_VERSION}, got {version}; versions differ in their results: "
            f"{command_for_extra('ns3')}"
        )


class Ns3Process:
    """A process that has loaded ns-3 and forks for every run."""

    def __init__(self) -> None:
        check_installed()
        self._lock = threading.Lock()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._control, theirs = Pipe()
        # What the caller can import, controllers among it, the worker can.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "datacollect.simulation.ns3.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches us only
            )
        try:
            if not self._control.poll(START_TIMEOUT_S):
                raise TimeoutError("timed out")
            self._control.recv()
        except (EOFError, OSError) as error:
            words = _last_words(self._stderr)
            self.stop()
            raise SimulationError(f"ns-3 could not be started ({error!r}); {words}") from error

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """True while the process is there."""
        return self._process.poll() is None

    def run(self, request: RunRequest, what: str, progress: OnProgress | None = None) -> RunResult:
        """Have a request carried out.

        Raises
        ------
        SimulationError
            The run failed; the message begins with `what`.
        """
        ours, theirs = Pipe()
        with ours, tempfile.TemporaryFile() as stderr:
            with _alive(what, stderr):
                with theirs, self._lock:
                    send_handle(self._control, theirs.fileno(), self.pid)
                    send_handle(self._control, stderr.fileno(), self.pid)
                ours.send((_main_script(request), sys.argv))
                ours.send(request)
            while True:
                with _alive(what, stderr):
                    message = ours.recv()
                match message:
                    case Heartbeat(time_s, collected_bytes):
                        if progress is not None:
                            progress(time_s, collected_bytes)
                    case RunResult():
                        return message
                    case _:
                        raise _failure(what, message, stderr)

    def stop(self) -> None:
        """End the process; runs end by themselves."""
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()


def _main_script(request: RunRequest) -> str | None:
    """Return the script to load for its controller, as multiprocessing does, if it has one."""
    if type(request.controller).__module__ != "__main__":
        return None
    path: str | None = getattr(sys.modules["__main__"], "__file__", None)
    return None if path is None else os.path.abspath(path)  # noqa: PTH100 - no symlinks resolved


def _failure(
    what: str, message: RunRefused | RunFailed | Died, stderr: IO[bytes]
) -> SimulationError:
    match message:
        case RunRefused(words):
            return SimulationError(f"{what}: {words}")
        case RunFailed(words, traceback):
            error = SimulationError(f"{what}: the controller or engine failed: {words}")
            error.add_note(traceback)
            return error
        case Died(code):
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return SimulationError(f"{what}: ns-3 ended with {how}; {_last_words(stderr)}")


@contextlib.contextmanager
def _alive(what: str, stderr: IO[bytes]) -> Iterator[None]:
    """Say so where the process is gone."""
    try:
        yield
    except (EOFError, OSError) as error:
        words = _last_words(stderr)
        raise SimulationError(f"{what}: the process of ns-3 ended; {words}") from error


def _last_words(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    words = stderr.read().decode(errors="replace").strip()
    return f"its last output: {words[-1000:]}" if words else "it printed nothing"


_worker: tuple[int, Ns3Process] | None = None
_start = threading.Lock()


def worker() -> Ns3Process:
    """Return this process's worker; start it when there is none."""
    global _worker  # noqa: PLW0603 - one per process, however many runs
    with _start:
        if _worker is None or _worker[0] != os.getpid() or not _worker[1].runs:
            _worker = (os.getpid(), Ns3Process())
            atexit.register(_stop, *_worker)
        return _worker[1]


def _stop(pid: int, started: Ns3Process) -> None:
    if pid == os.getpid():
        started.stop()
