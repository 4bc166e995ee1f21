"""Containers of numbers and names as callers bring them: pandas', Arrow's, numpy's, Python's.

What has labels is brought into the order of the names that they are. Labels 0, 1, … are those that
a container gets where nobody labels it, and count as places; any other label that is no name is
refused, since whoever wrote it meant something that nobody here knows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    import pandas as pd

# What needs no opening: most numbers are of these.
PLAIN = frozenset((int, float, str, type(None)))

# Rows or columns in the order of names: their places, None where they stand so already.
Order: TypeAlias = "list[int] | None"


@dataclass(frozen=True)
class ArrayAxis:
    """Dimension of an argument: the things that it counts.

    Parameters
    ----------
    what : str
        What has the names: ``"host"``, ``"link"``.
    listed : callable
        Returns the names in order; it is called where there are labels.
    """

    what: str
    listed: Callable[[], Iterable[Any]]

    @cached_property
    def names(self) -> list[Any]:
        """The names in order."""
        return list(self.listed())


def opened(value: Any, place: str) -> Any:
    """Return what a container holds: a number or text, an array, a list, a mapping, pandas' own.

    Raises
    ------
    ProblemError
        Something in it is masked, or it has no order.

    Examples
    --------
    >>> opened(range(3), "periods_s"), opened(np.ma.array([1.0, 2.0]), "periods_s")
    ([0, 1, 2], array([1., 2.]))
    """
    if type(value) in PLAIN or isinstance(value, Mapping | list | tuple):
        return value
    if hasattr(value, "to_pandas"):  # Arrow's, polars' and xarray's containers
        return opened(value.to_pandas(), place)
    if hasattr(value, "as_py"):  # a scalar of Arrow's
        return value.as_py()
    # Nobody has one who has not loaded the module, which takes 25 ms.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        return _unmasked(value, place)
    if isinstance(value, np.ndarray):
        return value if value.ndim else opened(value[()], place)
    if isinstance(value, np.generic):
        # As Python's numbers; durations and dates in nanoseconds would lose what they are.
        return value if value.dtype.kind in "mM" else value.item()
    if is_frame(value) or is_series(value):
        return value
    if hasattr(value, "toarray"):  # sparse: what is left out is 0
        return np.asarray(value.toarray())
    if _is_array_of_pandas(value):
        return values_of(sys.modules["pandas"].Series(value))
    if isinstance(value, set | frozenset):
        raise ProblemError(f"{place} must be in an order, got a set; give a list")
    if hasattr(value, "__array__"):
        return opened(np.asarray(value), place)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else value


def texts_of(value: Any, place: str) -> tuple[Any, ...]:
    """Return names in their order, whatever holds them; who takes them looks at each.

    Raises
    ------
    ProblemError
        It is one text, or has no order.

    Examples
    --------
    >>> texts_of(np.array(["S", "D"]), "names"), texts_of(iter("SD"), "names")
    (('S', 'D'), ('S', 'D'))
    """
    if isinstance(value, str) or is_frame(value):
        got = repr(value) if isinstance(value, str) else "a DataFrame"
        raise ProblemError(f"{place} must be a list of names, got {got}; put them in brackets")
    found = opened(value, place)
    if is_series(found):
        found = found.tolist()
    if not isinstance(found, Iterable):
        raise ProblemError(f"{place} must be a list of names, got {value!r}; put it in brackets")
    return tuple(_text(name) for name in found)


def _text(name: Any) -> Any:
    # numpy's texts are texts but print otherwise; Arrow's are none.
    name = name.as_py() if hasattr(name, "as_py") else name
    return str(name) if isinstance(name, str) else name


def frame_of(value: Any, place: str) -> pd.DataFrame:
    """Return a table as pandas has it, each column once.

    Raises
    ------
    ProblemError
        It is no table, or a column is given twice.
    """
    found = opened(value, place)
    if not is_frame(found):
        raise ProblemError(
            f"{place} must be a table, got {type(value).__name__}; pandas.DataFrame makes one"
        )
    if not found.columns.is_unique:
        twice = found.columns[found.columns.duplicated()][0]
        raise ProblemError(f"{place}: column {twice} given twice; keep one")
    table: pd.DataFrame = found
    return table


def by_name(value: Any, place: str) -> dict[Any, Any]:
    """Return what stands beside each name: of a mapping, or of a column with labels.

    Raises
    ------
    ProblemError
        It is neither, or a name is given twice.
    """
    found = opened(value, place)
    if isinstance(found, Mapping):
        return {_text(name): item for name, item in found.items()}
    if not is_series(found):
        raise ProblemError(
            f"{place} must be a mapping or a Series by name, got {type(value).__name__}; "
            "pandas.Series(numbers, names) makes one"
        )
    if not found.index.is_unique:
        twice = found.index[found.index.duplicated()][0]
        raise ProblemError(f"{place}: host {twice!r} given twice; sum or drop one")
    return dict(zip(map(_text, found.index), values_of(found), strict=True))


def order_of(labels: Iterable[Any], axis: ArrayAxis | None, place: str) -> Order:
    """Return where among labels each name of an axis stands; None where they only count.

    Raises
    ------
    ProblemError
        Labels are neither 0, 1, … nor the names, each once.

    Examples
    --------
    >>> order_of(["D", "S"], ArrayAxis("host", lambda: ["S", "D"]), "backlog_bytes")
    [1, 0]
    >>> order_of([0, 1], ArrayAxis("host", lambda: ["S", "D"]), "backlog_bytes")
    """
    listed = [_text(label) for label in labels]
    if _only_count(listed):
        return None
    if axis is None:
        raise ProblemError(
            f"{place} must have labels 0 … {len(listed) - 1} where nothing has a name, got "
            f"{listed[0]!r}; leave the labels out (reset_index(drop=True), or to_numpy())"
        )
    at: dict[Any, int] = {}
    for i, label in enumerate(listed):
        if label in at:
            raise ProblemError(f"{place}: {axis.what} {label!r} given twice; keep one")
        at[label] = i
    names = axis.names
    known = set(names)
    for label in listed:
        if label not in known:
            near = nearest_hint(label, names) if isinstance(label, str) else ""
            raise ProblemError(
                f"{place}: labels must be the {axis.what}s' names, or 0 … {len(names) - 1} by "
                f"place, got {label!r}{near or '; rename it, or leave the labels out'}"
            )
    for name in names:
        if name not in at:
            raise ProblemError(f"{place}: no number for {axis.what} {name!r}; add it")
    return [at[name] for name in names]


def _only_count(labels: Sequence[Any]) -> bool:
    return all(
        isinstance(label, int | np.integer) and not isinstance(label, bool) and label == i
        for i, label in enumerate(labels)
    )


def depth_of(value: Any) -> int:
    """Return how many dimensions a container has, as its first item tells."""
    if is_frame(value):
        return 2
    if isinstance(value, np.ndarray):
        return value.ndim
    if isinstance(value, Mapping | list | tuple):
        items = iter(value.values() if isinstance(value, Mapping) else value)
        return 1 + depth_of(next(items, None))
    return 1 if is_series(value) else 0


def values_of(series: pd.Series[Any]) -> np.ndarray[Any, Any]:
    """Return a column as an array: numbers as such, NaN where there is none; all else as objects.

    Durations and dates stay what they are, unless they have a zone.
    """
    kind = series.dtype.kind if isinstance(series.dtype, np.dtype) else "O"
    if kind != "O":
        return series.to_numpy()
    pandas = sys.modules["pandas"]
    whole = pandas.api.types.is_integer_dtype(series)
    if (whole or pandas.api.types.is_float_dtype(series)) and series.hasnans:
        return series.to_numpy(dtype=float, na_value=np.nan)
    if whole:
        return series.to_numpy(dtype=np.uint64 if str(series.dtype).lower()[0] == "u" else np.int64)
    if pandas.api.types.is_float_dtype(series):
        return series.to_numpy(dtype=float)
    found = np.empty(len(series), dtype=object)
    for i, cell in enumerate(series.array):  # one by one: lists stay cells
        found[i] = cell
    return found


def is_frame(value: Any) -> bool:
    """Return whether it is pandas' table; pandas is not imported for it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def is_series(value: Any) -> bool:
    """Return whether it is pandas' column with labels; pandas is not imported for it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Series)


def _is_array_of_pandas(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    kinds = () if pandas is None else (pandas.Index, pandas.api.extensions.ExtensionArray)
    return isinstance(value, kinds)


def _unmasked(value: np.ma.MaskedArray[Any, Any], place: str) -> Any:
    """Return the data of an array of which nothing is masked."""
    mask = np.ma.getmaskarray(value)
    if mask.any():
        at = "".join(f"[{i}]" for i in np.argwhere(mask)[0])
        raise ProblemError(
            f"{place}{at} must be a number, got a masked value; fill it in, or leave it out"
        )
    return opened(np.asarray(value.data), place)
