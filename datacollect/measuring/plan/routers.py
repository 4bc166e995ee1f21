"""Routers that several pairs of hosts have in common, and so perhaps a wire."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from datacollect.measurement.routes import answering

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.measurement.routes import Hop
    from datacollect.measuring.plan.rounds import Pair


def wires_of_routes(routes: Mapping[Pair, Iterable[Hop]]) -> list[frozenset[Pair]]:
    """Return the sets of pairs whose routes have a router in common.

    A router that did not answer is unknown, and a private address is one in each of many
    networks: neither is a router in common. Pairs that all share a host are never tested at the
    same time anyway, and make no set.

    Parameters
    ----------
    routes : mapping from pairs to iterables of str, list of str, or None
        Of each pair the addresses of its routers: all that answered where paths are balanced, None
        where one was silent.

    Examples
    --------
    >>> routes = {("a", "b"): ["8.8.4.4", None], ("c", "d"): ["8.8.4.4"], ("e", "f"): [None]}
    >>> [sorted(wire) for wire in wires_of_routes(routes)]
    [[('a', 'b'), ('c', 'd')]]
    """
    users = defaultdict(set)
    for pair, routers in routes.items():
        for router in chain.from_iterable(map(answering, routers)):
            if ipaddress.ip_address(router).is_global:
                users[router].add(pair)
    found = {frozenset(pairs) for pairs in users.values() if not _share_a_host(pairs)}
    return sorted(found, key=sorted)


def _share_a_host(pairs: set[Pair]) -> bool:
    return bool(set.intersection(*({*pair} for pair in pairs)))
