"""Plan of a sweep: the seeds of each setting that are still to be run, the dearest first.

What is decided depends on results only, not on when they came: however a sweep is interrupted, it
ends with the same runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.numbers.intervals import mean_interval
from datacollect.study.axes import Labels, shown_labels
from datacollect.study.jobs import RunGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from datacollect.study.experiment import Experiment
    from datacollect.study.seeds import Precision


RunId: TypeAlias = tuple[Labels, Labels, int]

# How often a lost job is handed out again.
MOST_ATTEMPTS = 3

# Fluid runs of a job at most, and about how many seconds it is to take: a sweep reports its
# progress by jobs, and with a worker a job is lost.
FLUID_RUNS, JOB_S = 200, 5.0


@dataclass
class SweepPlan:
    """The runs of an experiment: done, failed, handed out, to do.

    Attributes
    ----------
    experiment : Experiment
    rows : dict
        Row of the results of every run that is done, by setting, treatment and seed.
    failed : set
        Runs that failed, and are not tried again.
    """

    experiment: Experiment
    rows: dict[RunId, Mapping[str, Any]] = field(default_factory=dict)
    failed: set[RunId] = field(default_factory=set)

    def __post_init__(self) -> None:
        experiment = self.experiment
        self._settings, self._treatments = experiment.settings(), experiment.treatments()
        seeds = experiment.seeds
        self._numbers = [seeds.most] if experiment.precision is None else seeds.numbers()
        self._step = dict.fromkeys(self._settings, 0)  # index into _numbers
        self._todo: dict[Labels, list[RunGroup]] = {setting: [] for setting in self._settings}
        self._out = dict.fromkeys(self._settings, 0)  # groups handed out
        self._attempts: dict[RunGroup, int] = {}
        self._guess = {setting: self._guessed_cost(setting) for setting in self._settings}
        self._cpu_cost: dict[Labels, tuple[int, float]] = {}  # runs, seconds
        self.finished: set[Labels] = set()
        self.last_failure = ""

    # What comes in --------------------------------------------------------------------------

    def add_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take note of runs that are done."""
        for row in rows:
            run = self._id(row, int(row["seed"]))
            if not self._is_of_this(run):
                continue
            self.rows[run] = row
            self.failed.discard(run)
            n, cpu_cost_s = self._cpu_cost.get(run[0], (0, 0.0))
            self._cpu_cost[run[0]] = n + 1, cpu_cost_s + self.cpu_cost_s(row)

    def add_failures(self, failures: Iterable[Mapping[str, Any]]) -> None:
        """Take note of runs that failed."""
        for failure in failures:
            run = self._id(failure["labels"], int(failure["seed"]))
            if self._is_of_this(run) and run not in self.rows:
                self.failed.add(run)
                what = shown_labels(failure["labels"])
                self.last_failure = f"{what}, seed {run[2]}: {failure['reason']}"

    def cpu_cost_s(self, row: Mapping[str, Any]) -> float:
        """Return the processor time of a run, and of its part of the measurement."""
        return float(row["cpu_s"]) + float(row["probes_cpu_s"]) / len(self._treatments)

    def begin(self) -> None:
        """Find what is to do, once all is noted that is there."""
        for setting in self._settings:
            self._go_on(setting)

    def end_job(self, groups: Sequence[RunGroup]) -> None:
        """Take note that a job has ended; its runs are noted."""
        for group in groups:
            self._out[group.setting] -= 1
        for setting in dict.fromkeys(group.setting for group in groups):
            if not self._out[setting] and not self._todo[setting]:
                self._go_on(setting)

    def lose_job(self, groups: Sequence[RunGroup]) -> list[RunGroup]:
        """Take back a job that was lost; return groups that are given up.

        Which of several runs is to blame is unknown: each is tried by itself.
        """
        given_up = []
        for group in groups:
            alone = len(groups) == len(group.treatments) == 1
            attempts = self._attempts.get(group, 0) + alone
            if attempts >= MOST_ATTEMPTS:
                given_up.append(group)
                continue
            self._out[group.setting] -= 1
            for treatment in group.treatments:
                single = RunGroup(group.setting, group.seed, (treatment,))
                self._attempts[single] = attempts
                self._todo[group.setting].append(single)
        return given_up

    # What goes out --------------------------------------------------------------------------

    def next_job(self, n_workers: int) -> tuple[RunGroup, ...]:
        """Return the groups of the next job; none where nothing is to do for now.

        One group as long as the time of runs is unknown.
        """
        most, left_s = 1, JOB_S if self._cpu_cost else 0.0
        if self.experiment.engine == "fluid":
            n_todo = sum(map(len, self._todo.values()))
            share = math.ceil(n_todo / n_workers)
            most = max(1, min(FLUID_RUNS // len(self._treatments), share))
        groups: list[RunGroup] = []
        for setting in sorted(self._settings, key=self.cost, reverse=True):
            todo = self._todo[setting]
            while todo and len(groups) < most and (not groups or left_s > 0):
                alone = todo[0] in self._attempts
                if alone and groups:
                    return tuple(groups)
                groups.append(todo.pop(0))
                left_s -= self.cost(setting) * len(groups[-1].treatments)
                self._out[setting] += 1
                if alone:
                    return tuple(groups)
        return tuple(groups)

    def cost(self, setting: Labels) -> float:
        """Return about how many seconds of processor time one run of a setting takes."""
        if setting in self._cpu_cost:
            n, cpu_cost_s = self._cpu_cost[setting]
            return cpu_cost_s / n
        known = sum(self._guess[other] * n for other, (n, _) in self._cpu_cost.items())
        cpu_cost_s = sum(cost_s for _, cost_s in self._cpu_cost.values())
        return self._guess[setting] * (cpu_cost_s / known if known else 1.0)

    def remaining_cost_s(self) -> float:
        """Return about how much processor time is left for what is known to be to do."""
        per_group = len(self._treatments)
        left = {
            setting: self._out[setting] * per_group
            + sum(len(g.treatments) for g in self._todo[setting])
            for setting in self._settings
        }
        return sum(n * self.cost(setting) for setting, n in left.items() if n)

    def n_remaining(self) -> int:
        """Return how many runs are known to be to do."""
        waiting = sum(len(group.treatments) for todo in self._todo.values() for group in todo)
        return waiting + sum(self._out.values()) * len(self._treatments)

    # ----------------------------------------------------------------------------------------

    def _go_on(self, setting: Labels) -> None:
        """Fill in what is to do: missing seeds, or the next batch, or nothing."""
        while True:
            step = self._step[setting]
            missing = self._missing(setting, self._numbers[step - 1] if step else 0, step)
            if missing:
                self._todo[setting] = missing
                return
            is_last = step + 1 == len(self._numbers)
            if is_last or self._is_precise(setting, self._numbers[step]):
                self.finished.add(setting)
                return
            self._step[setting] += 1

    def _missing(self, setting: Labels, begin: int, step: int) -> list[RunGroup]:
        groups = []
        for seed in self.experiment.seeds.seeds(self._numbers[step])[begin:]:
            treatments = tuple(t for t in self._treatments if not self._has((setting, t, seed)))
            if treatments:
                groups.append(RunGroup(setting, seed, treatments))
        return groups

    def _is_of_this(self, run: RunId) -> bool:
        """Return whether it is of the part of the experiment that is run."""
        return run[0] in self._todo and run[1] in self._treatments

    def _has(self, run: RunId) -> bool:
        return run in self.rows or run in self.failed

    def _is_precise(self, setting: Labels, n: int) -> bool:
        precision = self.experiment.precision
        if precision is None:
            return True
        seeds = self.experiment.seeds.seeds(n)
        for treatment in self._treatments:
            rows = [self.rows.get((setting, treatment, seed)) for seed in seeds]
            for column in precision.of:
                values = [float(row[column]) for row in rows if row is not None]
                if not is_precise(values, precision):
                    return False
        return True

    def _id(self, row: Mapping[str, Any], seed: int) -> RunId:
        setting = tuple(str(row[axis.name]) for axis in self.experiment.setting_axes())
        treatment = tuple(str(row[axis.name]) for axis in self.experiment.paired_axes())
        return setting, treatment, seed

    def _guessed_cost(self, setting: Labels) -> float:
        """A number in proportion to a run's cost, as far as one knows before: flows × bytes."""
        first = self.experiment.seeds.first
        scenario = self.experiment.scenario_of(setting, self._treatments[0], first)
        n_flows = int(scenario.sections.get("background", {}).get("flows", 0))
        return float(scenario.sections["scale"]) * (10 + n_flows)


def is_precise(values: Sequence[float], precision: Precision) -> bool:
    """Return whether the mean's confidence interval (Student's t) is narrow enough.

    What is not there (NaN: a run that did not end, or no such traffic) does not count; with
    nothing there, nothing becomes more precise.

    >>> from datacollect.study.seeds import Precision
    >>> wanted = Precision(half_width=0.05, confidence=0.95, of=("makespan_s",))
    >>> is_precise([10.0, 10.1, 9.9], wanted), is_precise([10.0, 12.0, 8.0], wanted)
    (True, False)
    """
    interval = mean_interval(values, precision.confidence)
    return interval.n == 0 or interval.relative_half_width <= precision.half_width
