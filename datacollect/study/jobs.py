"""Jobs of workers: the runs of a few groups, each kept as soon as it is there."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, SimulationError
from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.outcome import versions
from datacollect.scenario.setting import build
from datacollect.study.identity import failure_key, run_key
from datacollect.study.rows import document_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from datacollect.scenario.outcome import Outcome
    from datacollect.scenario.scenario import Scenario
    from datacollect.scenario.setting import Setting
    from datacollect.study.experiment import Experiment
    from datacollect.study.store import RunStore

# Rows of fluid runs are kept once this much time has passed since some were.
KEEP_S = 1.0

# What does not change what a scenario builds.
NOT_BUILT = ("name", "method", "estimates")


@dataclass(frozen=True)
class RunGroup:
    """The runs of one setting and seed that are missing.

    Attributes
    ----------
    setting : tuple of str
        Labels of the axes that are not paired.
    seed : int
    treatments : tuple of tuple of str
        Labels of the paired axes, one tuple for each run.
    """

    setting: tuple[str, ...]
    seed: int
    treatments: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SweepJob:
    """Groups for one worker, where to keep what comes out, where to look for it before."""

    experiment: Experiment
    store: RunStore
    versions: Mapping[str, str]
    groups: tuple[RunGroup, ...]
    others: tuple[Path, ...] = ()


@dataclass
class Finished:
    """Result of a job.

    Attributes
    ----------
    rows : list of dict
    failures : list of dict
        key, labels, seed and reason of each run that failed.
    documents : list of dict
        Of runs that the worker could not keep, because it does not see the folder.
    kept : bool
        Whether it does.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    documents: list[dict[str, Any]] = field(default_factory=list)
    kept: bool = True


def versions_that_matter(experiment: Experiment) -> dict[str, str]:
    """Return the versions here of what shapes the results."""
    names = ["datacollect", "numpy"]
    estimates = experiment.scenario.sections.get("estimates", {})
    if "ns3" in (experiment.engine, estimates.get("engine")):
        names.append("ns3")
    return {name: versions().get(name, "none") for name in names}


def work(
    job: SweepJob, report: Callable[[int, int], None] = lambda _done, _failed: None
) -> Finished:
    """Carry out a job's runs.

    A run that fails is noted and does not stop the others.

    Parameters
    ----------
    job : SweepJob
    report : callable
        Takes how many of them are done, and how many have failed, after each.

    Raises
    ------
    SimulationError
        This worker has other versions than the sweep.
    ProblemError
        A result cannot be written.
    """
    here = versions_that_matter(job.experiment)
    if here != job.versions:
        raise SimulationError(
            f"a worker must have the versions of the sweep, {dict(job.versions)}, got {here}; "
            "install these on the worker"
        )
    finished = Finished(kept=job.store.is_here())
    rows = _RowKeeper(job, finished)
    try:
        for group in job.groups:
            with _maker(job, group, finished) as maker:
                for treatment in group.treatments:
                    maker.make(treatment)
                    rows.keep_in_time()
                    report(len(finished.rows), len(finished.failures))
    finally:
        rows.keep()  # also where the sweep is interrupted
    return finished


class _RowKeeper:
    """Keeps rows of fluid runs, of quick ones many at once; runs in ns-3 are kept one by one.

    Rows of a worker that does not see the folder are kept by the sweep.
    """

    def __init__(self, job: SweepJob, finished: Finished) -> None:
        self._store, self._finished = job.store, finished
        self._is_ours = job.experiment.engine == "fluid" and finished.kept
        self._n_kept, self._kept_s = 0, time.monotonic()

    def keep_in_time(self) -> None:
        """Keep what is new, if the last time is long ago."""
        if time.monotonic() - self._kept_s >= KEEP_S:
            self.keep()

    def keep(self) -> None:
        """Keep what is new."""
        new = self._finished.rows[self._n_kept :]
        if self._is_ours and new:
            self._store.write_rows(new)
        self._n_kept, self._kept_s = len(self._finished.rows), time.monotonic()


def keep(finished: Finished, store: RunStore, engine: str) -> None:
    """Keep what a worker could not."""
    if finished.kept:
        return
    for failure in finished.failures:
        store.write_failure(failure)
    for document in finished.documents:
        store.write_run(document)
    if engine == "fluid" and finished.rows:
        store.write_rows(finished.rows)


def failure_of(key: str, labels: Mapping[str, str], seed: int, reason: str) -> dict[str, Any]:
    """Return the note of a run that failed."""
    return {"key": key, "labels": dict(labels), "seed": seed, "reason": reason}


class _GroupMaker:
    """Makes the runs of one group; they share what is built."""

    def __init__(
        self, job: SweepJob, group: RunGroup, finished: Finished, folder: Path | None
    ) -> None:
        self.job, self.group, self.finished, self.folder = job, group, finished, folder
        self._built: tuple[dict[str, Any], Setting] | None = None

    def make(self, treatment: tuple[str, ...]) -> None:
        job, group = self.job, self.group
        labels = job.experiment.labels(group.setting, treatment)
        try:
            scenario = self._scenario(treatment)
            key = run_key(scenario, job.experiment.engine, job.versions)
            # A worker that died, or another sweep, may have kept it before.
            looks = self.finished.kept and job.experiment.engine == "ns3"
            row = job.store.row_from(key, labels, job.others) if looks else None
            if row is not None:
                self.finished.rows.append(row)
                return
            outcome = self._carry_out(scenario)
            row = row_of(outcome, key, labels, group.seed)
        except NotWrittenError:
            raise  # it is the disk that is at fault, not the run
        except Exception as error:  # noqa: BLE001 - whatever it is, the other runs go on
            key = failure_key(job.store.sha256, labels, group.seed)
            self._fail(failure_of(key, labels, group.seed, _reason(error)))
            return
        self.finished.rows.append(row)
        if job.experiment.engine == "ns3":
            self._keep(document_of(outcome, row))

    def _scenario(self, treatment: tuple[str, ...]) -> Scenario:
        scenario = self.job.experiment.scenario_of(self.group.setting, treatment, self.group.seed)
        return scenario if self.folder is None else replace(scenario, folder=self.folder)

    def _carry_out(self, scenario: Scenario) -> Outcome:
        what = {k: v for k, v in scenario.sections.items() if k not in NOT_BUILT}
        if self._built is None or self._built[0] != what:
            with scenario.naming_file():
                self._built = what, build(scenario)
        cache = self.job.store.probes if self.finished.kept else None
        engine = self.job.experiment.engine
        return carry_out(scenario, engine=engine, cache_dir=cache, setting=self._built[1])

    def _keep(self, document: dict[str, Any]) -> None:
        if self.finished.kept:
            self.job.store.write_run(document)
        else:
            self.finished.documents.append(document)

    def _fail(self, failure: dict[str, Any]) -> None:
        self.finished.failures.append(failure)
        if self.finished.kept:
            self.job.store.write_failure(failure)


@contextmanager
def _maker(job: SweepJob, group: RunGroup, finished: Finished) -> Iterator[_GroupMaker]:
    grids = job.experiment.grids_of(group.setting)
    if grids is None:
        yield _GroupMaker(job, group, finished, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        grids.write(group.seed, Path(folder))
        yield _GroupMaker(job, group, finished, Path(folder))


def _reason(error: Exception) -> str:
    from datacollect.errors import DatacollectError

    return str(error) if isinstance(error, DatacollectError) else f"{type(error).__name__}: {error}"
