"""Patience with silent sources: for how long nothing has come, and which time does not count."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from datacollect.net.deadline import RENEWED_BY_BYTES
from datacollect.transfer.pull.core.under_way import stall_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.transfer.pull.core.under_way import Session


class Silence(NamedTuple):
    """Silence of a source, from one round to the next.

    Attributes
    ----------
    silent_s : float
        For how long nothing has come.
    best_bytes : int
        Most that has come since the last whole answer: as far again is no progress.
    pause_s : float
        The pause that it has asked for meanwhile.
    is_excused : bool
        Whether that counts for nothing, if it proves to be there.
    first_byte_s : float
        The longest that the first byte of an answer has taken.
    """

    silent_s: float = 0.0
    best_bytes: int = 0
    pause_s: float = 0.0
    is_excused: bool = False
    first_byte_s: float = 0.0


class Patience:
    """Patience of the core with sources that are silent.

    A pause that a source asks for does not count: the longest since it was heard, once.

    Parameters
    ----------
    sources : iterable of str
    patience_s : float
        A source is given up that for this time brings no whole answer, nor more of one than before.
    before : mapping of str to Silence
        What was known of them at the end of the round before.
    stranded_after_s : mapping of str to float
        Sources for which there is another route than those in use, after this time of silence.
    timeout_s : float
        How long the first byte of an answer may take.

    Examples
    --------
    >>> patience = Patience(["W"], 60.0)
    >>> patience.asked_to_wait("W", 50.0)
    >>> patience.is_over("W", 109.0), patience.is_over("W", 111.0), patience.silent_s("W", 111.0)
    (False, True, 111.0)
    """

    def __init__(
        self,
        sources: Iterable[str],
        patience_s: float,
        before: Mapping[str, Silence] | None = None,
        stranded_after_s: Mapping[str, float] | None = None,
        *,
        timeout_s: float = 20.0,
    ) -> None:
        self._patience_s, self._stranded_after_s = patience_s, dict(stranded_after_s or {})
        self._timeout_s = timeout_s
        known = {source: (before or {}).get(source, Silence()) for source in sources}
        self._heard_s = {source: -each.silent_s for source, each in known.items()}
        self._best_bytes = Counter({source: each.best_bytes for source, each in known.items()})
        self._pause_s = {source: each.pause_s for source, each in known.items()}
        self._excused = {source for source, each in known.items() if each.is_excused}
        self._first_byte_s = {source: each.first_byte_s for source, each in known.items()}
        self._last_trouble: dict[str, str] = {}

    def silences(self, now_s: float) -> dict[str, Silence]:
        """Return what the next round is to know."""
        return {
            source: Silence(
                self.silent_s(source, now_s),
                self._best_bytes[source],
                self._pause_s[source],
                source in self._excused,
                self._first_byte_s[source],
            )
            for source in self._heard_s
        }

    def answered(self, source: str, now_s: float) -> None:
        """A source has given a whole answer."""
        self._best_bytes[source] = 0
        self._heard(source, now_s)

    def gained(self, source: str, n_bytes: int, now_s: float) -> None:
        """So much of an answer has come by now."""
        more = n_bytes - self._best_bytes[source]
        if more >= RENEWED_BY_BYTES:
            self._best_bytes[source] += more
            self._heard(source, now_s)

    def begun(self, source: str, waited_s: float) -> None:
        """The first byte of an answer has come after so long."""
        self._first_byte_s[source] = max(waited_s, self._first_byte_s[source])

    def first_byte_s(self, source: str, now_s: float, *, others_wait: bool) -> float:
        """Return how long a session may wait for the first byte of an answer.

        It is the time-out. While other files wait for the place it is ten seconds, or twice what
        the source has needed before: unless the patience that is left then is not enough for a
        whole time-out, with which alone it is known that nothing comes.
        """
        whole_s = max(stall_s(self._patience_s, others_wait=False), self._timeout_s)
        if not others_wait:
            return whole_s
        short_s = stall_s(self._patience_s, others_wait=True)
        short_s = min(whole_s, max(short_s, 2 * self._first_byte_s[source]))
        left_s = self._patience_s - self.counted_s(source, now_s)
        may_wait = self._timeout_s <= self._patience_s
        return whole_s if may_wait and left_s < self._timeout_s + short_s else short_s

    def stand_still(self, source: str, passed_s: float) -> None:
        """Time has passed in which limits held a source back: that is no silence."""
        if source in self._heard_s:
            self._heard_s[source] += passed_s

    def asked_to_wait(self, source: str, wait_s: float) -> None:
        """A source wants to be left alone for a time: that is no silence, once."""
        wait_s = min(wait_s, self._patience_s)
        self._pause_s[source] = max(wait_s, self._pause_s[source])

    def cut_off(self, source: str, waited_s: float) -> None:
        """We have ended a wait for a source ourselves, before it was over: it is no silence.

        With all its pauses that is the patience at most: others that end each round soon would
        else let it be silent for ever.
        """
        self._pause_s[source] = min(self._pause_s[source] + waited_s, self._patience_s)

    def excuse(self, source: str) -> None:
        """A file is silent for the first time: its source is not to blame, if it proves so."""
        self._excused.add(source)

    def proved(self, source: str, now_s: float) -> None:
        """A source has answered for another file than the one that is silent."""
        if source in self._excused:
            self._heard(source, now_s)

    def _heard(self, source: str, now_s: float) -> None:
        self._heard_s[source] = now_s
        self._pause_s[source] = 0.0
        self._excused.discard(source)
        self._last_trouble.pop(source, None)

    def failed(self, source: str, why: str) -> None:
        """A connection to a source has ended, or is stuck."""
        self._last_trouble[source] = why

    def troubles(self, silent_s: float, now_s: float) -> dict[str, str]:
        """Return why sources are tried again of which nothing has come for that time."""
        return {
            source: why
            for source, why in self._last_trouble.items()
            if self.silent_s(source, now_s) >= silent_s
        }

    def awaited(self, sessions: Iterable[Session], silent_s: float, now_s: float) -> dict[str, str]:
        """Return what is awaited of sources of which no session has got anything for that time."""
        waiting = [(each, each.awaited) for each in sessions]
        heard = {each.source for each, what in waiting if what and now_s - each.moved_s < silent_s}
        return {
            each.source: what
            for each, what in waiting
            if what and each.source not in heard and self.counted_s(each.source, now_s) >= silent_s
        }

    def why_over(self, source: str, now_s: float) -> str:
        """Return why a source is given up."""
        why = self._last_trouble.get(source, "no answer")
        return f"no data for {self.silent_s(source, now_s):.0f} s: {why}"

    def silent_s(self, source: str, now_s: float) -> float:
        """Return for how long nothing has come from a source."""
        return now_s - self._heard_s[source]

    def counted_s(self, source: str, now_s: float) -> float:
        """Return what of that counts."""
        return self.silent_s(source, now_s) - self._pause_s[source]

    def is_over(self, source: str, now_s: float) -> bool:
        """Return whether a source is to be given up."""
        return self.counted_s(source, now_s) > self._patience_s

    def is_stranded(self, source: str, now_s: float) -> bool:
        """Return whether another route to a source is to be tried."""
        return self.counted_s(source, now_s) > self._stranded_after_s.get(source, math.inf)
