"""Problems drawn from tables of measured bandwidths: who has data, and who collects it.

Plans are made on one table and judged on another, measured later: what estimates that have aged
are worth.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes, write_atomically
from datacollect.files.units import bytes_per_s_from_bit_per_s
from datacollect.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

PROBLEM_FILE, TRUTH_FILE = "problem.json", "truth.csv"


@dataclass(frozen=True)
class Grids:
    """Two tables of measured bandwidths, and what to draw from them.

    Attributes
    ----------
    planned_csv, truth_csv : str
        Tables that plans are made on, and that hold when they are carried out.
    hosts_csv : str or None
        A further table that drawn hosts must be in, so that others' draws are the same.
    columns : tuple of str
        Their columns of the sending host, the receiving host and bits per second. The mean counts
        where a pair was measured more than once.
    sources : int
        Hosts with data, drawn.
    backlog_bytes : int
        Of each source.
    relays : int or None
        Further hosts, drawn; None: all others.
    share : float
        Factor on all bandwidths, of links and not of hosts.
    limits : tuple of dict
        What hosts whose names begin with `prefix` send and receive at most in all:
        ``uplink_bytes_per_s``, ``downlink_bytes_per_s``.
    folder : Path
        What the tables' names are relative to.
    """

    planned_csv: str
    truth_csv: str
    hosts_csv: str | None
    columns: tuple[str, ...]
    sources: int
    backlog_bytes: int
    relays: int | None
    share: float
    limits: tuple[Mapping[str, Any], ...]
    folder: Path

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], folder: Path) -> Grids:
        """Return the grids that an experiment file describes, as `fields.GRIDS` reads them."""
        columns, limits = tuple(fields["columns"]), tuple(fields["limits"])
        return cls(**{**fields, "columns": columns, "limits": limits}, folder=folder)

    def write(self, seed: int, folder: Path) -> None:
        """Draw a problem, and write it and the bandwidths that there really are into a folder.

        Raises
        ------
        ProblemError
            A table cannot be read, or has too few hosts.
        """
        planned, truth = self.table(self.planned_csv), self.table(self.truth_csv)
        names = self._drawn(self.hosts(planned, truth), seed)
        backlog = [0] + [self.backlog_bytes] * self.sources
        problem = Problem.from_matrix(
            names,
            planned.loc[names, names].to_numpy() * self.share,
            backlog + [0] * (len(names) - len(backlog)),
            names[0],
            uplink_bytes_per_s=self._limits(names, "uplink_bytes_per_s"),
            downlink_bytes_per_s=self._limits(names, "downlink_bytes_per_s"),
        )
        write_atomically(folder / PROBLEM_FILE, json.dumps(problem.to_dict()).encode())
        rates = truth.loc[names, names].to_numpy() * self.share
        one, other = np.nonzero(rates)
        lines = ["from,to,bandwidth_bytes_per_s"]
        lines += [
            f"{names[a]},{names[b]},{float(rates[a, b])!r}" for a, b in zip(one, other, strict=True)
        ]
        write_atomically(folder / TRUTH_FILE, "\n".join(lines).encode())

    def hosts(self, *tables: pd.DataFrame) -> list[str]:
        """Return the hosts that are in all tables, and in `hosts_csv` if there is one."""
        if self.hosts_csv is not None:
            tables = (*tables, self.table(self.hosts_csv))
        one, *others = tables
        return [str(name) for name in one.index if all(name in t.index for t in others)]

    def table(self, name: str) -> pd.DataFrame:
        """Return bytes per second: row = from, column = to, 0 where nothing was measured."""
        return _read(self.folder / name, self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the folder."""
        return {key: value for key, value in vars(self).items() if key != "folder"}

    def by_content(self) -> dict[str, Any]:
        """Return the same with the hash of each table instead of its name."""
        hashes = {
            key: hashlib.sha256(read_bytes(self.folder / getattr(self, key))).hexdigest()
            for key in ("planned_csv", "truth_csv", "hosts_csv")
            if getattr(self, key) is not None
        }
        return self.to_dict() | hashes

    def _drawn(self, names: list[str], seed: int) -> list[str]:
        """The destination, the sources, the relays."""
        wanted = 1 + self.sources + (self.relays or 0)
        if len(names) < wanted:
            raise ProblemError(
                f"grids: only {len(names)} hosts are in all tables, but destination, sources and "
                f"relays need {wanted}; draw fewer"
            )
        n = len(names) if self.relays is None else wanted
        return [names[i] for i in np.random.default_rng(seed).permutation(len(names))[:n]]

    def _limits(self, names: list[str], key: str) -> list[float]:
        return [
            next((limit[key] for limit in self.limits if name.startswith(limit["prefix"])), np.inf)
            for name in names
        ]


@cache
def _read(file: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    import io

    import pandas as pd

    name = document_name(file)
    try:
        measured = pd.read_csv(io.BytesIO(read_bytes(file)), usecols=list(columns))
    except ValueError as error:
        raise ProblemError(f"{name}: {error}; name the table's columns in grids.columns") from None
    sender, receiver, rate = columns
    grid = measured[measured[sender] != measured[receiver]].pivot_table(
        index=sender, columns=receiver, values=rate, aggfunc="mean"
    )
    names = sorted(set(grid.index) | set(grid.columns))
    table = grid.reindex(index=names, columns=names).fillna(0.0)
    return table.map(bytes_per_s_from_bit_per_s)
