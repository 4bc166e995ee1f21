"""Times of entries in logs, as a destination is told; settled once it asks for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from datacollect.bistro.formats.event.event import Event


class EntryTimes:
    """Tells what a function tells of an entry, None: nothing; once it is over, for good."""

    def __init__(self, event: Event, time_of: Callable[[bytes], int | None]) -> None:
        self._event, self._time_of = event, time_of
        self.are_settled = False

    def __call__(self, entries: Iterable[bytes]) -> Iterable[tuple[bytes, int]]:
        found = ((entry, self._time_of(entry)) for entry in entries)
        return ((entry, time_s) for entry, time_s in found if time_s is not None)

    def may_settle(self, now_s: int) -> bool:
        return now_s > self._event.latest_s

    def settle(self, entries: Iterable[bytes]) -> Iterable[tuple[bytes, int]]:
        self.are_settled = True
        return self(entries)
