"""Carry out all runs of an experiment, on many processors, so that nothing finished is lost."""

from __future__ import annotations

import os
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import (
    DatacollectError,
    DatacollectWarning,
    NotWrittenError,
    ProblemError,
    SimulationError,
)
from datacollect.files.stages import LOG
from datacollect.files.with_units import PART, in_units, in_whole
from datacollect.numbers.pace import about_duration
from datacollect.scenario.carry_out import require_ns3
from datacollect.study.experiment import Experiment
from datacollect.study.identity import failure_key
from datacollect.study.jobs import (
    Finished,
    RunGroup,
    SweepJob,
    failure_of,
    keep,
    versions_that_matter,
)
from datacollect.study.opening import opened
from datacollect.study.plan import MOST_ATTEMPTS, SweepPlan
from datacollect.study.starts import sweep_command
from datacollect.study.store import experiment_in
from datacollect.study.workers import DaskCluster, LocalProcesses, ThisProcess, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    import pandas as pd
    from distributed import Client

    from datacollect.study.store import RunStore

# How often progress is reported.
REPORT_S = 1.0


@dataclass(frozen=True)
class SweepProgress:
    """Progress of a sweep.

    Attributes
    ----------
    done, failed : int
        Runs, those of earlier starts among them.
    to_do : int
        Runs that are known to be to do; more seeds may follow where precision asks for them.
    finished_settings, settings : int
    elapsed_s : float
        Since this start.
    left_s : float or None
        About how long what is known to be to do will take; None before anything is finished.
    kept : int
        Runs that were in the folder before this start, of whichever part of the experiment.
    last_failure : str
        Which run failed last, and why; may be empty.
    trouble : str
        What keeps workers from their jobs at present, or first of all what is damaged in the
        folder; empty where nothing is amiss.
    """

    done: int
    failed: int
    to_do: int
    finished_settings: int
    settings: int
    elapsed_s: float
    left_s: float | None
    kept: int = 0
    last_failure: str = ""
    trouble: str = ""


def sweep(
    experiment: Experiment | str | PathLike[str],
    directory: str | PathLike[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    client: Client | None = None,
    scale: float | None = None,
    probe_scale: float | None = None,
    seeds_most: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    data: str | PathLike[str] | None = None,
    reuse: Sequence[str | PathLike[str]] = (),
    retry_failed: bool = False,
    progress: Callable[[SweepProgress], None] | None = None,
) -> pd.DataFrame:
    """Carry out the runs of an experiment that a folder does not have yet.

    Every run is kept as it is finished, or a second later. However the sweep ends, another call
    with the same folder goes on where it was, and ends with the same table. More seeds, or more
    labels on an axis, add to what is there.

    Parameters
    ----------
    experiment : Experiment or path-like
        An experiment, or its file.
    directory : path-like
        Folder of results; made if need be.
    workers : int, optional
        Processes on this machine; by default one for each processor. 0: none, all runs in this
        process.
    dask : str, optional
        Address of a Dask scheduler whose workers to use instead.
    client : distributed.Client, optional
        A client of a Dask cluster whose workers to use instead; it stays open.
    scale : float, optional
        Factor on backlogs, and on probes that have none of their own, instead of the experiment's.
    probe_scale : float, optional
        Factor on the size of probes alone, likewise.
    seeds_most : int, optional
        Seeds of each setting at most, instead of the experiment's.
    only : mapping, optional
        From names of axes to the labels to run: a part of the experiment.
    data : path-like, optional
        Folder that stands for ``{data}`` in the experiment's values.
    reuse : sequence of path-like
        Folders of other sweeps: runs in ns-3 and measurements that are the same are taken from
        there.
    retry_failed : bool
        Try again runs that failed at an earlier start.
    progress : callable, optional
        Called about once a second. Without it, what keeps workers from their jobs, or is damaged
        in the folder, is a `DatacollectWarning`.

    Returns
    -------
    DataFrame
        A row for each run in the folder, sorted by key; also written to ``results.parquet``.
        Columns: the axes with their labels, then those of ``datacollect.study.columns.COLUMNS``.
        Runs that failed are not in it; ``failed.jsonl`` in the folder says why.

    Raises
    ------
    ProblemError
        The experiment breaks a rule; the folder holds another experiment, where labels mean
        something else (`datacollect.study.growth`), or cannot be written.
    SimulationError
        ns-3 is not installed, or the Dask cluster is gone.

    Notes
    -----
    Local processes are spawned: a script that calls this needs ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import tempfile
    >>> import datacollect as dc
    >>> experiment = dc.Experiment.from_dict(
    ...     {
    ...         "engine": "fluid",
    ...         "seeds": {"least": 2, "batch": 2},
    ...         "axes": [
    ...             {"name": "rate", "key": "topology.rate_bytes_per_s", "values": [1e5, 1e6]}
    ...         ],
    ...     },
    ...     scenario={
    ...         "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6},
    ...         "hosts": {
    ...             "destination": {"at": "N0"},
    ...             "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
    ...         },
    ...     },
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = dc.sweep(experiment, folder, workers=0)
    >>> table.groupby("rate")["makespan_s"].mean().round(1).to_dict()
    {'100000': 10.4, '1e+06': 1.1}
    """
    given = {"workers": workers, "dask": dask, "client": client}
    if len(names := [name for name, value in given.items() if value is not None]) > 1:
        raise ProblemError(f"{' and '.join(names)} cannot be combined; give one of them")
    workers = in_whole(workers, "workers")
    scale, probe_scale = in_units(scale, PART, "scale"), in_units(probe_scale, PART, "probe_scale")
    seeds_most = in_whole(seeds_most, "seeds_most")
    if workers is not None and workers < 0:
        raise ProblemError(f"workers must be >= 0, got {workers}")
    file = "" if isinstance(experiment, Experiment) else os.fspath(experiment)
    if not isinstance(experiment, Experiment):
        experiment = Experiment.from_file(experiment, data=data)
    if scale is not None:
        experiment = experiment.with_scale(scale)
    if probe_scale is not None:
        experiment = experiment.with_probe_scale(probe_scale)
    if seeds_most is not None:
        experiment = experiment.with_seeds(seeds_most)
    part = experiment.only(only or {})
    part.require_data()
    if experiment.engine == "ns3":
        require_ns3(experiment.scenario)
    versions = versions_that_matter(experiment)
    others = tuple(Path(folder).resolve() for folder in reuse)
    _require_sweeps(others)
    command = sweep_command(
        file or f"{experiment.name}.toml",
        directory,
        scale=scale,
        probe_scale=probe_scale,
        seeds=seeds_most,
        only=only,
        data=data,
        reuse=reuse,
        retry_failed=retry_failed,
    )
    with opened(experiment, directory, versions, file=file, command=command) as store:
        start = _Sweep(SweepPlan(part), store, versions, others, progress)
        scheduler = dask if client is None else client
        return start.run(partial(_pool, workers, scheduler), retry_failed=retry_failed)


class _Sweep:
    """One start of a sweep."""

    def __init__(
        self,
        plan: SweepPlan,
        store: RunStore,
        versions: Mapping[str, str],
        others: tuple[Path, ...],
        progress: Callable[[SweepProgress], None] | None,
    ) -> None:
        self.plan, self.store, self.versions, self.others = plan, store, versions, others
        self._report = progress or _warner()
        self._trouble = ""
        self._kept = 0
        self._jobs: dict[Future[Finished], SweepJob] = {}
        self._began_s = self._reported_s = time.monotonic()
        self._cpu_cost_s = 0.0  # processor time of the runs of this start

    def run(self, open_pool: Callable[[int], WorkerPool], *, retry_failed: bool) -> pd.DataFrame:
        self._trouble = self._take_kept(retry_failed=retry_failed)
        self._report(self._progress())
        self._trouble = ""
        if n_runs := self.plan.n_remaining():
            self.store.borrow_probes(self.others)
            pool = open_pool(n_runs)
            try:
                self._work(pool)
            except BaseException as error:
                pool.close()
                # Also after Ctrl-C: what is finished is folded. A full disk may forbid it.
                with suppress(ProblemError):
                    self.store.fold()
                if isinstance(error, NotWrittenError):
                    raise self._not_written(error) from None
                raise
            pool.close()
        self._report(self._progress())
        return self.store.fold()

    def _take_kept(self, *, retry_failed: bool) -> str:
        """Take over what the folder has; return what is damaged there, in words."""
        kept = self.store.read()
        self.store.require_rows(kept)
        self._kept = len(kept.table)
        self.plan.add_rows(
            {str(name): value for name, value in row.items()}
            for row in kept.table.to_dict("records")
        )
        if not retry_failed:
            self.plan.add_failures(kept.failures)
        self.plan.begin()
        if not kept.unreadable:
            return ""
        damaged = ", ".join(kept.unreadable)
        return f"{self.store.folder}: {damaged}: damaged; these runs are made again"

    def _not_written(self, error: NotWrittenError) -> NotWrittenError:
        n_kept = len(self.store.read().table)
        found = NotWrittenError(f"{error}; {n_kept} runs are kept in {self.store.folder}")
        found.exit_code = error.exit_code
        return found

    def _work(self, pool: WorkerPool) -> None:
        while True:
            while len(self._jobs) < pool.n_jobs and (groups := self.plan.next_job(pool.n_workers)):
                experiment = self.plan.experiment
                job = SweepJob(experiment, self.store, self.versions, groups, self.others)
                self._jobs[pool.submit(job, partial(self._now_and_then, pool))] = job
            if not self._jobs:
                return
            for future in wait(self._jobs, REPORT_S, FIRST_COMPLETED).done:
                self._end(pool, future)
            self._now_and_then(pool)

    def _end(self, pool: WorkerPool, future: Future[Finished]) -> None:
        job = self._jobs.pop(future)
        if pool.has_lost(future):
            for group in self.plan.lose_job(job.groups):
                self._give_up(group, str(future.exception()))
            return
        error = future.exception()
        if isinstance(error, DatacollectError):
            raise error
        if error is not None:
            raise SimulationError(
                f"a worker failed: {type(error).__name__}: {error}; is datacollect installed on "
                "the worker?"
            ) from error
        finished = future.result()
        for row in finished.rows:
            where = ", ".join(f"{axis.name} {row[axis.name]}" for axis in job.experiment.axes)
            took_s = self.plan.cpu_cost_s(row)
            LOG.info("a run took %s of a processor: %s", about_duration(took_s), where)
        for failure in finished.failures:
            LOG.info("a run failed: %s", failure["reason"])
        keep(finished, self.store, job.experiment.engine)
        self._cpu_cost_s += sum(map(self.plan.cpu_cost_s, finished.rows))
        self.plan.add_rows(finished.rows)
        self.plan.add_failures(finished.failures)
        self.plan.end_job(job.groups)

    def _give_up(self, group: RunGroup, reason: str) -> None:
        experiment = self.plan.experiment
        for treatment in group.treatments:
            labels = experiment.labels(group.setting, treatment)
            key = failure_key(self.store.sha256, labels, group.seed)
            words = f"its worker died {MOST_ATTEMPTS} times: {reason}"
            failure = failure_of(key, labels, group.seed, words)
            self.store.write_failure(failure)
            self.plan.add_failures([failure])
        self.plan.end_job([group])

    def _now_and_then(self, pool: WorkerPool) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s >= REPORT_S:
            self._reported_s = now_s
            self._trouble = pool.trouble()
            self._report(self._progress(*pool.ended()))

    def _progress(self, done: int = 0, failed: int = 0) -> SweepProgress:
        """Say how far it is, with runs that have ended in jobs that have not come back."""
        elapsed_s = time.monotonic() - self._began_s
        left_s = None
        if self._cpu_cost_s > 0:
            left_s = self.plan.remaining_cost_s() * elapsed_s / self._cpu_cost_s
        return SweepProgress(
            done=len(self.plan.rows) + done,
            failed=len(self.plan.failed) + failed,
            to_do=self.plan.n_remaining() - done - failed,
            finished_settings=len(self.plan.finished),
            settings=len(self.plan.experiment.settings()),
            elapsed_s=elapsed_s,
            left_s=left_s,
            kept=self._kept,
            last_failure=self.plan.last_failure,
            trouble=self._trouble,
        )


def _warner() -> Callable[[SweepProgress], None]:
    """Return what warns of each trouble once."""
    last = [""]

    def warn(now: SweepProgress) -> None:
        if now.trouble and now.trouble != last[0]:
            warnings.warn(now.trouble, DatacollectWarning, stacklevel=2)
        last[0] = now.trouble

    return warn


def _require_sweeps(folders: Sequence[Path]) -> None:
    for folder in folders:
        if experiment_in(folder) is None:
            raise ProblemError(f"reuse: {folder} is not the folder of a sweep; name one")


def _pool(workers: int | None, dask: str | Client | None, n_runs: int) -> WorkerPool:
    if dask is not None:
        return DaskCluster(dask)
    if workers == 0:
        return ThisProcess()
    return LocalProcesses(max(1, min(workers or os.cpu_count() or 1, n_runs)))
