"""Runs of the program, with a fault or without: started, waited for, ended."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults.time_limits import CLEAN_TRIES, Waiting, carried_out, limit_s
from faults.world import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from faults.world import Program, World

HERE = Path(__file__).resolve().parent
# A run that has not ended by then may be stuck: with the limits of the collection seconds are
# enough. What exceeds any of these is tried again with longer ones; see `time_limits`.
LIMIT_S = 40.0
ATTACHED_WITHIN_S = 20.0
STUCK = "stuck"
LISTS_MODULES = (
    "import atexit, os, sys\n"
    "def _write():\n"
    "    with open(os.environ['FAULTS_MODULES'], 'w') as file:\n"
    "        file.write('\\n'.join(m for m in sys.modules if m != '__main__'))\n"
    "atexit.register(_write)\n"
)


@dataclass(frozen=True)
class Ended:
    """End of a run.

    Attributes
    ----------
    code : int or str
        Exit code, negative for a signal; ``"stuck"`` where it had to be ended.
    stdout, stderr : str
    took_s : float
    """

    code: int | str
    stdout: str
    stderr: str
    took_s: float

    def answer(self) -> dict[str, Any] | None:
        """Return the object that it printed; None where it printed none."""
        try:
            found = json.loads(self.stdout)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


@dataclass
class Running:
    """A run under way."""

    pid: int
    folder: Path
    begun_s: float
    tracer: subprocess.Popen | None = None


@dataclass
class Zygote:
    """Makes runs of the program that begin at once; see `zygote.py`.

    Parameters
    ----------
    program : Program
    modules : iterable of str
        What a pull imports; it is imported beforehand.
    """

    program: Program
    modules: Iterable[str] = ()
    _process: subprocess.Popen = field(init=False)

    def __post_init__(self) -> None:
        self._process = subprocess.Popen(
            [self.program.python, str(HERE / "zygote.py")],
            env=self.program.environment(),
            cwd=NOWHERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        said = self._ask({"import": [*self.modules]})
        # Copies of a process with several threads would lack them, and hold their locks.
        assert not said["threaded"], f"{said['threaded']}: start threads when they are imported"

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        with suppress(OSError, ValueError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def start(
        self,
        folder: Path,
        arguments: Iterable[str],
        *,
        fault: dict[str, Any] | None = None,
        tracer: Iterable[str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> Running:
        """Begin a run.

        Parameters
        ----------
        folder : Path
            Where its streams are kept, as ``stdout`` and ``stderr``.
        arguments : iterable of str
            Of the command line.
        fault : dict, optional
            For the shim.
        tracer : iterable of str, optional
            Command line of a tracer, which attaches to it before it begins.
        """
        folder.mkdir(parents=True, exist_ok=True)
        task = {
            "arguments": [*arguments],
            "stdout": str(folder / "stdout"),
            "stderr": str(folder / "stderr"),
            "waits": tracer is not None,
            "fault": fault,
            "environment": environment or {},
        }
        begun_s = time.monotonic()
        pid = self._ask({"fork": task})["pid"]
        running = Running(pid, folder, begun_s)
        if tracer is not None:
            try:
                running.tracer = attached([*tracer, "-p", str(pid)], folder)
            except BaseException:
                self._kill(running)
                raise
            os.kill(pid, signal.SIGUSR1)
        return running

    def wait(self, running: Running, seconds: float = LIMIT_S) -> Ended:
        """Wait until a run has ended; one that does not is ended, and called stuck."""
        found = self._ask({"reap": running.pid, "timeout_s": limit_s(seconds)})
        code: int | str | None = found["status"]
        if code is None:
            self._kill(running)
            code = STUCK
        return self._ended(running, code)

    def poll(self, running: Running) -> Ended | None:
        """Return how a run ended; None if it goes on after a moment."""
        code = self._ask({"reap": running.pid, "timeout_s": 0.01})["status"]
        return None if code is None else self._ended(running, code)

    def _ended(self, running: Running, code: int | str) -> Ended:
        took_s = time.monotonic() - running.begun_s
        if running.tracer is not None:
            try:
                running.tracer.wait(10)
            except subprocess.TimeoutExpired:
                running.tracer.kill()
                running.tracer.wait()
        texts = [
            (running.folder / name).read_text(errors="replace")
            if (running.folder / name).exists()
            else ""
            for name in ("stdout", "stderr")
        ]
        return Ended(code, *texts, took_s)

    def run(self, folder: Path, arguments: Iterable[str], **how: Any) -> Ended:
        """Begin a run and wait for its end."""
        return self.wait(self.start(folder, arguments, **how))

    def tell(self, running: Running, number: int) -> None:
        """Send a run a signal."""
        with suppress(ProcessLookupError):
            os.kill(running.pid, number)

    def _kill(self, running: Running) -> None:
        self.tell(running, signal.SIGKILL)
        if running.tracer is not None:
            # A process is gone only when who traces it has heard of it.
            try:
                running.tracer.wait(5)
            except subprocess.TimeoutExpired:
                running.tracer.kill()
        self._ask({"reap": running.pid, "timeout_s": 10.0})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process that makes runs has ended"
        return json.loads(line)


def attached(command: list[str], folder: Path) -> subprocess.Popen:
    """Start a tracer; return it when it has attached."""
    with (folder / "tracer").open("wb") as said:
        tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=said)
    waiting = Waiting(limit_s(ATTACHED_WITHIN_S))
    while b" attached" not in (text := (folder / "tracer").read_bytes()):
        if tracer.poll() is not None or waiting.is_over():
            tracer.kill()
            tracer.wait()
            raise AssertionError(f"the tracer does not attach: {text.decode(errors='replace')}")
        select.select([], [], [], 0.003)
    return tracer


def imported_modules(world: World, folder: Path) -> list[str]:
    """Return the names of the modules that a clean pull imports, in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(LISTS_MODULES)
    names = folder / "modules"
    environment = world.program.environment(str(folder)) | {"FAULTS_MODULES": str(names)}
    command = world.program.command(*world.pull_arguments(folder / "into"))
    for _ in range(CLEAN_TRIES):
        shutil.rmtree(folder / "into", ignore_errors=True)
        found = carried_out(command, LIMIT_S, env=environment, cwd=NOWHERE)
        if found.returncode == 0:
            break
    assert found.returncode == 0, f"clean pulls fail: {found.stderr}"
    return [m for m in names.read_text().split("\n") if m not in ("sitecustomize", "")]
