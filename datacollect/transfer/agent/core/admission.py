"""Admission of connections: how many are open, in all and from each address, counted at once."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

# Connections let in above the limits to hear why they are refused: in all, and from one address.
REFUSED_AT_ONCE = 50
REFUSED_FROM_ONE = 10


class Admission(StrEnum):
    """Counts that a connection belongs to."""

    INSIDE = "inside"
    # Only to be told, where it asks without TLS, why it cannot stay.
    TO_REFUSE = "to refuse"
    NOWHERE = "nowhere"


class AdmissionCounts:
    """Counts open connections by address; each step takes the same time, however many there are.

    Connections to be refused are counted apart, and take no place from the others.

    Parameters
    ----------
    most, most_per_address : int

    Examples
    --------
    >>> counts = AdmissionCounts(2, 1)
    >>> [counts.enter(address) for address in ("a", "b", "c")]
    [(<Admission.INSIDE: 'inside'>, None), (<Admission.INSIDE: 'inside'>, None), \
(<Admission.TO_REFUSE: 'to refuse'>, 'too many connections')]
    >>> counts.leave("a", Admission.INSIDE)
    >>> counts.enter("b")[1], counts.enter("c")[1]
    ('too many connections from there', None)
    """

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = {Admission.INSIDE: most, Admission.TO_REFUSE: REFUSED_AT_ONCE}
        self._most_from_one = {
            Admission.INSIDE: most_per_address,
            Admission.TO_REFUSE: REFUSED_FROM_ONE,
        }
        self._here: Counter[Admission] = Counter()
        self._from: Counter[tuple[Admission, str]] = Counter()

    def enter(self, address: str) -> tuple[Admission, str | None]:
        """Return where a connection is counted from now on, and why not inside."""
        why = None
        for place in (Admission.INSIDE, Admission.TO_REFUSE):
            full = self._why_full(place, address)
            if full is None:
                self._here[place] += 1
                self._from[place, address] += 1
                return place, why
            why = why or full
        return Admission.NOWHERE, why

    def leave(self, address: str, place: Admission) -> None:
        """Count a connection no more."""
        if place is Admission.NOWHERE:
            return
        self._here[place] -= 1
        self._from[place, address] -= 1
        if not self._from[place, address]:
            del self._from[place, address]

    def is_full(self, address: str) -> bool:
        """Return whether no place inside is left for an address."""
        return self._why_full(Admission.INSIDE, address) is not None

    def is_short_everywhere(self) -> bool:
        """Return whether no place inside is left for anybody."""
        return self._here[Admission.INSIDE] >= self._most[Admission.INSIDE]

    def _why_full(self, place: Admission, address: str) -> str | None:
        if self._from[place, address] >= self._most_from_one[place]:
            return "too many connections from there"
        if self._here[place] >= self._most[place]:
            return "too many connections"
        return None
