"""Notices where a source makes more, or less, than its file says."""

from __future__ import annotations

from datacollect.files.units import format_rate

# Over so long it is looked at; so much more or less is told.
WINDOW_NS, MOST_OFF = 10 * 10**9, 0.1


class RateSeen:
    """Watches the rate of a source.

    Attributes
    ----------
    bytes_per_s : float or None
        Of the last window that is over.

    Examples
    --------
    >>> seen = RateSeen(1e6)
    >>> for s in range(21):
    ...     said = seen.made(2_000_000, s * 10**9)
    ...     if said:
    ...         print(said)
    the source makes 16 Mbit/s, but the feed's file says 8 Mbit/s; write rate = "16 Mbit/s"
    """

    def __init__(self, said_bytes_per_s: float) -> None:
        self._said = said_bytes_per_s
        self._begun_ns: int | None = None
        self._n_bytes = 0
        self._is_off = False
        self.bytes_per_s: float | None = None

    def made(self, n_bytes: int, now_ns: int) -> str | None:
        """Take note of what was made; return what to say of it, each time that it goes astray."""
        if self._begun_ns is None:
            self._begun_ns = now_ns
        took_ns = now_ns - self._begun_ns
        if took_ns < WINDOW_NS:
            self._n_bytes += n_bytes
            return None
        self.bytes_per_s = self._n_bytes / (took_ns / 1e9)
        self._begun_ns, self._n_bytes = now_ns, n_bytes
        was_off, self._is_off = self._is_off, abs(self.bytes_per_s / self._said - 1) > MOST_OFF
        if not self._is_off or was_off:
            return None
        seen = format_rate(float(f"{self.bytes_per_s:.3g}"))
        return (
            f"the source makes {seen}, but the feed's file says {format_rate(self._said)}; write "
            f'rate = "{seen}"'
        )
