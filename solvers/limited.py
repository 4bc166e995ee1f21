"""Time limits for flow solvers: each call runs in a child process that can be killed.

None of the flow solvers can be interrupted, and OR-Tools and LEMON hold Python's interpreter lock
until they end: in the same process neither a thread nor a signal handler would get its turn. A
child process can be killed at any time, and while it works the other threads of this one run on.

The child is started as ``python -c ...`` and not by `multiprocessing`, which with "spawn" would
run the user's script again where that has no ``if __name__ == "__main__"``, and with "fork" would
copy locks that other threads hold. It receives this process's ``sys.path`` first, so that it
imports the same packages wherever it starts. One child serves all calls of a solver, one after
another; calls from several threads at once get a child each.

A first call costs 0.2 to 0.3 s for starting Python and importing the solver, later ones less than
10 ms on 100 000 arcs (measured on a shared 2-core machine).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from typing import IO, TYPE_CHECKING, cast

from datacollect.errors import SolverError, TimeLimitError
from datacollect.orphans import held_pipe

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.networks import FlowNetwork

# -P: a file pickle.py in the current folder must not be taken for the standard module.
_CHILD_COMMAND = (
    "-P",
    "-c",
    """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from datacollect.orphans import end_when_closed
end_when_closed(int(sys.argv[1]))
from datacollect.solvers.served import serve
serve()
""",
)


class TimeLimitedFlow:
    """A flow solver whose calls all end by a deadline.

    Threads may share an instance.

    Parameters
    ----------
    solver_name : str
        As for `datacollect.solvers.choice.load_flow_solver`.
    stop_at_s : float
        Time of `time.monotonic` at which unfinished calls are killed and raise TimeLimitError.
    name : str, optional
        The name of the solver that answers, as if it had been loaded without a limit; by default
        `solver_name`.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollect.solvers.networks import FlowNetwork
    >>> solver = TimeLimitedFlow("ortools", time.monotonic() + 60.0)
    >>> solver.max_flow(FlowNetwork(2, np.array([0]), np.array([1]), np.array([5])), 0, 1)
    array([5])
    """

    def __init__(self, solver_name: str, stop_at_s: float, name: str | None = None) -> None:
        self.name = name or solver_name
        self._solver_name = solver_name
        self._stop_at_s = stop_at_s
        # Children without work. Lists append and pop atomically, so threads need no lock.
        self._idle: list[_Child] = []
        weakref.finalize(self, _stop_all, self._idle)

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """See `FlowSolver.max_flow`."""
        return self._call("max_flow", network, source, sink)

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """See `FlowSolver.min_cost_flow`."""
        return self._call("min_cost_flow", network, supply)

    def _call(self, method: str, *arguments: object) -> IntArray:
        if time.monotonic() >= self._stop_at_s:
            raise TimeLimitError(f"{self.name}: the time limit passed before {method} started")
        try:
            child = self._idle.pop()
        except IndexError:
            child = _Child(self._solver_name)
        try:
            answer = child.ask((method, arguments), self._stop_at_s)
        except BaseException:
            # Also on Ctrl-C: whatever the child does now, nobody waits for it.
            child.stop()
            raise
        self._idle.append(child)
        if isinstance(answer, Exception):
            raise answer
        return cast("IntArray", answer)


class _Child:
    """A process that runs `datacollect.solvers.served.serve`."""

    def __init__(self, solver_name: str) -> None:
        self._solver_name = solver_name
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        self._held = contextlib.ExitStack()
        pipe = self._held.enter_context(held_pipe())
        self._process = subprocess.Popen(
            [sys.executable, *_CHILD_COMMAND, str(pipe)],
            pass_fds=[pipe],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            # A session of its own: CBC, which the child may start, is killed with it.
            start_new_session=True,
        )
        self._is_new = True

    def ask(self, request: object, stop_at_s: float) -> object:
        """Send a request and wait for the answer, at most until the deadline."""
        remaining_s = min(stop_at_s - time.monotonic(), threading.TIMEOUT_MAX)
        alarm = threading.Timer(remaining_s, self._kill)
        alarm.daemon = True
        alarm.start()
        requests, answers = self._pipes()
        try:
            if self._is_new:
                pickle.dump(sys.path, requests)
                pickle.dump(self._solver_name, requests)
                self._is_new = False
            # Protocol 5 writes large arrays without copying them first.
            pickle.dump(request, requests, protocol=5)
            requests.flush()
            return pickle.load(answers)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            if time.monotonic() >= stop_at_s:
                raise TimeLimitError(f"{self._solver_name}: the time limit passed") from None
            raise self._failure() from error
        finally:
            alarm.cancel()

    def stop(self) -> None:
        """Kill the process and free what belongs to it."""
        self._kill()
        self._process.wait()
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.close()
        self._messages.close()
        self._held.close()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        return requests, answers

    def _kill(self) -> None:
        if self._process.returncode is not None:
            return  # its number may belong to another process by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _failure(self) -> SolverError:
        exit_code = self._process.wait()
        self._messages.seek(0)
        last_words = self._messages.read().decode(errors="replace").strip()[-500:]
        return SolverError(
            f"{self._solver_name}: the solver's process died with exit code {exit_code}; choose "
            f"another solver. Its output: {last_words or 'nothing'}"
        )


def _stop_all(children: list[_Child]) -> None:
    while children:
        children.pop().stop()
