"""Exceptions, one small tree.

::

    DatacollectError
    ├── ProblemError (also ValueError)   malformed input: exit code 2
    │   └── NotWrittenError              a file cannot be written; on a full disk: exit code 3
    ├── InfeasibleError                  no schedule exists: exit code 1
    ├── ScheduleError (also ValueError)  a schedule breaks a rule: exit code 1
    ├── SolverError                      a solver failed: exit code 3
    │   ├── SolverUnavailableError       not installed, or not made for this model
    │   └── TimeLimitError               stopped before it had a complete answer
    ├── SimulationError                  a simulator failed: exit code 3
    └── TransferError                    a real transfer failed: exit code 3
        ├── StoreError                   the destination folder cannot be read or written
        ├── TicketError                  a ticket, or what else is signed, does not count
        ├── IdentityError                somebody else answers than was expected
        └── RefusedError                 an agent refused a request

`DatacollectWarning` (a UserWarning) is what results say beside themselves: what was left out, or
assumed.
"""

from __future__ import annotations

import errno
import re
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# What is no mistake of whoever gave the name.
FULL = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO),
    *(errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    *(errno.ESTALE, errno.ETIMEDOUT),  # of what is mounted over a network
)


class DatacollectWarning(UserWarning):
    """Note beside a result, also among its notes: what was left out, or assumed."""


class DatacollectError(Exception):
    """Base of every exception that this library raises on purpose."""

    exit_code = 3


class ProblemError(DatacollectError, ValueError):
    """Malformed input: the message names the place, the rule, the value and the remedy."""

    exit_code = 2


class NotWrittenError(ProblemError):
    """A file cannot be written: exit code 3 where the disk is full or failing; else 2."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        if errno in FULL:
            self.exit_code = 3


class InfeasibleError(DatacollectError):
    """No schedule exists.

    Attributes
    ----------
    hosts : tuple of str
        The hosts whose data cannot reach the destination.
    """

    exit_code = 1

    def __init__(self, message: str, hosts: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.hosts = tuple(hosts)


class ScheduleError(DatacollectError, ValueError):
    """A schedule breaks a rule: what, where, when and by how much."""

    exit_code = 1


class SolverError(DatacollectError):
    """A solver ended without an answer that can be trusted."""


class SolverUnavailableError(SolverError):
    """A solver is not installed, or does not solve this kind of model."""


class TimeLimitError(SolverError):
    """The time limit passed before a complete schedule was found.

    Attributes
    ----------
    status : str
        Always ``"time_limit"``.
    """

    status = "time_limit"


class SimulationError(DatacollectError):
    """A simulator failed; the message names the scenario."""


class TransferError(DatacollectError):
    """Moving real bytes failed: the message names the peer.

    Attributes
    ----------
    is_final : bool
        Whether to try again cannot help, as long as nobody changes anything.
    """

    is_final = False


class StoreError(TransferError):
    """The destination folder cannot be read or written: the disk is full, or fails."""


class TicketError(TransferError):
    """A ticket, or what else is signed, does not count: forged, expired, used, or for others."""


class IdentityError(TransferError):
    """Another peer answers than is expected, by certificate or name, or nobody has the name."""

    is_final = True


class EndlessError(TransferError):
    """Too little comes of a list without a known end for anybody to wait for it."""

    is_final = True


class RefusedError(TransferError):
    """An agent refused a request.

    Attributes
    ----------
    status : int
        HTTP's status code of the refusal.
    by : str
        Of relays: which one refuses.
    """

    def __init__(self, message: str, status: int, *, is_final: bool = False, by: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.is_final = is_final
        self.by = by


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known word nearest to `word`, or ``""``.

    A word that ends in a unit is never taken for one in another unit: who follows such a hint is
    wrong by a factor, in silence. Nor is a unit guessed for a word that names none, where it may be
    in several, nor what was written suggested again.

    >>> nearest_hint("backlog_byte", ["backlog_bytes"])
    "; did you mean 'backlog_bytes'?"
    >>> nearest_hint("backlog_mbytes", ["backlog_bytes"])
    "; the nearest, 'backlog_bytes', is in another unit: convert"
    >>> nearest_hint("CERN", ["cern", "desy"])
    "; did you mean 'cern'?"
    >>> nearest_hint("bandwidth", ["bandwidth_bit_per_s", "bandwidth_mbit_per_s"])
    "; did you mean 'bandwidth_bit_per_s', or 'bandwidth_mbit_per_s', by its unit?"
    """
    words = [other for other in known if other != word]
    folded = [other for other in words if other.casefold() == word.casefold()]
    if folded:
        return f"; did you mean {folded[0]!r}?"
    unit = unit_of_name(word)
    same = [other for other in words if not unit or unit_of_name(other) in ("", unit)]
    matches = get_close_matches(word, same, n=1)
    if matches:
        alike = [] if unit else _in_other_units(matches[0], words)
        return f"; did you mean {_any_of(matches[0], alike)}?"
    others = get_close_matches(word, [other for other in words if other not in same], n=1)
    return f"; the nearest, {others[0]!r}, is in another unit: convert" if others else ""


def _in_other_units(word: str, words: Sequence[str]) -> list[str]:
    """Return the words that differ from one by their unit only."""
    stem = _UNIT_OF_NAME.sub("", word.lower())
    same = [other for other in words if _UNIT_OF_NAME.sub("", other.lower()) == stem]
    return [other for other in same if other != word and unit_of_name(other)]


def _any_of(word: str, others: Sequence[str]) -> str:
    if not others:
        return repr(word)
    return f"{word!r}, or {', '.join(map(repr, others[:2]))}, by its unit"


def unit_of_name(name: str) -> str:
    """Return the unit that a name ends in, in one way to write it; ``""`` where it names none.

    >>> unit_of_name("backlog_gbyte"), unit_of_name("rate_Mbit_per_sec"), unit_of_name("links")
    ('gb', 'mbit/s', '')
    >>> unit_of_name("bandwidth (Mbit/s)"), unit_of_name("Throughput [Gbps]")
    ('mbit/s', 'gbit/s')
    """
    found = _UNIT_OF_NAME.search(name.lower())
    if not found:
        return ""
    prefix, data, per, time = found.groups()
    if time:
        return _TIMES[time]
    if data == "b" and per == "ps" and name.rstrip(" )]").endswith("bps"):
        data = "bit"  # as everybody writes it; with a large B it may be either
    # b alone may be either, and is like neither.
    short = {"b": "b or bit", "byte": "b", "bytes": "b"}.get(data, "bit")
    return f"{prefix or ''}{short}{'/s' if per else ''}"


_TIMES = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("ms", "msec", "milliseconds"), "ms"),
    **dict.fromkeys(("us", "usec", "microseconds"), "us"),
    "ns": "ns",
}
_UNIT_OF_NAME = re.compile(
    r"[_ (\[]+(?:(?:per_)?((?:[kmgtpe]|kilo|mega|giga|tera|peta)i?)?(bytes|byte|bits|bit|b)"
    r"((?:_per_| per |/|_)?(?:s|sec|second)|ps)?"
    rf"|({'|'.join(sorted(_TIMES, key=len, reverse=True))}))[ )\]]*$"
)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put a place, or a file's name, before what errors say that arise inside.

    >>> with naming("small.toml"):
    ...     raise ProblemError("scale must be > 0, got 0")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: small.toml: scale must be > 0, got 0
    """
    try:
        yield
    except ProblemError as error:
        named = type(error)(f"{place}: {error}")
        named.exit_code = error.exit_code
        raise named from None
    except InfeasibleError as error:
        raise InfeasibleError(f"{place}: {error}", error.hosts) from None
