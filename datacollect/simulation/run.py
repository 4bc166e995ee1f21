"""Results of a simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.files.notebook import html_of_facts
from datacollect.files.units import counted, format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    # Called now and then, with the simulated time and the bytes collected.
    OnProgress: TypeAlias = Callable[[float, int], None]


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of carrying out one schedule in one simulated network.

    Attributes
    ----------
    engine : str
        ``"fluid"`` or ``"ns3"``, with its version in `settings`.
    complete : bool
        Whether every byte reached the destination; False after a time limit.
    makespan_s : float
        Last arrival at the destination; NaN where incomplete.
    collected_bytes : int
        What had reached the destination at the end.
    source_finish_s : dict of str to float
        When the last byte of each source arrived; NaN where it had not.
    storage : DataFrame
        Columns host, time_s, own_bytes, others_bytes: what each host stores over time.
    routes : DataFrame
        Columns source, from, to, bytes: what went over which hop.
    background : DataFrame
        Columns flow, kind, phase ("before", "during", "after"), goodput_bytes_per_s.
    wires : DataFrame
        Columns wire, from, to, utilisation, dropped_packets.
    connections : DataFrame
        Columns connection, from, to, via, hops, asked_s, opened_s, first_byte_s, last_byte_s,
        closed_s, bytes, stalls, retransmissions: a log that finds a stuck one. A chain has its
        relays, with spaces between, as ``via``; it counts as many connections as it has hops.
    events : int
        Events that the engine handled.
    cpu_s : float
        Processor time of the simulation.
    settings : dict
        Everything that shaped the run: versions, seed, transport, options.
    """

    engine: str
    complete: bool
    makespan_s: float
    collected_bytes: int
    source_finish_s: dict[str, float]
    storage: pd.DataFrame
    routes: pd.DataFrame
    background: pd.DataFrame
    wires: pd.DataFrame
    connections: pd.DataFrame
    events: int
    cpu_s: float
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        collected = counted(self.collected_bytes, "byte")
        return f"<Run: {self.engine}, {self._end}, {collected} collected>"

    def _repr_html_(self) -> str:
        """Show the run in a notebook."""
        makespan = format_duration(self.makespan_s) if self.complete else self._end
        n_ended = sum(not math.isnan(finish_s) for finish_s in self.source_finish_s.values())
        return html_of_facts(
            "Run",
            [
                ("engine", self.engine),
                ("makespan", makespan),
                ("collected", format_bytes(self.collected_bytes)),
                ("sources that ended", f"{n_ended} of {len(self.source_finish_s)}"),
                ("connections", str(len(self.connections))),
            ],
        )

    @property
    def _end(self) -> str:
        return f"makespan {self.makespan_s:g} s" if self.complete else "not complete"

    def peak_storage_bytes(self) -> pd.DataFrame:
        """Return the most that each host ever stores.

        Returns
        -------
        DataFrame
            Indexed by host: columns own_bytes, others_bytes.

        Examples
        --------
        >>> import datacollect as dc
        >>> scenario = {
        ...     "topology": {"kind": "two-domains"},
        ...     "hosts": {
        ...         "destination": {"at": "A0"},
        ...         "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
        ...     },
        ... }
        >>> run = dc.simulate(scenario, engine="fluid", method="direct")
        >>> int(run.peak_storage_bytes().loc["D", "own_bytes"])
        0
        """
        return self.storage.groupby("host")[["own_bytes", "others_bytes"]].max()
