"""Cycles of measurements: which samples were taken in one pass over the links.

In a cycle links are tested one after another, within hours, so that what a bad evening does to many
links stands in one cycle. Who draws from measurements draws whole cycles: what goes together stays
together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError
from datacollect.measurement.reading import read_measurements
from datacollect.measurement.sample_rules import ruled
from datacollect.measurement.sample_store import SUFFIX, read_parts, samples_of
from datacollect.measurement.unlike import of_one_kind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    import pandas as pd

    from datacollect.numbers.arrays import IntArray

# How the names of a cycle's tests begin: its number, and when it began.
_OF_CYCLE = re.compile(r"cycle-\d+-\d+-")

# As remedies of who reads measurements name them.
_OPTION = re.compile(r"(?<![\w-])--[a-z]")

# Tests of several links at once, of settings varied on purpose, and probes, whose rate is none of
# a connection's.
NOT_OF_ONE_LINK = ("scan", "flood", "shared", "pairs")


@dataclass(frozen=True, eq=False)
class Cycles:
    """Samples of links, cycle by cycle.

    Attributes
    ----------
    samples : DataFrame
        Columns from, to, time_s, bandwidth_bytes_per_s and cycle, which counts from 0 in the order
        in which cycles began; of each link tests of one kind.
    notes : tuple of str
        What was left out.
    """

    samples: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Return how many cycles there are."""
        return int(self.samples["cycle"].nunique())

    @property
    def newest_s(self) -> float:
        """Return when the newest sample was taken, in seconds since 1970."""
        return float(self.samples["time_s"].max())


def read_cycles(path: str | PathLike[str]) -> Cycles:
    """Read the cycles of a folder that tests have written into, or of files that `estimate` reads.

    Raises
    ------
    ProblemError
        There is no such folder, or no sample of a link's bandwidth in it.
    """
    folder = Path(path)
    if not any(folder.glob(f"*{SUFFIX}")):
        try:
            found = read_measurements([path])
        except ProblemError as error:
            if not _OPTION.search(str(error)):
                raise
            raise ProblemError(
                f"{error}; only `datacollect estimate` has these options, scenarios cannot use "
                "them: change the file, or, in Python, read it by dc.read_samples with these "
                "options, and give the result"
            ) from None
        return cycles_of(found.samples, found.notes)
    stored = read_parts(folder)
    notes = [f"{folder / name} is damaged and left out" for name in stored.damaged]
    frame = stored.frame.assign(named=[_cycle_of(test) for test in stored.tests])
    found_rows = ruled(frame)
    frame, notes = found_rows.samples, [*notes, *found_rows.notes]
    counts = ~frame["beside_pull"].isin([True]) & ~frame["tool"].isin(NOT_OF_ONE_LINK)
    samples = samples_of(frame[counts])
    if samples.empty:
        raise ProblemError(
            f"{folder}: no test of one link with connections has measured a bandwidth; measure a "
            "cycle first, or name another folder"
        )
    return cycles_of(samples.assign(named=frame.loc[samples.index, "named"]), notes)


def _cycle_of(test: str) -> str:
    """Return how the names of a cycle's tests begin; empty for a test of no cycle."""
    found = _OF_CYCLE.match(test)
    return "" if found is None else found.group()


def cycles_of(samples: pd.DataFrame, notes: Iterable[str] = ()) -> Cycles:
    """Return the cycles of samples.

    Parameters
    ----------
    samples : DataFrame
        With from, to, time_s and bandwidth_bytes_per_s; a column named says which cycle a sample is
        of, where that is known. Elsewhere a cycle ends where a link is tested again.
    notes : iterable of str
        On how they were read.

    Raises
    ------
    ProblemError
        There are none.

    Examples
    --------
    >>> import pandas as pd
    >>> samples = pd.DataFrame({"from": ["S", "T", "S", "T"], "to": "D", "time_s": [0, 1, 9, 10]})
    >>> cycles_of(samples.assign(bandwidth_bytes_per_s=5.0)).samples["cycle"].tolist()
    [0, 0, 1, 1]
    """
    alike = of_one_kind(samples)
    if alike.samples.empty:
        raise ProblemError("there is no sample of a bandwidth; give tests of bandwidth")
    ordered = alike.samples.sort_values("time_s", kind="stable", ignore_index=True)
    columns = ["from", "to", "time_s", "bandwidth_bytes_per_s"]
    found = ordered[columns].assign(cycle=_cycle_numbers(ordered))
    return Cycles(found, (*notes, *alike.notes))


def _cycle_numbers(samples: pd.DataFrame) -> IntArray:
    """Return the cycle of each sample, which are in order of time."""
    named = samples["named"].tolist() if "named" in samples else [""] * len(samples)
    keys: list[object] = []
    seen: set[tuple[str, str]] = set()
    n_passes = 0
    for name, tail, head in zip(named, samples["from"], samples["to"], strict=True):
        if not name:
            if (tail, head) in seen:
                seen.clear()
                n_passes += 1
            seen.add((tail, head))
        keys.append(name or n_passes)
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)
