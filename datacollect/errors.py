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
        ├── TicketError                  a ticket, or what else is signed, does not count
        ├── IdentityError                somebody else answers than was expected
        └── RefusedError                 an agent refused a request
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# What is no mistake of whoever gave the name.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class DatacollectError(Exception):
    """Base of every exception that this library raises on purpose."""

    exit_code = 3


class ProblemError(DatacollectError, ValueError):
    """Malformed input: the message names the place, the rule, the value and the remedy."""

    exit_code = 2


class NotWrittenError(ProblemError):
    """A file cannot be written: exit code 3 where the disk is full, or fails; else 2."""

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
    """Moving real bytes failed: the message names the peer."""


class TicketError(TransferError):
    """A ticket, or what else is signed, does not count: forged, expired, used, or for others."""


class IdentityError(TransferError):
    """A host's certificate is not the one that is expected there."""


class RefusedError(TransferError):
    """An agent refused a request.

    Attributes
    ----------
    status : int
        HTTP's status code of the refusal.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known word nearest to `word`, or ``""``."""
    matches = get_close_matches(word, list(known), n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


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
