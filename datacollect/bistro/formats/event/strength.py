"""Strength of an event, in words: who would have to lie together for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.files.units import counted

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event

# What an event proves whose keeper is its only witness; the page says the same.
ALONE = (
    (
        "One organiser keeps all of this event: it proves nothing against that organiser, nor "
        "against whoever administers or hosts the machine, or breaks into it."
    ),
    (
        "They could change times, refuse or delete what is handed in, show two people two logs, "
        "and read before the deadline."
    ),
)
# What two authorities mend of that, who stamp the log each minute.
STAMPED = (
    "Outside authorities stamp its log each minute: `audit --log --stamps` shows if times fit.",
)
# What outside witnesses do not mend.
ONE_HOST = (
    "One host keeps the service, the bistro and the destination.",
    "Anyone who controls it can refuse or delete what is handed in, and read before the deadline.",
)


def alone_words(event: Event) -> list[str]:
    """Return sentences on what an event does not prove whose keeper is its only witness."""
    return [*ALONE, *(STAMPED if len(event.authorities) > 1 else ())]


def default_quorum(n_witnesses: int) -> int:
    """Return the number of witnesses that make a time where an event says none.

    More than two thirds, as usual where some may lie and some be dead: 3 of 4.

    >>> [default_quorum(n) for n in (2, 3, 4, 5, 7)]
    [2, 3, 3, 4, 5]
    """
    return n_witnesses * 2 // 3 + 1


def n_believed(event: Event) -> int:
    """Return how many witnesses stop a service that say they have signed more, or another log.

    Safe is what more say than may fail, n - k, or what a fork would need, 2k - n: fewer could be
    all that is heard of a log that was published.
    """
    k, n = event.quorum, len(event.witnesses)
    return min(n - k + 1, 2 * k - n)


def withstands(event: Event) -> list[str]:
    """Return sentences: who has to lie together to backdate, to fork, to post-date.

    Of n witnesses k make a time. The k-th smallest is at least an honest one where fewer than k
    lie; two quorums share 2k - n witnesses, who would have to sign two logs; and k honest ones
    remain where n - k are dead or late.
    """
    if event.alone:
        return alone_words(event)
    k, n = event.quorum, len(event.witnesses)
    forking = counted(2 * k - n, "witness", "witnesses")
    authorities = ", or two authorities" if len(event.authorities) > 1 else ""
    return [
        f"To backdate an entry takes {k} of the {n} witnesses{authorities}.",
        f"To show two people two logs takes the service and {forking}.",
        f"Witnesses that may fail or post-date, together: {n - k}.",
    ]


def cautions(event: Event) -> list[str]:
    """Return sentences about what works, but not for long, or not for all."""
    found = []
    if len(event.recipients) == 1:
        found.append(
            "recipients names only one: if its identity is lost, nobody can open anything; add a "
            "second one, kept offline."
        )
    if event.quorum == len(event.witnesses):
        found.append("quorum needs all witnesses: if one fails, nothing gets a time; add one.")
    if n_believed(event) == 1:
        found.append(
            "quorum lets one witness that lies stop a service: no other would have to speak for it "
            "to be believed; 3 of 4 and 4 of 5 withstand one."
        )
    if len(event.services) == 1:
        found.append(
            "services names only one: a person whom it refuses has nowhere else to go; add one."
        )
    if len(event.authorities) < 2:
        found.append(
            "authorities names fewer than two: where no service answers, nothing can be proved."
        )
    found += [
        f"{url} is not https: tickets can be read on the way there, and be used by others."
        for url in [each.url for each in event.services] + [each.url for each in event.bistros]
        if url.startswith("http:")
    ]
    return found
