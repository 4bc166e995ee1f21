"""Answer of a pull at its end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.notebook import html_of_facts
from datacollect.files.units import counted, format_bytes, format_duration

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.machine.own_time import ProcessorUse
    from datacollect.schedule.data.assumptions import Assumptions
    from datacollect.transfer.protocol.patterns import Narrowing
    from datacollect.transfer.protocol.source import Assurance
    from datacollect.transfer.store.state.state import Missing


def missing_entry(entry: Missing) -> dict[str, str]:
    """Return what is missing as plain data; names that are not UTF-8 have their bytes, too."""
    return {key: value for key, value in entry._asdict().items() if value is not None}


@dataclass(frozen=True)
class RouteUse:
    """Bytes of a route.

    Attributes
    ----------
    source : str
    hosts : tuple of str
        From the source to the destination.
    n_bytes : int
        New bytes, of this start.
    connections : int
        Most chains over it at a time.
    """

    source: str
    hosts: tuple[str, ...]
    n_bytes: int
    connections: int


@dataclass(frozen=True)
class ToCome:
    """Files of a source that are listed and have yet to come."""

    source: str
    n_files: int
    n_bytes: int


@dataclass(frozen=True)
class Differs:
    """A file that was there, and so much of it that the source has otherwise."""

    source: str
    path: str
    n_bytes: int


@dataclass(frozen=True)
class Wait:
    """Data of a source that wait at a relay, by a plan in slots.

    Attributes
    ----------
    source, relay : str
    n_bytes : int
    from_s, until_s : float
        From the first byte that is stored to the last that leaves, in seconds since 1970.
    """

    source: str
    relay: str
    n_bytes: int
    from_s: float
    until_s: float


@dataclass(frozen=True)
class WithSource:
    """Result of comparing what was there with its sources.

    Attributes
    ----------
    n_files, n_bytes : int
        That were as the sources have them.
    differing : tuple of Differs
        That were not, and were fetched again.
    not_compared : tuple of Missing
        That no hash at the source was to be had for, and why.
    """

    n_files: int
    n_bytes: int
    differing: tuple[Differs, ...]
    not_compared: tuple[Missing, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "files": self.n_files,
            "bytes": self.n_bytes,
            "differing": [
                {"source": each.source, "path": each.path, "bytes": each.n_bytes}
                for each in self.differing
            ],
            "not_compared": [missing_entry(each) for each in self.not_compared],
        }


@dataclass(frozen=True)
class Pulled:
    """Result of a pull.

    Attributes
    ----------
    complete : bool
        Whether every wanted source was listed to its end, and each of its files is there, verified
        when it came: of what this start has asked for.
    listed : bool
        Whether every wanted source was listed to its end.
    narrowed_to : Narrowing or None
        Which part of the collection this start has asked for; None: all of it.
    to_come : tuple of ToCome
        What is listed and not there, for each wanted source.
    with_source : WithSource or None
        What came of comparing what was there with its sources, where that was wanted.
    n_bytes, n_files : int
        What is there, verified, under its final name; of all starts.
    predicted_makespan_s : float or None
        By the first plan on known bandwidths, from this start; None where there was none.
    makespan_s : float
        From this start to the last byte recorded.
    method : str
    slot_s : float or None
        By slots of so long; None: nothing waited at relays.
    waits : tuple of Wait
        What waits where, by the plan of a start with `plan_only` in slots.
    routes : tuple of RouteUse
    refetched : dict of str to int
        Bytes received twice, by the reason.
    missing : tuple of Missing
        What could not be had, and why.
    assurances : tuple of Assurance
        What was verified of files of other servers, for each of them that has sent any.
    assumptions : Assumptions or None
        What the plan leans on, of a start with `plan_only`; None where bandwidths are not known.
    promised_p10_s, promised_p90_s : float or None
        Between these it was to end in eight of ten cases, from this start; None where bandwidths
        have no intervals.
    why : tuple of str
        Why it took longer than promised, by what it has measured of hosts and links.
    processor : ProcessorUse or None
        What it took of this host's processors, where the collection names the host's profile.
    """

    complete: bool
    n_bytes: int
    n_files: int
    predicted_makespan_s: float | None
    makespan_s: float
    method: str
    routes: tuple[RouteUse, ...]
    refetched: dict[str, int]
    missing: tuple[Missing, ...]
    assurances: tuple[Assurance, ...] = ()
    listed: bool = True
    narrowed_to: Narrowing | None = None
    to_come: tuple[ToCome, ...] = ()
    with_source: WithSource | None = None
    assumptions: Assumptions | None = None
    promised_p10_s: float | None = None
    promised_p90_s: float | None = None
    why: tuple[str, ...] = ()
    processor: ProcessorUse | None = None
    slot_s: float | None = None
    waits: tuple[Wait, ...] = ()

    @property
    def refetched_bytes(self) -> int:
        """All bytes received twice."""
        return sum(self.refetched.values())

    def __repr__(self) -> str:
        return (
            f"<Pulled: {self._whether}, {counted(self.n_files, 'file')}, "
            f"{counted(self.n_bytes, 'byte')} by {self.method} in {self.makespan_s:g} s, "
            f"{len(self.missing)} missing>"
        )

    def _repr_html_(self) -> str:
        """Show what came in a notebook."""
        return html_of_facts(
            "Pulled",
            [
                ("all there", self._whether),
                ("files", f"{self.n_files}, {format_bytes(self.n_bytes)}"),
                ("missing", str(len(self.missing))),
                ("method", self.method_text),
                ("this start", format_duration(self.makespan_s)),
                ("received twice", format_bytes(self.refetched_bytes)),
            ],
        )

    @property
    def method_text(self) -> str:
        """The method; with slots, in which all methods that have them plan alike, how long."""
        if self.slot_s is None:
            return self.method
        return f"{self.method}, in slots of {format_duration(self.slot_s)}"

    @property
    def _whether(self) -> str:
        of = "" if self.narrowed_to is None else f" of {self.narrowed_to.options}"
        return f"complete{of}" if self.complete else "not complete"

    def to_dataframe(self) -> pd.DataFrame:
        """Return what routes have brought as a table.

        Returns
        -------
        DataFrame
            A row for each of `routes`: source, hosts (tuple of names), bytes, connections.

        Examples
        --------
        >>> use = RouteUse("S", ("S", "D"), 5, 2)
        >>> found = Pulled(True, 5, 1, None, 2.0, "direct", (use,), {}, ())
        >>> found.to_dataframe()[["source", "bytes"]].to_dict("records")
        [{'source': 'S', 'bytes': 5}]
        """
        import pandas as pd

        rows = [(use.source, use.hosts, use.n_bytes, use.connections) for use in self.routes]
        return pd.DataFrame(rows, columns=["source", "hosts", "bytes", "connections"])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, as ``pull --json`` prints it.

        Returns
        -------
        dict
            ``bytes`` and ``files`` for `n_bytes` and `n_files`, otherwise the attributes' names.

        Examples
        --------
        >>> found = Pulled(True, 5, 1, None, 2.0, "direct", (), {"changed": 3}, ())
        >>> found.to_dict()["refetched_bytes"]
        3
        """
        return {
            "complete": self.complete,
            "listed": self.listed,
            "narrowed_to": None if self.narrowed_to is None else asdict(self.narrowed_to),
            "bytes": self.n_bytes,
            "files": self.n_files,
            "predicted_makespan_s": self.predicted_makespan_s,
            "promised_p10_s": self.promised_p10_s,
            "promised_p90_s": self.promised_p90_s,
            "makespan_s": self.makespan_s,
            "why": list(self.why),
            "processor": None if self.processor is None else asdict(self.processor),
            "method": self.method,
            "slot_s": self.slot_s,
            "routes": [
                {
                    "source": use.source,
                    "hosts": list(use.hosts),
                    "bytes": use.n_bytes,
                    "connections": use.connections,
                }
                for use in self.routes
            ],
            "refetched_bytes": self.refetched_bytes,
            "refetched": dict(self.refetched),
            "missing": [missing_entry(entry) for entry in self.missing],
            "to_come": [
                {"source": each.source, "files": each.n_files, "bytes": each.n_bytes}
                for each in self.to_come
            ],
            "waits": [
                {
                    "source": each.source,
                    "relay": each.relay,
                    "bytes": each.n_bytes,
                    "from_s": each.from_s,
                    "until_s": each.until_s,
                }
                for each in self.waits
            ],
            "with_source": None if self.with_source is None else self.with_source.to_dict(),
            "assumptions": None if self.assumptions is None else self.assumptions.to_dict(),
            "assurances": [each._asdict() | {"text": each.text} for each in self.assurances],
        }
