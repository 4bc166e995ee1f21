"""Laboratory of experiments: the world, clean records, processes that make runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faults.bench import Bench
from faults.judge import NOT_MADE, may_be_slowness, own_files
from faults.processes import Zygote, imported_modules
from faults.time_limits import Late, carried_out
from faults.world import Program, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from faults.bench import Result
    from faults.experiments import Experiment

NO_TRACING, TRIED_WITHIN_S = "strace may not trace here", 30.0
# So many experiments one after the other may fail of themselves.
MOST_FAILED = 5


def why_no_tracing() -> str | None:
    """Return why no tracer can be used here; None if one can."""
    if shutil.which("strace") is None:
        return "no strace here"
    command = ["strace", "-f", "-o", os.devnull, "-e", "inject=getcwd:error=EIO:when=9", "true"]
    child = subprocess.Popen(["sleep", "60"])
    # To attach may be refused where to start is not.
    attaching = ["timeout", "0.2", "strace", "-o", os.devnull, "-p", str(child.pid)]
    try:
        tried = [carried_out(each, TRIED_WITHIN_S).returncode for each in (command, attaching)]
    except (OSError, Late):
        tried = [1]
    finally:
        child.kill()
        child.wait()
    return None if tried in ([0, 124], [0, 0]) else NO_TRACING


@dataclass
class Laboratory:
    """Carries out experiments in a folder.

    Parameters
    ----------
    folder : Path
    program : Program
    """

    folder: Path
    program: Program = field(default_factory=Program)
    world: World = field(init=False)
    may_trace: bool = field(init=False)
    kept: frozenset[str] = frozenset()
    _modules: list[str] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _n_slots: int = 0

    def __enter__(self) -> Laboratory:
        with ExitStack() as stack:
            self.world = stack.enter_context(World(self.folder / "world", self.program))
            self.may_trace = why_no_tracing() is None
            clean = self.folder / "clean"
            self._modules = imported_modules(self.world, clean)
            self.kept = frozenset(own_files(clean / "into"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def bench(self) -> Bench:
        """Return a place for one experiment at a time; several may work beside each other."""
        self._n_slots += 1
        folder = self.folder / f"bench-{self._n_slots}"
        return Bench(self, self.zygote(), self._n_slots, folder)

    def zygote(self) -> Zygote:
        """Return a process that makes runs; it ends with the laboratory."""
        return self._stack.enter_context(Zygote(self.program, self._modules))


def carry_out_all(
    benches: Sequence[Bench],
    experiments: Iterable[Experiment],
    take: Callable[[Result], None],
    *,
    until_s: float = float("inf"),
) -> Iterator[None]:
    """Carry out experiments at all benches; begin none when the clock, monotonic, says so.

    It yields about once a second, for whoever wants to say how far it is. What may have been slow
    only is carried out again in the end, alone and with longer limits; its first result is not
    taken.
    """
    waiting, doubtful = iter([*experiments]), []
    lock, failures = threading.Lock(), []

    def work(bench: Bench) -> None:
        n_failed = 0
        try:
            while time.monotonic() < until_s and not failures:
                with lock:
                    experiment = next(waiting, None)
                if experiment is None:
                    return
                result = bench.carry_out(experiment)
                is_made = all(rule != NOT_MADE for rule, _ in result.findings)
                n_failed = 0 if is_made else n_failed + 1
                assert n_failed <= MOST_FAILED, f"no experiment can be made: {result.findings}"
                with lock:
                    if may_be_slowness(result.findings):
                        doubtful.append(experiment)
                    else:
                        take(result)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            failures.append(error)

    workers = [threading.Thread(target=work, args=(bench,), daemon=True) for bench in benches]
    for worker in workers:
        worker.start()
    for worker in workers:
        while worker.is_alive():
            worker.join(1.0)
            yield
    if failures:
        raise failures[0]
    for experiment in doubtful:
        if time.monotonic() < until_s:
            take(benches[0].again(experiment))
            yield
