"""Experiments in copies of this process: a run with one call failing, then one without.

For scripts of their own: the wrappers of `shim` stand before the program is imported.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from faults import shim
from faults.experiments import Experiment, shimmed
from faults.time_limits import CLEAN_TRIES, FACTOR, Late, Waiting, limit_s, longer

DONE, SAID, BROKEN, LATE = 0, 3, 1, 4
# A copy that has not ended by then may be stuck.
LIMIT_S = 120.0
# Garbage that was read may be written again, and a clock that is wrong is another test's.
LEFT_OUT = ("GARBAGE", "CORRUPT")


@dataclass(frozen=True)
class Trial:
    """Experiment to be tried.

    Attributes
    ----------
    name : str
    prepare : callable
        Lays out what is needed in a folder that is there.
    run : callable
        Takes the folder and how often it was run before; returns `DONE`, or `SAID` where it has
        ended otherwise and said why, or `BROKEN`. It raises `Late` where something of its own has
        not come in time. Its limits are those of `limit_s`.
    wrong : callable
        Takes the folder after a run without a fault; returns what is wrong, or nothing.
    check : callable
        Raises `AssertionError` where something is wrong after a run, however it has ended.
    is_ended : bool
        Whether the process is ended at each call, too.
    first : int
        Where a sample begins, so that those of several trials are not of the same calls.
    kills_only : bool
        Whether nothing else is tried than the end of the process.
    """

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path, int], int]
    wrong: Callable[[Path], str] = lambda _: ""
    check: Callable[[Path], None] = lambda _: None
    is_ended: bool = False
    first: int = 0
    kills_only: bool = False

    def carry_out(self) -> int:
        """Carry out all experiments, or each so manieth; return 1 where a rule was broken."""
        step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
        with tempfile.TemporaryDirectory(prefix=f"{self.name}-faults-") as scratch:
            plan = self._plan(Path(scratch))[self.first % step :: step]
            n_broken = n_reached = 0
            for number, experiment in enumerate(plan):
                folder = Path(scratch) / str(number)
                if why := self.judged(experiment, folder):
                    n_broken += 1
                    print(f"{experiment.key}: {why}", flush=True)  # noqa: T201
                n_reached += (folder / "hits").exists()
                shutil.rmtree(folder)
            print(  # noqa: T201
                f"{len(plan)} experiments, {n_reached} reached, {n_broken} with a rule broken",
                flush=True,
            )
        return 1 if n_broken else 0

    def _plan(self, scratch: Path) -> list[Experiment]:
        """Return each call and error once, by a run that counts them."""
        for number in range(CLEAN_TRIES):
            folder = scratch / f"clean-{number}"
            folder.mkdir()
            self.prepare(folder)
            with longer():
                code = self._in_copy(folder, 1, {"record": str(folder / "counts")})
            if code == DONE:
                break
        assert code == DONE, (folder / "said").read_text()
        assert not self.wrong(folder), self.wrong(folder)
        counts = json.loads((folder / "counts").read_text())
        counts = {site: n for site, n in counts.items() if not site.startswith("clock")}
        plan = [each for each in shimmed(self.name, counts, 3) if each.error not in LEFT_OUT]
        ends = {replace(each, error="SIGKILL", onward=False) for each in plan} - {*plan}
        kills = sorted(ends if self.is_ended or self.kills_only else (), key=lambda each: each.key)
        return kills if self.kills_only else [*plan, *kills]

    def judged(self, experiment: Experiment, folder: Path) -> str:
        """Carry out an experiment; return what is wrong, if anything is.

        What was late is tried again with longer limits.
        """
        try:
            return self._judged(experiment, folder)
        except Late:
            shutil.rmtree(folder)
        try:
            with longer():
                return self._judged(experiment, folder)
        except Late as error:
            return f"{error}, with {FACTOR:g} times the time"

    def _judged(self, experiment: Experiment, folder: Path) -> str:
        folder.mkdir()
        self.prepare(folder)
        fault = {
            "call": experiment.call,
            "kind": experiment.kind,
            "error": experiment.error,
            "n": experiment.n,
            "onward": experiment.onward,
            "hits": str(folder / "hits"),
        }
        try:
            code = self._in_copy(folder, 0, fault)
            if code not in (DONE, SAID, -9) or (code == -9 and experiment.error != "SIGKILL"):
                return f"exit {code}: {(folder / 'said').read_text()[-2000:]}"
            self.check(folder)
            again = self._in_copy(folder, 1)
            if again != DONE:
                # Its patience may have ended: what else is wrong it does not return, but raise.
                error = Late if again == SAID else AssertionError
                raise error(f"then {again}: {(folder / 'said').read_text()[-2000:]}")
            self.check(folder)
            return self.wrong(folder)
        except Late:
            raise
        except AssertionError as error:
            return str(error)

    def _in_copy(self, folder: Path, generation: int, fault: dict | None = None) -> int:
        """Run in a copy of this process; return its exit code, negative for a signal."""
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            code = BROKEN
            try:
                number = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(number, 2)
                if fault is not None:
                    shim.arm(fault)
                code = self.run(folder, generation)
                if fault is not None and "record" in fault:
                    shim.ARMED.write_counts()
            except BaseException as error:  # noqa: BLE001 - says which, and must not go on
                code = LATE if isinstance(error, Late) else BROKEN
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        waiting = Waiting(limit_s(LIMIT_S))
        while not waiting.is_over():
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                if code == LATE:
                    raise Late((folder / "said").read_text()[-2000:])
                return code
            time.sleep(0.005)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        raise Late("it is stuck")
