"""A sweep's own results: how long each method takes in each setting, and against one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.kinds import shown_text
from datacollect.numbers.intervals import mean_interval
from datacollect.study.axes import paired, unpaired
from datacollect.study.chance import Chance, chance_in
from datacollect.study.cpu_cost import ProcessorTime, processor_time
from datacollect.study.report.figures import draw_panels, panel_groups
from datacollect.study.report.headings import axis_heading
from datacollect.study.report.panels import panels_of
from datacollect.study.report.setting_runs import paired_ratio, settings_run
from datacollect.study.report.tables import named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from datacollect.study.axes import Labels
    from datacollect.study.report.folders import SweepFolder
    from datacollect.study.report.panels import Panel
    from datacollect.study.report.setting_runs import SettingRuns

RATIO = "over_base"


@dataclass(frozen=True, eq=False)
class OwnResults:
    """Own results of a sweep.

    Attributes
    ----------
    table : DataFrame
        A row for each setting and treatment, in the file's order. Columns: the axes with their
        labels; ``seeds`` that are complete, ``incomplete``; ``connections``, their mean;
        ``makespan_s`` with ``makespan_s_low`` and ``_high``, the mean over seeds and its 95 %
        interval; ``base``, the labels of what it is compared with; ``over_base`` with
        ``over_base_low`` and ``_high``, its makespan over that one's: the geometric mean over the
        seeds of both, paired, whose number is ``pairs``. NaN, empty and 0 where there is no such
        thing.
    axes : tuple of str
        Those of which several labels have been run, or all where that leaves none; first those
        that make settings, as rows are sorted.
    base : str
        What all are compared with, in words; empty where that is nothing, or not one and the same.
    """

    table: pd.DataFrame
    axes: tuple[str, ...]
    base: str


@dataclass(frozen=True, eq=False)
class SweepReport:
    """Report on one sweep.

    Attributes
    ----------
    name : str
    engine : str
    own : OwnResults
        How long each method takes in each setting.
    headings : mapping
        What its axes are called, with their units, by name.
    chance : Chance
        Whether seeds differ at all.
    cpu_cost : ProcessorTime
    n_runs : int
    title : str
        Over its figures.
    panels : tuple of Panel
        What they show.
    """

    name: str
    engine: str
    own: OwnResults
    headings: Mapping[str, str]
    chance: Chance
    cpu_cost: ProcessorTime
    n_runs: int
    title: str
    panels: tuple[Panel, ...]

    def plots(self) -> list[Figure]:
        """Draw its figures, in the order of the report's files; none where no axis has values."""
        return [draw_panels(panels, self.title) for panels in panel_groups(self.panels)]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it but the results, which `rows` has."""
        return {
            "name": self.name,
            "engine": self.engine,
            "runs": self.n_runs,
            "cpu_s": self.cpu_cost.total_s,
            "runs_cpu_s": self.cpu_cost.runs_s,
            "measurements_cpu_s": self.cpu_cost.measurements_s,
            "nothing_is_random": self.chance.has_no_part,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return own results as plain data, one for each setting and treatment."""
        records = self.own.table.to_dict("records")
        return [{"sweep": self.name, **{str(k): v for k, v in row.items()}} for row in records]


def sweep_report(sweep: SweepFolder, over: Mapping[str, str] | None = None) -> SweepReport:
    """Return what a report says of one sweep; `over` as `own_results` takes it."""
    return SweepReport(
        name=sweep.name,
        engine=sweep.engine,
        own=own_results(sweep, over),
        headings={axis.name: axis_heading(axis) for axis in sweep.axes},
        chance=chance_in(sweep.table, sweep.axes),
        cpu_cost=processor_time(sweep.table),
        n_runs=len(sweep.table),
        title=str(sweep.tree.get("title") or sweep.name),
        panels=tuple(panels_of(sweep)),
    )


def own_results(sweep: SweepFolder, over: Mapping[str, str] | None = None) -> OwnResults:
    """Return a sweep's own results.

    Parameters
    ----------
    sweep : SweepFolder
    over : mapping, optional
        Label by paired axis: what all others are compared with, alike in the axes that are not
        named. By default direct with one connection per source, or, where that was not run, the
        first treatment in the file.
    """
    import pandas as pd

    rows = []
    for setting in settings_run(sweep):
        for treatment, runs in setting.treatments.items():
            base = _base(sweep, setting, treatment, over or {})
            others = None if base is None else setting.treatments[base]
            ratio = paired_ratio(runs, others, "makespan_s")
            rows.append(
                {
                    **setting.labels(treatment),
                    "seeds": int(runs["complete"].sum()),
                    "incomplete": int((~runs["complete"]).sum()),
                    "connections": float(runs["connections"].mean()),
                    **named("makespan_s", mean_interval(runs["makespan_s"]).from_zero()),
                    "base": "" if base is None else _words(sweep, base),
                    **named(RATIO, ratio),
                    "pairs": ratio.n,
                }
            )
    table = pd.DataFrame(rows)
    names = [axis.name for axis in (*unpaired(sweep.axes), *paired(sweep.axes))]
    varied = [name for name in names if len(set(table[name])) > 1]
    bases = set(table["base"])
    return OwnResults(table, tuple(varied or names), bases.pop() if len(bases) == 1 else "")


def require_over(sweeps: Sequence[SweepFolder], over: Mapping[str, str]) -> None:
    """Refuse to compare with what none of the sweeps has.

    Raises
    ------
    ProblemError
        There is no such axis or label, or it is not paired.
    """
    for name, label in over.items():
        axes = [axis for sweep in sweeps for axis in sweep.axes if axis.name == name]
        known = list(dict.fromkeys(axis.name for sweep in sweeps for axis in paired(sweep.axes)))
        listed = f"there are {', '.join(known)}" if known else "none is"
        if not axes:
            raise ProblemError(f"--over: no axis is called {name!r}; of the paired axes {listed}")
        if not any(axis.paired for axis in axes):
            raise ProblemError(
                f"--over: the axis {name!r} is not paired: its values meet other networks, and "
                f"cannot be compared seed for seed; of the paired axes {listed}"
            )
        labels = list(dict.fromkeys(label for axis in axes for label in axis.labels))
        if label not in labels:
            listed = f"; there are {', '.join(map(shown_text, labels[:8]))}"
            raise ProblemError(
                f"--over: the axis {name!r} has no label {label!r}"
                f"{nearest_hint(label, labels) or listed}"
            )


def _base(
    sweep: SweepFolder, setting: SettingRuns, treatment: Labels, over: Mapping[str, str]
) -> Labels | None:
    """Labels of what a treatment is compared with; None where that has not been run."""
    axes = paired(sweep.axes)
    if any(axis.name in over for axis in axes):
        base = tuple(over.get(a.name, own) for a, own in zip(axes, treatment, strict=True))
        return base if base in setting.treatments else None
    direct = setting.reference(treatment, "direct")
    for other, runs in setting.treatments.items():
        if runs is direct:
            return other
    return next(iter(setting.treatments)) if axes else None


def _words(sweep: SweepFolder, treatment: Labels) -> str:
    """Labels of a treatment without those that never vary."""
    several = [len(set(sweep.table[axis.name])) > 1 for axis in paired(sweep.axes)]
    shown = [label for label, varies in zip(treatment, several, strict=True) if varies]
    return ", ".join(shown or treatment)
