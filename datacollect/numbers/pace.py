"""Progress for people: how much is done, how fast, and how long the remainder takes."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

# Rates of this many stretches are kept; each takes a tenth of the time so far, or at least this.
MOST_STRETCHES, SHORTEST_S = 10, 2.0


class Pace:
    """Keeps how much was done when.

    Examples
    --------
    Two seconds at 4 a second, then two at 2 a second:

    >>> pace = Pace()
    >>> for at_s, done in [(0.0, 0.0), (2.0, 8.0), (4.0, 12.0)]:
    ...     pace.note(at_s, done)
    >>> pace.rate
    2.0
    >>> pace.left_s(8.0)
    (2.0, 4.0)
    """

    def __init__(self) -> None:
        self._begun_s: float | None = None
        self._marks: deque[tuple[float, float]] = deque(maxlen=MOST_STRETCHES + 1)
        self._now: tuple[float, float] | None = None

    def note(self, now_s: float, done: float) -> None:
        """Note how much is done at an instant; what is found undone again begins a new count."""
        if self._begun_s is None:
            self._begun_s = now_s
        if self._now is not None and done < self._now[1]:
            self._marks.clear()
        if not self._marks or now_s - self._marks[-1][0] >= max(
            SHORTEST_S, (now_s - self._begun_s) / MOST_STRETCHES
        ):
            self._marks.append((now_s, done))
        self._now = now_s, done

    @property
    def rate(self) -> float | None:
        """Return how much is done in a second of late; None where that is not known yet."""
        rates = self._rates()
        return rates[-1] if rates else None

    def left_s(self, remaining: float) -> tuple[float, float] | None:
        """Return how long the remainder takes at the highest and lowest recent rate; None: unknown.

        Stretches in which nothing was done tell nothing of a rate, and are left out. So is
        the first, where others are known.
        """
        rates = self._rates()
        # What begins is slow at first: once more is known, that is of no account.
        has_begun = bool(self._marks) and self._marks[0][0] == self._begun_s and len(rates) > 2
        moving = [rate for rate in rates[has_begun:] if rate > 0]
        return (remaining / max(moving), remaining / min(moving)) if moving else None

    def _rates(self) -> list[float]:
        marks = list(self._marks)
        rates = [
            (after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(marks)
        ]
        # What has begun since counts once it has a length of its own, or where there is no other.
        if (
            self._now is not None
            and marks
            and self._now[0] - marks[-1][0] >= (SHORTEST_S / 2 if rates else 1e-9)
        ):
            last = marks[-1]
            rates.append((self._now[1] - last[1]) / (self._now[0] - last[0]))
        return rates


def percent_words(done: float, everything: float) -> str:
    """Return how much is done of all; all of it is only what is.

    >>> percent_words(1, 3), percent_words(999, 1000), percent_words(0, 0)
    ('33 %', '99 %', '100 %')
    """
    return f"{int(100 * done / everything) if everything > 0 else 100} %"


def left_words(left_s: tuple[float, float] | None) -> str:
    """Return how long the remainder takes, in words; nothing where that is not known.

    >>> left_words((2.0, 2.04)), left_words((40.0, 7300.0)), left_words(None)
    ('about 2 s left', '40 s to 2 h left', '')
    """
    if left_s is None:
        return ""
    least, most = map(about_duration, left_s)
    return f"about {least} left" if least == most else f"{least} to {most} left"


def amount_words(
    n_bytes: int, all_bytes: int, n_files: int, all_files: int, pace: Pace
) -> list[str]:
    """Return how much is done of all, at which rate, and how long the remainder takes, in parts.

    >>> pace = Pace()
    >>> pace.note(0.0, 0), pace.note(2.0, 10_000_000)
    (None, None)
    >>> ", ".join(amount_words(10_000_000, 30_000_000, 3, 12, pace))
    '33 %: 10 MB of 30 MB, 3 of 12 files, 40 Mbit/s, about 4 s left'
    """
    parts = [
        f"{percent_words(n_bytes, all_bytes)}: {about_bytes(n_bytes)} of {about_bytes(all_bytes)}",
        f"{n_files} of {all_files} files",
    ]
    if pace.rate is not None and all_bytes > n_bytes:
        parts.append(about_rate(pace.rate) if pace.rate > 0 else "nothing comes")
        parts += filter(None, [left_words(pace.left_s(all_bytes - n_bytes))])
    return parts


def about_duration(duration_s: float) -> str:
    """Write a duration in two digits.

    >>> [about_duration(s) for s in (0.25, 75, 3500, 7322, 1e6)]
    ['0.25 s', '75 s', '58 min', '2 h', '12 days']
    """
    for least_s, unit_s, unit in ((172800, 86400, "days"), (5400, 3600, "h"), (90, 60, "min")):
        if duration_s >= least_s:
            return f"{two_digits(duration_s / unit_s)} {unit}"
    return f"{two_digits(duration_s)} s"


def about_bytes(n_bytes: float) -> str:
    """Write an amount of data in two digits.

    >>> about_bytes(1_234_567_890), about_bytes(354_000_000), about_bytes(999_999)
    ('1.2 GB', '350 MB', '1 MB')
    """
    return _scaled(n_bytes, "B")


def about_rate(rate_bytes_per_s: float) -> str:
    """Write a rate in two digits, in bits per second as network users do.

    >>> about_rate(10_400_000)
    '83 Mbit/s'
    """
    return _scaled(8 * rate_bytes_per_s, "bit/s")


def two_digits(value: float) -> str:
    """Write a number in two digits, without an exponent.

    >>> two_digits(1234.5), two_digits(0.0567), two_digits(2.0)
    ('1200', '0.057', '2')
    """
    return f"{float(f'{value:.2g}'):.15g}"


def _scaled(value: float, unit: str) -> str:
    for power, prefix in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "k")):
        if value >= 0.995 * 1000**power:
            return f"{two_digits(value / 1000**power)} {prefix}{unit}"
    return f"{two_digits(value)} {unit}"
