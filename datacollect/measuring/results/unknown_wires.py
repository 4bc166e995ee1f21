"""Wires that links of a plan may share between hosts, which no test of one host can show."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from datacollect.measurement.routes import answering
from datacollect.measuring.results.shared_links import compared, newest_routes, possible_wires

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import pandas as pd

    from datacollect.measurement.routes import Hop
    from datacollect.measuring.plan.rounds import Pair


@dataclass(frozen=True)
class UnknownWires:
    """Open questions on links that meet between hosts.

    Attributes
    ----------
    may_share : tuple of frozenset of (str, str)
        Links with a router in common that were not tested together.
    unseen : tuple of (str, str)
        Links of whose routes no public router is known: where they meet others nobody can tell.
    """

    may_share: tuple[frozenset[Pair], ...] = ()
    unseen: tuple[Pair, ...] = ()


def unknown_wires(table: pd.DataFrame, links: Collection[Pair]) -> UnknownWires:
    """Return what is not known of some links, such as those that a plan uses.

    Links of one host are left out: floods of the host show what they share.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"from": ["S", "K"], "to": ["D", "L"], "time_s": 0.0, "tool": "trace"})
    >>> table = table.assign(ended="done", bandwidth_bytes_per_s=None, routers='["9.9.9.9"]')
    >>> [sorted(wire) for wire in unknown_wires(table, [("S", "D"), ("K", "L")]).may_share]
    [[('K', 'L'), ('S', 'D')]]
    """
    apart = {one for one in links if any({*one}.isdisjoint(other) for other in links)}
    tested = {pair for wire in compared(table).groups for pair in wire}
    routes = newest_routes(table)
    unseen = [pair for pair in sorted(apart - tested) if not _is_seen(routes.get(pair, ()))]
    shared = (wire & apart for wire in possible_wires(table))
    return UnknownWires(
        tuple(
            wire
            for wire in shared
            if any({*one}.isdisjoint(other) for one in wire for other in wire)
        ),
        tuple(unseen),
    )


def _is_seen(route: Iterable[Hop]) -> bool:
    """Return whether a router of a route tells it from others: its address is public."""
    routers = chain.from_iterable(map(answering, route))
    return any(ipaddress.ip_address(router).is_global for router in routers)
