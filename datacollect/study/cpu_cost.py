"""Processor time that results took: one number for every place that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.files.units import format_duration

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ProcessorTime:
    """Seconds of processor time.

    Attributes
    ----------
    runs_s : float
        Of the runs: the sum of their ``cpu_s``.
    measurements_s : float
        Of the measurements before them. All methods of a setting and seed share one.
    """

    runs_s: float
    measurements_s: float

    @property
    def total_s(self) -> float:
        """Runs and measurements together."""
        return self.runs_s + self.measurements_s

    @property
    def words(self) -> str:
        """For people.

        >>> ProcessorTime(runs_s=2.0, measurements_s=70.0).words
        '1 min 12 s of processor time (runs 2 s, measurements 1 min 10 s)'
        """
        runs, measured = format_duration(self.runs_s), format_duration(self.measurements_s)
        total = format_duration(self.total_s)
        return f"{total} of processor time (runs {runs}, measurements {measured})"


def processor_time(table: pd.DataFrame) -> ProcessorTime:
    """Return the processor time of all rows of results.

    Runs that share a measurement have the same time of it, to the last digit: it counts once,
    also where settings share it, such as those whose estimates are wrong by more and less.

    Parameters
    ----------
    table : DataFrame
        Has ``datacollect.study.columns.COLUMNS``.

    Examples
    --------
    Two methods of one seed, 3 s each, share a measurement of 10 s.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"seed": [1, 1], "cpu_s": 3.0, "probes_cpu_s": 10.0})
    >>> processor_time(table).total_s
    16.0
    """
    measured = table[["seed", "probes_cpu_s"]].drop_duplicates()
    return ProcessorTime(float(table["cpu_s"].sum()), float(measured["probes_cpu_s"].sum()))
