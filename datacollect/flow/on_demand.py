"""Sequences whose items are made when they are first asked for, and then kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")


class OnDemand(Sequence[Item]):
    """Items of which few may be needed, each by its number.

    Parameters
    ----------
    make : function of int
        Makes the item of a number, from 0 on.
    n_items : int

    Examples
    --------
    >>> asked = []
    >>> squares = OnDemand(lambda number: asked.append(number) or number**2, 1000)
    >>> squares[3], squares[-1], squares[3], len(squares), asked
    (9, 998001, 9, 1000, [3, 999])
    """

    def __init__(self, make: Callable[[int], Item], n_items: int) -> None:
        self._make = make
        self._n_items = n_items
        self._known: dict[int, Item] = {}

    def __len__(self) -> int:
        return self._n_items

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        if isinstance(index, slice):
            return tuple([self[number] for number in range(*index.indices(len(self)))])
        number = range(self._n_items)[index]
        if number not in self._known:
            self._known[number] = self._make(number)
        return self._known[number]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (OnDemand, tuple)):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


class OnDemandByName(Mapping[str, Item]):
    """Items by their names, of which few may be needed.

    Examples
    --------
    >>> lengths = OnDemandByName(len, ["one", "three"])
    >>> lengths["three"], dict(lengths)
    (5, {'one': 3, 'three': 5})
    """

    def __init__(self, make: Callable[[str], Item], names: Iterable[str]) -> None:
        self._make = make
        self._names = dict.fromkeys(names)
        self._known: dict[str, Item] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, name: str) -> Item:
        if name not in self._known:
            if name not in self._names:
                raise KeyError(name)
            self._known[name] = self._make(name)
        return self._known[name]

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
