"""Patterns of paths: ``*.tar``, ``run7/**``."""

from __future__ import annotations

import fnmatch
import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ANY_FOLDERS = "**"


@dataclass(frozen=True)
class Narrowing:
    """The view of one start: which files of those that the collection wants it asks for.

    Attributes
    ----------
    include : tuple of str or None
        Patterns; None: all.
    exclude : tuple of str
        Patterns of files that are not asked for.

    Examples
    --------
    >>> view = Narrowing(("run7/**",), ("**/*.tmp",))
    >>> view.fits("run7/a"), view.fits("run7/a.tmp"), view.fits("run8/a")
    (True, False, False)
    >>> view.options
    "--include 'run7/**' --exclude '**/*.tmp'"
    """

    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        """Return whether it leaves nothing out."""
        return self.include is None and not self.exclude

    @property
    def options(self) -> str:
        """The options of the command line that say it."""
        words = [("--include", pattern) for pattern in self.include or ()]
        if self.include == ():
            words.append(("--exclude", "**"))
        words += [("--exclude", pattern) for pattern in self.exclude]
        return " ".join(f"{option} {shlex.quote(pattern)}" for option, pattern in words)

    def fits(self, path: str) -> bool:
        """Return whether it asks for a file."""
        return matches(path, self.include) and not matches(path, self.exclude)

    def may_hold(self, folder: str) -> bool:
        """Return whether a file that it asks for may lie in a folder, whose name ends in a slash.

        >>> view = Narrowing(("run7/*.tar",), ("run7/old/**",))
        >>> [view.may_hold(folder) for folder in ("run7/", "run8/", "run7/old/")]
        [True, False, False]
        """
        # Only patterns that fit every name there leave out all of it.
        return could_hold(folder, self.include) and not matches(f"{folder}\0", self.exclude)

    def may_matter(self, name: str) -> bool:
        """Say whether it asks for a name that a source leaves out, or for what may lie below it."""
        if name == ".":
            return True
        return self.may_hold(name) if name.endswith("/") else self.fits(name)


@dataclass(frozen=True)
class WantedFiles:
    """Wanted files of a source: those that all three allow.

    Attributes
    ----------
    files : tuple of str or None
        Patterns of the collection; None: all.
    include : tuple of str or None
        Patterns of this start; None: all.
    exclude : tuple of str
        Patterns of files that are not wanted this time.
    largest_bytes : int or None
        Larger files are left out, and named.
    said : str or None
        A short text for what the collection itself says of the source, which changes with it: where
        it is, and which files it has.

    Examples
    --------
    >>> wanted = WantedFiles(("run7/**",), ("**/*.tar",), ("**/old*",))
    >>> [wanted.fits(path) for path in ("run7/a.tar", "run7/old.tar", "run7/a.log", "b.tar")]
    [True, False, False, False]
    """

    files: tuple[str, ...] | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    largest_bytes: int | None = None
    said: str | None = None

    @property
    def narrowing(self) -> Narrowing:
        """The view of this start."""
        return Narrowing(self.include, self.exclude)

    def fits(self, path: str) -> bool:
        """Return whether a file is wanted."""
        return matches(path, self.files) and self.narrowing.fits(path)

    def may_hold(self, folder: str) -> bool:
        """Return whether a file that is wanted may lie in a folder, whose name ends in a slash.

        >>> wanted = WantedFiles(include=("run7/*.tar",), exclude=("run7/old/**",))
        >>> [wanted.may_hold(folder) for folder in ("run7/", "run8/", "run7/old/")]
        [True, False, False]
        """
        return could_hold(folder, self.files) and self.narrowing.may_hold(folder)

    def may_matter(self, name: str) -> bool:
        """Return whether a name that a source leaves out is wanted, or holds what may be."""
        if name == ".":
            return True
        return self.may_hold(name) if name.endswith("/") else self.fits(name)

    @property
    def is_all(self) -> bool:
        """Return whether nothing is left out."""
        return self.files is None and self.narrowing.is_all


ALL = WantedFiles()


def matches(path: str, patterns: Sequence[str] | None) -> bool:
    """Return whether one of the patterns fits the whole path; None fits every path.

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
    """Return whether the first names fit the wanted ones, one by one."""
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


def could_hold(place: str, patterns: Sequence[str] | None) -> bool:
    """Return whether a pattern could mean something that lies in a folder.

    >>> [could_hold("run7/", [pattern]) for pattern in ("run7/*.tar", "*", "**/*.tar", "run8/**")]
    [True, False, True, False]
    """
    if patterns is None:
        return True
    names = place.removesuffix("/").split("/")
    return any(_goes_through(names, pattern.split("/")) for pattern in patterns)


def _goes_through(names: Sequence[str], wanted: Sequence[str]) -> bool:
    for i, name in enumerate(names):
        if wanted[i : i + 1] == [ANY_FOLDERS]:
            return True
        if i >= len(wanted) or not fnmatch.fnmatchcase(name, wanted[i]):
            return False
    return len(wanted) > len(names)
