"""Executors of jobs: this process, processes on this machine, a Dask cluster.

Each takes one job at a time for every worker. A worker that dies takes its job with it and nobody
else's.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from datacollect.errors import ProblemError, SimulationError
from datacollect.net.dask_scheduler import connected
from datacollect.orphans import end_when_closed
from datacollect.study.jobs import Finished, SweepJob, work

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

# So long without any of a cluster's workers until that is said.
ALONE_S = 5.0


class WorkerPool(Protocol):
    """Workers."""

    @property
    def n_workers(self) -> int:
        """Return how many jobs are carried out at once."""

    @property
    def n_jobs(self) -> int:
        """Return how many jobs to hand over at once, so that no worker waits."""

    def submit(self, job: SweepJob, report: Callable[[], None]) -> Future[Finished]:
        """Hand a job over; who carries it out in this thread calls `report` after each run."""

    def ended(self) -> tuple[int, int]:
        """Return how many runs are done, and have failed, in jobs that have not come back."""

    def has_lost(self, future: Future[Finished]) -> bool:
        """Look at a job that has ended: whether it died with its worker."""

    def trouble(self) -> str:
        """Return what keeps workers from their jobs at present; empty where nothing does."""

    def close(self) -> None:
        """End the workers, whatever they do."""


class ThisProcess:
    """Carries jobs out itself, one after another."""

    n_workers = n_jobs = 1

    def __init__(self) -> None:
        self._ended = 0, 0

    def submit(self, job: SweepJob, report: Callable[[], None]) -> Future[Finished]:
        """Carry it out."""

        def note(done: int, failed: int) -> None:
            self._ended = done, failed
            report()

        future: Future[Finished] = Future()
        try:
            future.set_result(work(job, note))
        except Exception as error:  # noqa: BLE001 - as in other processes
            future.set_exception(error)
        self._ended = 0, 0
        return future

    def ended(self) -> tuple[int, int]:
        """Of the job under way."""
        return self._ended

    def has_lost(self, future: Future[Finished]) -> bool:
        """Return whether it died with its worker: then nobody is here to ask."""
        return False

    def trouble(self) -> str:
        """Nothing: it is here."""
        return ""

    def close(self) -> None:
        """Nothing to end."""


class LocalProcesses:
    """Processes on this machine, each in a pool of its own: one that dies breaks no other's."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = self.n_jobs = n_workers
        # Not forked: threads and an ns-3 that is loaded must not be copied.
        self._context = multiprocessing.get_context("spawn")
        self._theirs, self._ours = self._context.Pipe(duplex=False)
        self._idle = [self._start() for _ in range(n_workers)]
        self._busy: dict[Future[Finished], _Process] = {}

    def submit(self, job: SweepJob, report: Callable[[], None]) -> Future[Finished]:
        """Hand a job to an idle process."""
        process = self._idle.pop()
        process.ended[:] = 0, 0
        future = process.executor.submit(_work_and_count, job)
        self._busy[future] = process
        return future

    def ended(self) -> tuple[int, int]:
        """As processes count."""
        counts = [process.ended[:] for process in self._busy.values()]
        return sum(done for done, _ in counts), sum(failed for _, failed in counts)

    def has_lost(self, future: Future[Finished]) -> bool:
        """Return whether its process died; there is a new one then."""
        process = self._busy.pop(future)
        lost = isinstance(future.exception(), BrokenProcessPool)
        if lost:
            process.executor.shutdown(wait=False)
            process = self._start()
        self._idle.append(process)
        return lost

    def trouble(self) -> str:
        """Nothing: who dies is replaced."""
        return ""

    def close(self) -> None:
        """End all processes at once."""
        self._ours.close()  # they end when they find it closed
        for process in (*self._idle, *self._busy.values()):
            process.executor.shutdown(wait=True, cancel_futures=True)
        self._theirs.close()

    def _start(self) -> _Process:
        # Without a lock: one process writes, and a killed one would keep it.
        ended: Any = self._context.Array("i", 2, lock=False)
        executor = ProcessPoolExecutor(
            1, mp_context=self._context, initializer=_begin, initargs=(self._theirs, ended)
        )
        return _Process(executor, ended)


class _Process(NamedTuple):
    """A process, and how many runs of its job are done and have failed, as it says itself."""

    executor: ProcessPoolExecutor
    ended: Any


# In a worker: where it says so.
_said: list[Any] = []


def _work_and_count(job: SweepJob) -> Finished:
    def note(done: int, failed: int) -> None:
        _said[0][:] = done, failed

    return work(job, note)


def _begin(sweep: Connection, ended: Any) -> None:
    """In a worker: leave Ctrl-C to the sweep; end with it, however it ends."""
    _said[:] = [ended, sweep]  # nobody else keeps it open
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_when_closed(sweep.fileno())


class DaskCluster:
    """Workers of a Dask cluster, on any machines."""

    def __init__(self, scheduler: Any) -> None:
        """Take an address, or a client of the caller's, which stays open in the end."""
        self._is_own = isinstance(scheduler, str)
        self._client: Any = connected(scheduler, "use --workers") if self._is_own else scheduler
        if not self._is_own:
            _require_client(scheduler)
        self._address = scheduler if self._is_own else scheduler.scheduler.address
        self._executor: Any = self._client.get_executor(pure=False)
        self._had_workers = False
        self._alone_since_s: float | None = None

    @property
    def n_workers(self) -> int:
        """Threads of all workers; they come and go.

        Raises
        ------
        SimulationError
            The scheduler is gone.
        """
        return max(1, self._n_threads())

    def trouble(self) -> str:
        """Say where there have been no workers for `ALONE_S`; jobs wait for new ones.

        Raises
        ------
        SimulationError
            The scheduler is gone.
        """
        now_s = time.monotonic()
        if self._n_threads():
            self._had_workers, self._alone_since_s = True, None
            return ""
        if self._alone_since_s is None:
            self._alone_since_s = now_s
        if now_s - self._alone_since_s < ALONE_S:
            return ""
        what = "has lost its last worker" if self._had_workers else "has no workers"
        return (
            f"the Dask scheduler at {self._address} {what}: the sweep waits; start workers with "
            f"`dask worker {self._address} --nthreads 1`"
        )

    @property
    def n_jobs(self) -> int:
        """One for each thread to do, one to wait."""
        return 2 * self.n_workers

    def submit(self, job: SweepJob, report: Callable[[], None]) -> Future[Finished]:
        """Hand a job to the scheduler."""
        future: Future[Finished] = self._executor.submit(work, job)
        return future

    def ended(self) -> tuple[int, int]:
        """None that is known of: jobs come back whole."""
        return 0, 0

    def has_lost(self, future: Future[Finished]) -> bool:
        """Return whether it died with its worker, again and again: Dask has tried several.

        Raises
        ------
        SimulationError
            The scheduler is gone.
        """
        from distributed.scheduler import KilledWorker

        if future.cancelled():
            raise self._gone()
        return isinstance(future.exception(), KilledWorker)

    def close(self) -> None:
        """Cancel all jobs and leave the cluster; what the caller has opened stays open."""
        self._executor.shutdown(wait=False)
        if self._is_own:
            self._client.close(timeout=5)

    def _n_threads(self) -> int:
        try:
            threads = self._client.nthreads()
        except (OSError, TimeoutError):
            raise self._gone() from None
        return sum(int(n) for n in threads.values())

    def _gone(self) -> SimulationError:
        return SimulationError(
            f"the Dask scheduler at {self._address} is gone; what is finished is kept: start again "
            "to continue"
        )


def _require_client(client: Any) -> None:
    """Refuse what is no client of Dask's, or one that cannot be asked from here.

    Raises
    ------
    ProblemError
    """
    if not hasattr(client, "get_executor"):
        raise ProblemError(
            f"client must be a distributed.Client, got {type(client).__name__}; "
            "cluster.get_client() returns a cluster's"
        )
    if client.asynchronous or client.status != "running":
        what = "asynchronous" if client.asynchronous else client.status
        raise ProblemError(
            f"client must be connected and not asynchronous, got one that is {what}; "
            "distributed.Client(address) makes one"
        )
