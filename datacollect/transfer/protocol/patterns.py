"""Patterns of paths: ``*.tar``, ``run7/**``."""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY_FOLDERS = "**"


def matches(path: str, patterns: Sequence[str] | None) -> bool:
    """Whether one of the patterns fits the whole path; None fits every path.

    ``*`` and ``?`` stand for characters within a name, ``[ab]`` for one of some characters, a whole
    name ``**`` for any number of folders or, at the end, for all that lies below. Upper and lower
    case differ. It takes time in proportion to the path and the pattern, whatever they hold.

    Examples
    --------
    >>> matches("a.tar", ["*.tar"]), matches("run7/a.tar", ["*.tar"])
    (True, False)
    >>> matches("run7/x/a.tar", ["run7/**"]), matches("run7", ["run7/**"])
    (True, False)
    >>> matches("x/y/a.tar", ["**/*.tar"]), matches("a.tar", ["**/*.tar"])
    (True, True)
    """
    if patterns is None:
        return True
    names = path.split("/")
    return any(_fits(names, _names_of(pattern)) for pattern in patterns)


def _fits(names: Sequence[str], wanted: Sequence[re.Pattern[str] | None]) -> bool:
    n_any = wanted.count(None)
    if n_any == 0:
        return len(names) == len(wanted) and _each_fits(names, wanted)
    if n_any > 1:
        return _fits_somehow(names, wanted)
    before = wanted.index(None)
    after = len(wanted) - before - 1
    return (
        len(names) >= before + after
        and _each_fits(names, wanted[:before])
        and _each_fits(names[len(names) - after :], wanted[before + 1 :])
    )


def _each_fits(names: Sequence[str], wanted: Sequence[re.Pattern[str] | None]) -> bool:
    """Whether the first names fit the wanted ones, one by one."""
    pairs = zip(names, wanted, strict=False)
    return all(pattern is not None and pattern.match(name) for name, pattern in pairs)


def _fits_somehow(names: Sequence[str], wanted: Sequence[re.Pattern[str] | None]) -> bool:
    """Follow all readings at once: how many of the wanted names are used up so far."""
    used = _with_skipped({0}, wanted)
    for name in names:
        used = _with_skipped({after for at in used for after in _after(name, at, wanted)}, wanted)
    return len(wanted) in used


def _after(name: str, at: int, wanted: Sequence[re.Pattern[str] | None]) -> tuple[int, ...]:
    if at == len(wanted):
        return ()
    pattern = wanted[at]
    if pattern is None:
        return (at,)
    return (at + 1,) if pattern.match(name) else ()


def _with_skipped(used: set[int], wanted: Sequence[re.Pattern[str] | None]) -> set[int]:
    """Any number of folders may be none."""
    for at, pattern in enumerate(wanted):
        if pattern is None and at in used:
            used.add(at + 1)
    return used


@lru_cache(maxsize=4096)
def _names_of(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Return a regular expression for each name of a pattern, None for any number of folders."""
    names = pattern.split("/")
    if names[-1] == ANY_FOLDERS:
        names.append("*")
    # fnmatch's expressions do not try stars again that have found their place.
    return tuple(
        None if name == ANY_FOLDERS else re.compile(fnmatch.translate(name)) for name in names
    )
