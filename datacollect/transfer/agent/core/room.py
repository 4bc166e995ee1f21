"""Room for connections: how many are open, in all and from each address; counted at once."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

# Above the limits so many are let in to hear why they are refused, so many from one address.
REFUSED_AT_ONCE = 50
REFUSED_FROM_ONE = 10


class Place(StrEnum):
    """Where a connection is counted."""

    INSIDE = "inside"
    # Only to be told, where it asks without TLS, why it cannot stay.
    TO_REFUSE = "to refuse"
    NOWHERE = "nowhere"


class Room:
    """Who is inside, by address; each step takes the same time, however many there are.

    Connections to be refused are counted by themselves: they take no room from others.

    Parameters
    ----------
    most, most_per_address : int

    Examples
    --------
    >>> room = Room(2, 1)
    >>> [room.enter(address) for address in ("a", "b", "c")]
    [(<Place.INSIDE: 'inside'>, None), (<Place.INSIDE: 'inside'>, None), \
(<Place.TO_REFUSE: 'to refuse'>, 'too many connections')]
    >>> room.leave("a", Place.INSIDE)
    >>> room.enter("b")[1], room.enter("c")[1]
    ('too many connections from there', None)
    """

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = {Place.INSIDE: most, Place.TO_REFUSE: REFUSED_AT_ONCE}
        self._most_from_one = {Place.INSIDE: most_per_address, Place.TO_REFUSE: REFUSED_FROM_ONE}
        self._here: Counter[Place] = Counter()
        self._from: Counter[tuple[Place, str]] = Counter()

    def enter(self, address: str) -> tuple[Place, str | None]:
        """Return where a connection is counted from now on, and why not inside."""
        why = None
        for place in (Place.INSIDE, Place.TO_REFUSE):
            full = self._why_full(place, address)
            if full is None:
                self._here[place] += 1
                self._from[place, address] += 1
                return place, why
            why = why or full
        return Place.NOWHERE, why

    def leave(self, address: str, place: Place) -> None:
        """Count a connection no more."""
        if place is Place.NOWHERE:
            return
        self._here[place] -= 1
        self._from[place, address] -= 1
        if not self._from[place, address]:
            del self._from[place, address]

    def _why_full(self, place: Place, address: str) -> str | None:
        if self._from[place, address] >= self._most_from_one[place]:
            return "too many connections from there"
        if self._here[place] >= self._most[place]:
            return "too many connections"
        return None
