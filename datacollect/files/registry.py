"""Registries: entries by name, our own and those of other installed packages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.metadata import EntryPoint

EntryT = TypeVar("EntryT")


@dataclass(frozen=True, eq=False)
class Registry(Generic[EntryT]):
    """Entries by name: our own, and those that other packages bring as entry points.

    Entries are imported when they are asked for. Entry points are looked for only where a name is
    not ours, or where all names are listed: to find them takes longer than to start most commands.

    Attributes
    ----------
    what : str
        What an entry is, for messages.
    group : str
        The group of entry points.
    kind : type
        The class of every entry.
    own : mapping of str to str
        By name ``"module:attribute"``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> rates = Registry("rate", "example.rates", Fraction, {"half": "example:HALF"})
    >>> rates.names()
    ('half',)
    >>> rates.get("halve")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: there is no rate 'halve'; did you mean 'half'?
    """

    what: str
    group: str
    kind: type[EntryT]
    own: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """Return all names, our own first.

        Raises
        ------
        ProblemError
            A package brings a name that is ours, or that another package brings, too.
        """
        return (*self.own, *(self._point(name).name for name in self._points))

    def usable_names(self, report: Callable[[str], None]) -> tuple[str, ...]:
        """Return the names of all entries that can be had, for lists that shall have the rest.

        Parameters
        ----------
        report : callable
            Is told of each package that brings an entry wrongly.
        """
        found = [*self.own]
        for name in self._points:
            try:
                self._point(name)
                self.get(name)
            except ProblemError as error:
                report(str(error))
            else:
                found.append(name)
        return tuple(found)

    def get(self, name: str) -> EntryT:
        """Import an entry.

        Raises
        ------
        ProblemError
            There is none of this name, it is ours and not installed, or the package that brings it
            does so wrongly.
        """
        if name in self.own:
            entry: EntryT = own_entry(self.what, name, self.own[name])
            return entry
        if name not in self._points:
            hint = nearest_hint(name, self.names()) or f"; there are {', '.join(self.names())}"
            raise ProblemError(f"there is no {self.what} {name!r}{hint}")
        point = self._point(name)
        place = f"{_package(point)}: its {self.what} {name!r} ({point.value})"
        try:
            found = point.load()
        except Exception as error:
            why = f"cannot be imported: {type(error).__name__}: {error}"
            raise ProblemError(f"{place} {why}; update or uninstall the package") from error
        if not isinstance(found, self.kind):
            raise ProblemError(
                f"{place} must be of the class {self.kind.__module__}.{self.kind.__qualname__}, "
                f"got {type(found).__qualname__}; update or uninstall the package"
            )
        if (own := getattr(found, "name", name)) != name:
            raise ProblemError(f"{place} calls itself {own!r}; update or uninstall the package")
        return found

    def has(self, name: str) -> bool:
        """Return whether there is an entry of this name.

        Packages are looked for where it is not ours.
        """
        return name in self.own or name in self._points

    def brought(self) -> Iterator[EntryT]:
        """Import, one after the other, the entries that other packages bring.

        Raises
        ------
        ProblemError
            A package does so wrongly.
        """
        for name in self._points:
            self._point(name)
            yield self.get(name)

    def entries(self) -> Iterator[EntryT]:
        """Import all entries, one after the other, our own first; see `brought`."""
        yield from map(self.get, self.own)
        yield from self.brought()

    @cached_property
    def _points(self) -> dict[str, tuple[EntryPoint, ...]]:
        from importlib.metadata import entry_points

        found: dict[str, tuple[EntryPoint, ...]] = {}
        for point in sorted(entry_points(group=self.group), key=lambda point: point.name):
            found[point.name] = (*found.get(point.name, ()), point)
        return found

    def _point(self, name: str) -> EntryPoint:
        """Return the one entry point of a name; refuse a name that is not one package's alone."""
        points = self._points[name]
        packages = " and ".join(sorted(_package(point) for point in points))
        if name in self.own:
            raise ProblemError(
                f"{packages}: brings {self.what} {name!r}, a name that datacollect itself has; "
                "uninstall the package, or have it renamed"
            )
        if len(points) > 1:
            raise ProblemError(
                f"{packages}: each brings {self.what} {name!r}; uninstall all but one of them"
            )
        return points[0]


def own_entry(what: str, name: str, place: str) -> Any:
    """Import one of our own entries, ``"module:attribute"``, or a module.

    Raises
    ------
    ProblemError
        A part of the package is installed that has no such module, such as the agent alone.
    """
    module, _, attribute = place.partition(":")
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        # Else it is there, and needs something that is not.
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        from datacollect.installation import command_for_extra
        from datacollect.wings import extra_of

        command = command_for_extra(extra_of(module))
        raise ProblemError(f"the {what} {name!r} needs the whole package: {command}") from None
    return getattr(found, attribute) if attribute else found


def _package(point: EntryPoint) -> str:
    """Return the package that brings an entry point, with its version."""
    return f"the package {point.dist.name} {point.dist.version}" if point.dist else "a package"
