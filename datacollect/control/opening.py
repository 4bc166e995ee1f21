"""Which connections to open at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.control.connection_counts import first_counts
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.connection_counts import Link, LinkRates
    from datacollect.control.stock import Stock
    from datacollect.control.ways import Ways


def first_links(
    ways: Ways, rates: LinkRates, stock: Mapping[str, Stock], budget: int
) -> list[Link]:
    """Return the links of the connections to begin with, by hosts' data.

    Raises
    ------
    ProblemError
        A host has data and only ways of more hops than there may be connections.
    """
    data = {host: stock[host].n_bytes for host in ways.hosts}
    expected = {host: rates.probed(ways.link(host)) for host in data}
    hops = {host: len(ways.link(host)) - 1 for host in data}
    longest = max((n for host, n in hops.items() if data[host]), default=0)
    if longest > budget:
        raise ProblemError(
            f"connections must be >= {longest}, as many as the longest chain has hops that a "
            f"host needs, got {budget}"
        )
    counts = first_counts(data, expected, budget, hops)
    return [ways.link(host) for host, count in counts.items() for _ in range(count)]
