"""Workers of an audit: this process, others on this machine, a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from datacollect.errors import ProblemError, SimulationError
from datacollect.net.dask_scheduler import DASK_TIMEOUT_S, connected
from datacollect.orphans import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

# So many bytes of batches are read faster by one process than others are begun.
SMALL_BYTES = 16 * 2**20


class Workers:
    """Workers, or nobody but this process.

    Parameters
    ----------
    executor : Executor, optional
        As `concurrent.futures` has them.
    n_at_once : int
        Parts that are under way at once; further ones are not made before.
    losses : exceptions
        By which it says that a worker has died.
    """

    def __init__(
        self,
        executor: Any = None,
        n_at_once: int = 1,
        losses: tuple[type[BaseException], ...] = (BrokenProcessPool,),
    ) -> None:
        self._executor, self._n_at_once, self._losses = executor, n_at_once, losses

    def each(self, work: Callable[..., T], parts: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """Yield what becomes of parts, the arguments of a function, in their order.

        Raises
        ------
        SimulationError
            A worker has died, or the cluster is gone.
        """
        if self._executor is None:
            for part in parts:
                yield work(*part)
            return
        waiting: deque[Any] = deque()
        try:
            for part in parts:
                waiting.append(self._executor.submit(work, *part))
                if len(waiting) >= self._n_at_once:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except self._losses as error:
            raise SimulationError(
                "a worker of the audit has died, perhaps for lack of memory; try again with fewer "
                "workers"
            ) from error


@contextmanager
def workers_of(n_processes: int, dask: str | None) -> Iterator[Workers]:
    """Lend workers.

    Parameters
    ----------
    n_processes : int
        On this machine; 0: this process does all.
    dask : str or None
        Address of a Dask scheduler whose workers to use instead.

    Raises
    ------
    ProblemError
        No scheduler answers there.
    SimulationError
        Dask is not installed.
    """
    if dask is not None:
        with _cluster(dask) as workers:
            yield workers
    elif n_processes == 0:
        yield Workers()
    else:
        # Not forked: threads must not be copied.
        with ProcessPoolExecutor(
            n_processes,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
        ) as pool:
            try:
                yield Workers(pool, 2 * n_processes)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _begin() -> None:
    """In a worker: leave Ctrl-C to the audit; end with it, however it ends."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    client = connected(address, "use --workers")
    executor = client.get_executor(pure=False)
    try:
        from distributed.scheduler import KilledWorker

        try:
            client.wait_for_workers(1, timeout=DASK_TIMEOUT_S)
        except TimeoutError:
            raise ProblemError(
                f"the Dask scheduler at {address} has no workers; start some with "
                f"`dask worker {address} --nthreads 1`"
            ) from None
        n_threads = sum(int(n) for n in client.nthreads().values())
        yield Workers(executor, 2 * max(1, n_threads), (KilledWorker, CancelledError))
    finally:
        executor.shutdown(wait=False)
        client.close(timeout=5)


def n_processes_for(workers: int | None, n_bytes: int) -> int:
    """Return how many processes to use: for little there are none, for they take time to begin."""
    if workers is not None and workers < 0:
        raise ProblemError(f"workers must be >= 0, got {workers}")
    if workers is not None:
        return workers
    return 0 if n_bytes < SMALL_BYTES else os.cpu_count() or 1
