"""Earlier names of public attributes and arguments: they work for one version, with a warning."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Renamed:
    """An attribute's earlier name.

    Parameters
    ----------
    new : str
        Its name now.

    Examples
    --------
    >>> class Plan:
    ...     end_s = 5.0
    ...     finish_s = Renamed("end_s")
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     Plan().finish_s
    5.0
    >>> str(caught[0].message)
    "Plan.finish_s is called 'end_s' now; the earlier name goes with the next version"
    """

    def __init__(self, new: str) -> None:
        self._new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        _warn(self._old, self._new)
        return getattr(owner if instance is None else instance, self._new)


def renamed_argument(old: str, new: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for functions that take an argument by its earlier name, too."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> T:
            if old in options:
                if new in options:
                    name = function.__name__
                    raise TypeError(f"{name}() takes {new!r}, once called {old!r}; give one")
                _warn(f"the argument {old!r} of {function.__name__}()", new)
                options[new] = options.pop(old)
            return function(*args, **options)

        return call

    return decorate


def _warn(old: str, new: str) -> None:
    text = f"{old} is called {new!r} now; the earlier name goes with the next version"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
