"""Batches of one bistro held against each other: which it signed twice, which do not follow."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from datacollect.bistro.formats.custody.batches import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, order=True)
class Link:
    """A batch in its chain: its number, its digest, and that of the batch that it follows."""

    number: int
    digest: bytes
    previous: bytes


@dataclass(frozen=True)
class ChainFaults:
    """Faults of a chain of batches.

    Attributes
    ----------
    doubled : tuple of tuple of Link
        Those of one number that differ: the bistro has signed each.
    broken : tuple of Link
        Those that name another batch before them than are known of that number.
    absent : tuple of range
        Numbers below the largest that are not known: who keeps them back has not signed that.
    """

    doubled: tuple[tuple[Link, ...], ...]
    broken: tuple[Link, ...]
    absent: tuple[range, ...]


def chain_faults(links: Iterable[Link]) -> ChainFaults:
    """Return what in a bistro's batches does not fit together.

    Parameters
    ----------
    links : iterable of Link
        All that it has signed, as far as they are known, in any order.

    Examples
    --------
    >>> chain_faults([Link(2, b"c" * 32, b"b" * 32), Link(0, b"a" * 32, bytes(32))]).absent
    (range(1, 2),)
    """
    numbers = {n: [*some] for n, some in groupby(sorted({*links}), lambda link: link.number)}
    broken: list[Link] = []
    absent: list[range] = []
    stop = 0
    for number, some in numbers.items():
        if number > stop:
            absent.append(range(stop, number))
        stop = number + 1
        known = {each.digest for each in numbers.get(number - 1, ())}
        broken += [each for each in some if not _follows(each, known)]
    doubled = tuple(tuple(some) for some in numbers.values() if len(some) > 1)
    return ChainFaults(doubled, tuple(broken), tuple(absent))


def _follows(link: Link, known: set[bytes]) -> bool:
    """Return whether a batch may follow one of those that are known of the number before it."""
    if (link.number == 0) != (link.previous == FIRST):
        return False
    return not known or link.previous in known
