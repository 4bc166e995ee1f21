"""Limits of hosts in problem files, from floods: what each can send, or receive, in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.units import counted, format_rate
from datacollect.measurement.sample_store import DONE, settings_of
from datacollect.measuring.operator.tcp_tests import TCP
from datacollect.measuring.operator.tools import FLOOD

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair

# Where all together got less than this part of what each got alone, the host is what limits: links
# that share nothing keep 0.9 and more of their sum, links that do about three quarters and less.
LIMITED = 0.85


@dataclass(frozen=True)
class HostLimit:
    """What floods say of a host in one direction.

    Attributes
    ----------
    host : str
    key : str
        Of the host in a problem file: ``uplink_bytes_per_s`` or ``downlink_bytes_per_s``.
    together_bytes_per_s : float
        What all got at once, in the newest flood.
    alone_bytes_per_s : float or None
        The sum of what each got alone; None where some were not tested alone.
    n : int
        How many there were.
    """

    host: str
    key: str
    together_bytes_per_s: float
    alone_bytes_per_s: float | None
    n: int

    @property
    def binds(self) -> bool:
        """Whether the host is what limits them."""
        alone = self.alone_bytes_per_s
        return alone is not None and self.together_bytes_per_s < LIMITED * alone

    def __str__(self) -> str:
        """Say what was measured, and what follows."""
        together = format_rate(self.together_bytes_per_s)
        does, wire = f"give {self.host} {together}", "downlink"
        if self.key == "uplink_bytes_per_s":
            does, wire = f"get {together} from {self.host}", "uplink"
        begun = f"{counted(self.n, 'host')} at once {does}"
        if self.alone_bytes_per_s is None:
            return (
                f"{begun}; whether that is the limit of its {wire} is not known: test each alone "
                "by tcp, too"
            )
        begun += f"; alone they add up to {format_rate(self.alone_bytes_per_s)}"
        if self.binds:
            return f"{begun}: the {wire} of {self.host} is taken as {together}"
        return f"{begun}: the limit of its {wire} was not reached, and lies above"


def host_limits(table: pd.DataFrame, links: Mapping[Pair, float]) -> list[HostLimit]:
    """Return what the newest flood of each host says, in each direction.

    Parameters
    ----------
    table : DataFrame
        Tests that count, as `datacollect.measurement.sample_store.read_parts` reads them.
    links : mapping of (str, str) to float
        Bandwidths, which stand for tests alone where none had the flood's number of connections.
    """
    done = table[(table["ended"] == DONE) & (table["bandwidth_bytes_per_s"] > 0)]
    alone = done[done["tool"] == TCP.name].groupby(["from", "to", "streams"])
    known = alone["bandwidth_bytes_per_s"].mean().to_dict()
    floods: dict[tuple[str, str], dict[str, list[dict[Any, Any]]]] = {}
    rows = done[done["tool"] == FLOOD].sort_values("time_s", kind="stable")
    for row in rows.to_dict("records"):
        settings = settings_of(row["settings"])
        host, flood = settings.get("host"), str(settings.get("flood"))
        if host in (row["from"], row["to"]):
            key = "uplink_bytes_per_s" if host == row["from"] else "downlink_bytes_per_s"
            floods.setdefault((host, key), {}).setdefault(flood, []).append(row)
    found = []
    for (host, key), by_flood in sorted(floods.items()):
        newest = list(by_flood.values())[-1]
        if len(newest) > 1:
            each = [_alone(row, known, links) for row in newest]
            tested = [rate for rate in each if rate is not None]
            together = sum(row["bandwidth_bytes_per_s"] for row in newest)
            sum_alone = sum(tested) if len(tested) == len(each) else None
            found.append(HostLimit(host, key, together, sum_alone, len(newest)))
    return found


def with_host_limits(tree: dict[str, Any], limits: list[HostLimit]) -> dict[str, Any]:
    """Return the tree of a problem file whose hosts have the limits that bind."""
    hosts = {name: dict(host) for name, host in tree["hosts"].items()}
    for limit in limits:
        if limit.binds and limit.host in hosts:
            hosts[limit.host][limit.key] = limit.together_bytes_per_s
    return tree | {"hosts": hosts}


def _alone(
    row: Mapping[str, Any], known: Mapping[Any, float], links: Mapping[Pair, float]
) -> float | None:
    pair = (row["from"], row["to"])
    return known.get((*pair, row["streams"]), links.get(pair))
