"""Who carries jobs out: this process, processes on this machine, a Dask cluster.

Each takes one job at a time for every worker. A worker that dies takes its job with it and nobody
else's.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, Protocol

from datacollect.errors import ProblemError, SimulationError
from datacollect.installation import command_for_extra
from datacollect.study.jobs import Finished, SweepJob, work

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# Seconds to reach a Dask scheduler.
DASK_TIMEOUT_S = 10


class WorkerPool(Protocol):
    """Workers."""

    @property
    def n_workers(self) -> int:
        """How many jobs are carried out at once."""

    @property
    def n_jobs(self) -> int:
        """How many jobs to hand over at once, so that no worker waits."""

    def submit(self, job: SweepJob) -> Future[Finished]:
        """Hand a job over."""

    def has_lost(self, future: Future[Finished]) -> bool:
        """Look at a job that has ended: whether it died with its worker."""

    def close(self) -> None:
        """End the workers, whatever they do."""


class ThisProcess:
    """Carries jobs out itself, one after another."""

    n_workers = n_jobs = 1

    def submit(self, job: SweepJob) -> Future[Finished]:
        """Carry it out."""
        future: Future[Finished] = Future()
        try:
            future.set_result(work(job))
        except Exception as error:  # noqa: BLE001 - as in other processes
            future.set_exception(error)
        return future

    def has_lost(self, future: Future[Finished]) -> bool:
        """Whether it died with its worker: then nobody is here to ask."""
        return False

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
        self._busy: dict[Future[Finished], ProcessPoolExecutor] = {}

    def submit(self, job: SweepJob) -> Future[Finished]:
        """Hand a job to an idle process."""
        executor = self._idle.pop()
        future = executor.submit(work, job)
        self._busy[future] = executor
        return future

    def has_lost(self, future: Future[Finished]) -> bool:
        """Whether its process died; there is a new one then."""
        executor = self._busy.pop(future)
        lost = isinstance(future.exception(), BrokenProcessPool)
        if lost:
            executor.shutdown(wait=False)
            executor = self._start()
        self._idle.append(executor)
        return lost

    def close(self) -> None:
        """End all processes at once."""
        self._ours.close()  # they end when they find it closed
        for executor in (*self._idle, *self._busy.values()):
            executor.shutdown(wait=True, cancel_futures=True)
        self._theirs.close()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1, mp_context=self._context, initializer=_begin, initargs=(self._theirs,)
        )


def _begin(sweep: Connection) -> None:
    """In a worker: leave Ctrl-C to the sweep; end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(sweep,), daemon=True).start()


def _end_with(sweep: Connection) -> None:
    try:
        sweep.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


class DaskCluster:
    """Workers of a Dask cluster, on any machines."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise SimulationError(
                f"Dask is not installed: {command_for_extra('dask')}; or use --workers"
            ) from None
        self._address = address
        try:
            make: Any = Client  # its types are incomplete
            self._client: Any = make(address, timeout=DASK_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ProblemError(
                f"no Dask scheduler answers at {address!r}: {error}; start one with "
                "`dask scheduler`, workers with `dask worker ADDRESS --nthreads 1`"
            ) from None
        self._executor: Any = self._client.get_executor(pure=False)

    @property
    def n_workers(self) -> int:
        """Threads of all workers; they come and go.

        Raises
        ------
        SimulationError
            The scheduler is gone.
        """
        try:
            threads = self._client.nthreads()
        except (OSError, TimeoutError):
            raise self._gone() from None
        return max(1, sum(int(n) for n in threads.values()))

    @property
    def n_jobs(self) -> int:
        """One for each thread to do, one to wait."""
        return 2 * self.n_workers

    def submit(self, job: SweepJob) -> Future[Finished]:
        """Hand a job to the scheduler."""
        future: Future[Finished] = self._executor.submit(work, job)
        return future

    def has_lost(self, future: Future[Finished]) -> bool:
        """Whether it died with its worker, again and again: Dask has tried several.

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
        """Cancel all jobs and leave the cluster."""
        self._executor.shutdown(wait=False)
        self._client.close(timeout=5)

    def _gone(self) -> SimulationError:
        return SimulationError(
            f"the Dask scheduler at {self._address} is gone; what is finished is kept: start again "
            "to go on"
        )
