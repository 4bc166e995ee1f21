"""Rows by labels, of which there are never more than so many, whoever names the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What labels say of all that there is no room for.
OTHER = "other"
MOST_LABEL = 80

RowT = TypeVar("RowT")


class BoundedRows(Generic[RowT]):
    """Rows by labels, so many at most: all labels beyond share the row ``other``.

    A row that was once there stays: what counts up in one row never moves to another.

    Parameters
    ----------
    make : callable
        Returns an empty row.
    most : int
        How many there may be, but for ``other``.

    Examples
    --------
    >>> rows = BoundedRows(list, most=2)
    >>> for name in "abcda":
    ...     rows.of(name).append(name)
    >>> dict(rows.items())
    {('a',): ['a', 'a'], ('b',): ['b'], ('other',): ['c', 'd']}
    """

    def __init__(self, make: Callable[[], RowT], most: int) -> None:
        self._make, self._most = make, most
        self._rows: dict[tuple[str, ...], RowT] = {}

    def of(self, *labels: str) -> RowT:
        """Return the row of some labels."""
        key = tuple(safe_text(each)[:MOST_LABEL] for each in labels)
        if key not in self._rows and len(self._rows) >= self._most:
            key = (OTHER,) * len(labels)
        if key not in self._rows:
            self._rows[key] = self._make()
        return self._rows[key]

    def items(self) -> Iterator[tuple[tuple[str, ...], RowT]]:
        """Return all rows with their labels."""
        return iter(self._rows.items())
