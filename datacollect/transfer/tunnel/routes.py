"""Choice of a tunnel's route: the largest of path minima, direct unless another is better."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.net.tickets import MOST_AGENTS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# Another route must be so many times as wide as the direct one: estimates are no better.
BETTER_BY = 1.05
# What nobody has an estimate of is a last resort.
UNKNOWN_BYTES_PER_S = 1e-3


def widest_relays(
    here: str,
    far: str,
    relays: Sequence[str],
    rates: Mapping[tuple[str, str], float],
    broken: Collection[tuple[str, str]] = (),
) -> tuple[str, ...] | None:
    """Return the relays of the best route, the nearest first; None: no route is left.

    A route is as wide as its narrowest link. Of equally wide ones that with fewer relays is the
    best, and of those that whose relays come first.

    Parameters
    ----------
    here, far : str
        This host, and the one that the tunnel leads to.
    relays : sequence of str
        Hosts that may relay.
    rates : mapping of (str, str) to float
        Estimates in bytes per second, in the direction in which data are collected: from `far`.
    broken : collection of (str, str)
        Links, in the direction in which connections are opened, that are of no use now.

    Examples
    --------
    >>> rates = {("S", "D"): 1e6, ("S", "K"): 4e6, ("K", "D"): 3e6}
    >>> widest_relays("D", "S", ["K"], rates), widest_relays("D", "S", ["K"], rates, {("D", "K")})
    (('K',), ())
    >>> widest_relays("D", "S", ["K"], rates | {("S", "D"): 2.9e6})
    ()
    """

    def width(one: str, other: str) -> float:
        if (one, other) in broken:
            return 0.0
        return rates.get((other, one), UNKNOWN_BYTES_PER_S)

    direct = width(here, far)
    # By the last relay: how wide the best route to it is, and its relays.
    best: dict[str, tuple[float, tuple[str, ...]]] = {
        relay: (width(here, relay), (relay,)) for relay in relays
    }
    found: tuple[float, tuple[str, ...]] = (direct * BETTER_BY, ())
    for _ in range(MOST_AGENTS):
        for relay, (wide, route) in best.items():
            whole = min(wide, width(relay, far))
            if whole > found[0]:
                found = whole, route
        longer = dict(best)
        for relay, (wide, route) in best.items():
            for other in relays:
                reach = min(wide, width(relay, other))
                if other not in route and reach > longer[other][0]:
                    longer[other] = reach, (*route, other)
        if longer == best:
            break
        best = longer
    return found[1] if found[0] > 0 else None
