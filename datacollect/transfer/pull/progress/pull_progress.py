"""Progress of a pull: by its state, and by what the round under way has yet to get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.numbers.pace import amount_words
from datacollect.transfer.store.state.state import FileState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.numbers.pace import Pace
    from datacollect.transfer.pull.answering import StartUse
    from datacollect.transfer.pull.core.core import CollectorCore
    from datacollect.transfer.store.state.state import State

NAMED = 3


@dataclass(frozen=True)
class PullProgress:
    """Progress of a pull.

    Attributes
    ----------
    n_files, n_bytes : int
        There and verified; of files that are not whole what has come.
    all_files, all_bytes : int
        Of all that is listed by now, but what cannot be had.
    awaited : tuple of str
        Sources that are not listed to their end yet.
    given_up : tuple of str
        Sources that were given up.
    routes : mapping of tuple of str to int
        New bytes that were verified in this start, by hosts of the route, the destination last.
    refetched : mapping of str to int
        Bytes that were received twice in this start, by the reason.
    troubles : mapping of str to str
        From whom nothing comes at present, and why.
    """

    n_files: int
    n_bytes: int
    all_files: int
    all_bytes: int
    awaited: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    routes: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    refetched: Mapping[str, int] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)

    def words(self, pace: Pace) -> str:
        """Return it in a line, with the rate, and how long the remainder takes.

        Examples
        --------
        >>> from datacollect.numbers.pace import Pace
        >>> pace = Pace()
        >>> pace.note(0.0, 0), pace.note(2.0, 10_000_000)
        (None, None)
        >>> PullProgress(3, 10_000_000, 12, 30_000_000, ("S2",)).words(pace)
        '33 %: 10 MB of 30 MB, 3 of 12 files, 40 Mbit/s, about 4 s left; not listed yet: S2'
        """
        parts = []
        if self.all_files:
            parts += amount_words(self.n_bytes, self.all_bytes, self.n_files, self.all_files, pace)
        words = [", ".join(parts) or "nothing is listed yet"]
        words += [f"not listed yet: {_names(self.awaited)}"] if self.awaited else []
        words += [f"given up: {_names(self.given_up)}"] if self.given_up else []
        return "; ".join(words)


def progress_of(
    state: State,
    core: CollectorCore | None,
    awaited: Iterable[str],
    given_up: Iterable[str],
    use: StartUse,
    troubles: Mapping[str, str],
) -> PullProgress:
    """Look how far a pull is.

    Parameters
    ----------
    state : State
    core : CollectorCore or None
        Of the round under way.
    awaited, given_up : iterable of str
    use : StartUse
        Of the rounds that are over.
    troubles : mapping of str to str
    """
    n_files = n_bytes = all_files = all_bytes = in_work_bytes = 0
    for name, by_state in state.counts().items():
        done = by_state.get(FileState.DONE, (0, 0))
        waiting = by_state.get(FileState.WAITING, (0, 0))
        n_files, n_bytes = n_files + done[0], n_bytes + done[1]
        all_files += done[0] + waiting[0]
        all_bytes += done[1] + waiting[1]
        if core is not None and name in core.work:
            in_work_bytes += waiting[1]
    if core is not None:
        n_bytes += max(0, in_work_bytes - core.todo.n_bytes)
    # In the order in which they came, whichever rounds are over.
    routes, refetched = use.routes.copy(), use.refetched.copy()
    if core is not None:
        routes.update(core.route_bytes)
        refetched.update(core.refetched)
    return PullProgress(
        n_files,
        n_bytes,
        all_files,
        all_bytes,
        tuple(sorted(awaited)),
        tuple(sorted(given_up)),
        routes,
        refetched,
        troubles,
    )


def _names(names: tuple[str, ...]) -> str:
    """Name some.

    >>> _names(("A", "B")), _names(("A", "B", "C", "D", "E"))
    ('A, B', 'A, B, C and 2 more')
    """
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
