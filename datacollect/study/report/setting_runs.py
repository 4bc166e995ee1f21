"""The runs of one setting, method by method, and with which of them each method is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.numbers.intervals import Interval, ratio_interval
from datacollect.study.axes import paired, unpaired
from datacollect.study.report.ratio_of_means import ratio_of_means

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from datacollect.study.axes import Axis, Labels
    from datacollect.study.report.folders import SweepFolder

# What is compared with what: the column of the ratio, and in words.
REFERENCES = {
    "direct": "direct, one connection per source",
    "as_many": "direct with as many connections",
    "coordinated": "coordinated, the first in the file",
    "ours": "ours: coordinated, pipelined, all as soon as possible",
}

# Numbers of connections count as the same where they differ by this part at most.
AS_MANY = 0.1


@dataclass(frozen=True, eq=False)
class SettingRuns:
    """All runs of one setting.

    Attributes
    ----------
    sweep : SweepFolder
    setting : tuple of str
        Labels of the axes that are not paired.
    treatments : dict
        Runs indexed by seed, by the labels of the paired axes.
    methods : dict
        What the scenario says in [method], likewise.
    """

    sweep: SweepFolder
    setting: Labels
    treatments: dict[Labels, pd.DataFrame]  # indexed by seed
    methods: dict[Labels, Mapping[str, Any]]

    def labels(self, treatment: Labels) -> dict[str, str]:
        """Return the label of each axis, in the file's order."""
        return self.sweep.labels(self.setting, treatment)

    def reference(self, treatment: Labels, name: str) -> pd.DataFrame | None:
        """Runs of the reference that differs least otherwise.

        Coordinated is the first of the file that is, so that variants are compared with it rather
        than each with itself. Direct with as many connections is the variant of direct whose mean
        number is nearest, where it is near enough (`are_as_many`).
        """
        own, own_runs = self.methods[treatment], self.treatments[treatment]
        if name == "as_many" and own["name"] == "direct":
            return None
        candidates = [w for w, method in self.methods.items() if _is_reference(method, name)]
        if name == "as_many":
            candidates = [w for w in candidates if are_as_many(self.treatments[w], own_runs)]
        if not candidates:
            return None
        # Of the labels those that have to be the same, as far as possible.
        at = [
            i
            for i, axis in enumerate(paired(self.sweep.axes))
            if name == "direct" or not axis.changes_method
        ]

        def likeness(other: Labels) -> tuple[float, ...]:
            same = sum(treatment[i] == other[i] for i in at)
            if name in ("coordinated", "ours"):
                return (same,)
            theirs = self.methods[other]
            alike = sum(theirs.get(key) == value for key, value in own.items())
            if name == "direct":
                return same, alike
            apart = abs(_connections(self.treatments[other]) - _connections(own_runs))
            return same, -apart, theirs.get("streams_as") == own["name"], alike

        return self.treatments[max(candidates, key=likeness)]


def _is_reference(method: Mapping[str, Any], name: str) -> bool:
    if name == "coordinated":
        return bool(method["name"] == "coordinated")
    if name == "ours":
        return is_plain_ours(method)
    if name == "direct":
        return is_plain_direct(method)
    return bool(method["name"] == "direct")


def are_as_many(some: pd.DataFrame, others: pd.DataFrame) -> bool:
    """Say whether two methods' runs have the same number of connections, to 10 % of the means."""
    a, b = _connections(some), _connections(others)
    return abs(a - b) <= AS_MANY * max(a, b)


def _connections(runs: pd.DataFrame) -> float:
    return float(runs["connections"].mean())


def is_plain_direct(method: Mapping[str, Any]) -> bool:
    """Return whether a method is direct over one connection per source, all at the same time.

    >>> is_plain_direct({"name": "direct"}), is_plain_direct({"name": "direct", "streams": 4})
    (True, False)
    """
    return (
        method["name"] == "direct"
        and method.get("streams", 1) == 1
        and not any(
            method.get(key)
            for key in ("streams_as", "total_streams", "at_a_time", "time_slot_s", "order")
        )
    )


def is_plain_ours(method: Mapping[str, Any]) -> bool:
    """Say whether a method is the coordinated one, pipelined, planned once, with one lane per hop.

    >>> is_plain_ours({"name": "coordinated"}), is_plain_ours({"name": "coordinated", "slot_s": 2})
    (True, False)
    """
    others = ("slot_s", "scaled_slot_s", "chunk_s", "replan_s")
    return (
        method["name"] == "coordinated"
        and method.get("timing", "asap") == "asap"
        and method.get("lanes", 1) == 1
        and not any(method.get(key) for key in others)
    )


def settings_run(sweep: SweepFolder) -> Iterator[SettingRuns]:
    """The settings that have been run, in the file's order."""
    found = dict(_by_labels(sweep.table, unpaired(sweep.axes)))
    for setting in sweep.settings():
        if setting not in found:
            continue
        runs = dict(_by_labels(found[setting], paired(sweep.axes)))
        treatments: dict[Labels, pd.DataFrame] = {}
        methods: dict[Labels, Mapping[str, Any]] = {}
        for treatment in sweep.treatments():
            if treatment in runs:
                treatments[treatment] = runs[treatment].set_index("seed").sort_index()
                scenario = sweep.scenario(sweep.labels(setting, treatment))
                methods[treatment] = {"name": "coordinated", **scenario.get("method", {})}
        yield SettingRuns(sweep, setting, treatments, methods)


def _by_labels(table: pd.DataFrame, axes: Sequence[Axis]) -> Iterator[tuple[Labels, pd.DataFrame]]:
    if not axes:
        yield (), table
        return
    for key, rows in table.groupby([axis.name for axis in axes], sort=False):
        yield tuple(map(str, key)), rows


def paired_ratio(above: pd.DataFrame, below: pd.DataFrame | None, column: str) -> Interval:
    """Return the ratio of two methods' runs, seed for seed; of nothing without a second."""
    if below is None or above.empty or below.empty:
        return ratio_interval([], [])
    return ratio_interval(above[column], below[column].reindex(above.index))


def storage_ratio(above: pd.DataFrame, below: pd.DataFrame | None) -> Interval:
    """Return what sources store at most over what they store by another method: a ratio of means.

    Per run the mean of the sources' most, then the mean over seeds. Results made before bytes were
    kept have the mean of single sources' ratios only: that stands in, over the other's.
    """
    if below is None or above.empty or below.empty:
        return ratio_of_means([], [])
    is_kept = bool(above["storage_bytes"].notna().all() and below["storage_bytes"].notna().all())
    column = "storage_bytes" if is_kept else "storage_mean"
    return ratio_of_means(above[column], below[column].reindex(above.index))
