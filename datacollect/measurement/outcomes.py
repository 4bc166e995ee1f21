"""Outcomes of bandwidth tests: samples, or why there is none; one sample for each test.

Readers of formats make `Outcome` of what they read. A test that measured nothing has no sample: it
is not a sample of 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.kinds import Whole
from datacollect.files.units import FASTEST_BYTES_PER_S, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# A test that reached this part of the rate set for it was held back by that.
LIMITED_PART = 0.95

# Over how many connections a test sent: parts of one, and none, measure nothing.
STREAMS = Whole("connections", minimum=1, stop=2**31)

# At most this many failures are named; of more, only the number.
MOST_SHOWN = 50


class FailedTestError(ProblemError):
    """A test gives no sample: it failed, was cut off, or nothing arrived."""


@dataclass(frozen=True)
class SetLimit:
    """Limit that a tester sets for a test, and the greatest rate by it.

    Attributes
    ----------
    option : str
        As its program writes it.
    bytes_per_s : float
        All streams together, > 0.
    """

    option: str
    bytes_per_s: float


def narrowest(limits: Iterable[tuple[str, float]]) -> SetLimit | None:
    """Return the limit that is reached first; None where none is set.

    >>> narrowest([("-b", 0.0), ("--fq-rate", 5.0), ("-w", 7.0)])
    SetLimit(option='--fq-rate', bytes_per_s=5.0)
    """
    found = [SetLimit(option, rate) for option, rate in limits if 0 < rate < math.inf]
    return min(found, key=lambda limit: limit.bytes_per_s, default=None)


def rate_of_window(window_bytes: float, round_trip_s: float, streams: int) -> float:
    """Return the rate at which connections fill the windows set for them; 0: nothing is known.

    Kernels keep up to half of what is set for their own bookkeeping.

    >>> rate_of_window(100_000, 0.1, 2)
    1000000.0
    """
    if not (window_bytes > 0 and round_trip_s > 0):
        return 0.0
    return window_bytes / 2 / round_trip_s * streams


@dataclass(frozen=True)
class Sample:
    """Measurement of one test from one host to another.

    Attributes
    ----------
    from_host, to_host : str
    time_s : float
        When it began, in seconds since 1970.
    bandwidth_bytes_per_s : float
        What the receiver got.
    n_bytes : int
    duration_s : float
    streams : int
    kind : str
        Protocol, and whether both directions were tested at once.
    limit : SetLimit or None
        What the tester set that may have held it back; None where nothing was set.
    """

    from_host: str
    to_host: str
    time_s: float
    bandwidth_bytes_per_s: float
    n_bytes: int
    duration_s: float
    streams: int
    kind: str
    limit: SetLimit | None = None

    @property
    def is_limited(self) -> bool:
        """Return whether the test's own limit, rather than the path, kept it from being faster."""
        limit = self.limit
        return limit is not None and LIMITED_PART * limit.bytes_per_s <= self.bandwidth_bytes_per_s


@dataclass(frozen=True)
class Outcome:
    """Outcome of a test by one output.

    Attributes
    ----------
    place : str
        File, and which test in it.
    samples : tuple of Sample
        One for each direction that was measured.
    failures : tuple of str
        Why directions, or the whole test, have none: each begins with the place.
    identity : str
        The same in all outputs of the same test, whichever end wrote them; ``""``: not known.
    content : str
        The same where an output is printed twice.
    of_server : bool
        Whether the server wrote it, which knows only what it received itself.
    other_kind : str
        What was tested, where that is no bandwidth: such tests do not count.
    """

    place: str
    samples: tuple[Sample, ...] = ()
    failures: tuple[str, ...] = ()
    identity: str = ""
    content: str = ""
    of_server: bool = False
    other_kind: str = ""


def require_arrived(place: str, rate: float, n_bytes: float, duration_s: float) -> None:
    """Raise `FailedTestError` where nothing was measured, `ProblemError` at an impossible rate.

    >>> require_arrived("a.json", 0.0, 0, 10.0)
    Traceback (most recent call last):
    datacollect.measurement.outcomes.FailedTestError: a.json: nothing arrived in 10 s
    """
    if not duration_s > 0:
        raise FailedTestError(f"{place}: the test lasted {duration_s:g} s")
    if not (rate > 0 and n_bytes > 0):
        raise FailedTestError(f"{place}: nothing arrived in {duration_s:g} s")
    if rate > FASTEST_BYTES_PER_S:
        raise ProblemError(
            f"{place}: the rate must be at most {FASTEST_BYTES_PER_S:g} bytes per second, got "
            f"{rate:g}"
        )


def require_losses(place: str, sent: object, lost: object) -> None:
    """Raise `FailedTestError` where a sender's rate is known, and not how much of it arrived.

    >>> require_losses("a.json", 100, None)
    Traceback (most recent call last):
    datacollect.measurement.outcomes.FailedTestError: a.json: packets lost are unknown: the rate is
    the sender's, and nothing says what arrived
    """
    unknown = [name for name, number in (("sent", sent), ("lost", lost)) if number is None]
    if unknown:
        raise FailedTestError(
            f"{place}: packets {' and '.join(unknown)} are unknown: the rate is the sender's, and "
            "nothing says what arrived"
        )


def once_each(outcomes: Sequence[Outcome], notes: list[str]) -> list[Outcome]:
    """Return one outcome for each test; say which were given more than once.

    What the client printed counts: it knows what arrived in both directions. The same test at its
    server, or printed twice, does not count again: all of an output is equal, its instant too.
    """
    of_clients = {one.identity for one in outcomes if not one.of_server and one.identity}
    seen: set[str] = set()
    kept, again = [], []
    for one in outcomes:
        is_at_client = one.of_server and one.identity in of_clients
        is_copy = bool(one.content) and one.content in seen
        if is_at_client or is_copy:
            again.append(one.place)
            continue
        seen.add(one.content)
        kept.append(one)
    if again:
        notes.append(
            f"{counted(len(again), 'output')} of a test that was read already, as its server or a "
            f"second copy has it: {listed(again)}; each test counts once"
        )
    return kept


def require_tests(
    outcomes: Iterable[Outcome], notes: list[str], *, skip_failed: bool, n_rows: int = 0
) -> None:
    """Raise `FailedTestError` that lists all failed tests; with `skip_failed` note them.

    Parameters
    ----------
    outcomes : iterable of Outcome
    notes : list of str
        Gets what was passed over.
    skip_failed : bool
    n_rows : int
        Good samples besides, from tables.

    Raises
    ------
    FailedTestError
        Some failed, or all of them did.
    """
    outcomes = list(outcomes)
    failures = [text for one in outcomes for text in one.failures]
    if not failures:
        return
    n_good = n_rows + sum(len(one.samples) for one in outcomes)
    shown = failures[:MOST_SHOWN]
    if len(failures) > MOST_SHOWN:
        shown.append(f"and {len(failures) - MOST_SHOWN} more")
    if skip_failed and n_good:
        notes.append(f"{counted(len(failures), 'test')} that failed skipped: " + "; ".join(shown))
        return
    remedy = "; repeat the test" if len(failures) == 1 else "; repeat them"
    if n_good:
        remedy += f", or skip what failed with --skip-failed, which leaves {n_good}"
        remedy += " good one" if n_good == 1 else " good ones"
        remedy += " (skip_failed=True in Python)"
    if len(failures) == 1:
        raise FailedTestError(failures[0] + remedy)
    raise FailedTestError(
        f"{len(failures)} tests failed:\n  " + "\n  ".join(shown) + f"\n  {remedy.lstrip('; ')}"
    )


RATE_OPTION, PACE_OPTION, WINDOW_OPTION = "-b", "--fq-rate", "-w"
_SET = {RATE_OPTION: "rate", PACE_OPTION: "rate", WINDOW_OPTION: "window"}


def limited_tests(outcomes: Iterable[Outcome]) -> list[str]:
    """Say which tests were held back by their own limit, if any."""
    places: dict[str, list[str]] = {}
    for one in outcomes:
        options = {s.limit.option for s in one.samples if s.limit is not None and s.is_limited}
        for option in sorted(options):
            places.setdefault(option, []).append(one.place)
    return [
        f"{counted(len(limited), 'test')} reached the {_SET[option]} set for it ({option}), "
        f"so the link may be faster: {listed(limited)}; test without {option}"
        for option, limited in places.items()
    ]


def listed(names: Sequence[str], most: int = 5) -> str:
    """List names, as many as fit.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
