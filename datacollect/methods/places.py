"""Places of methods' options: which options each takes, and why it refuses the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.methods.choice import METHODS, own_methods, planners

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.methods.options.option import Option, Place
    from datacollect.methods.options.spec import MethodSpec


def options_in(place: Place, brought: Sequence[str] = ()) -> dict[str, Option]:
    """Return the options of methods that a place takes, by name, in one order for all.

    Parameters
    ----------
    place : str
    brought : sequence of str, optional
        Methods of other packages, whose options join those of our own.

    Examples
    --------
    >>> list(options_in("pull"))
    ['solver', 'prefer', 'time_limit_s', 'hysteresis', 'first', 'derate', 'cautious']
    """
    found: dict[str, Option] = {}
    order: list[str] = []
    # The last methods first: they have the most options, and the others' go in between.
    for spec in (*reversed(own_methods()), *map(METHODS.get, brought)):
        taken = {n: about for n, about in spec.takes.items() if place not in about.not_in}
        found = taken | found
        at = len(order)
        for name in reversed(taken):
            if name in order:
                at = order.index(name)
            else:
                order.insert(at, name)
    return {name: found[name] for name in order}


def refused_in(place: Place) -> dict[str, str]:
    """Return the options of our own methods that a place does not take, and why.

    >>> refused_in("pull")["connections"]
    'limits.connections says how many there are'
    """
    taken = options_in(place)
    return {
        name: about.not_in[place]
        for spec in own_methods()
        for name, about in spec.takes.items()
        if name not in taken
    }


def require_fit(
    spec: MethodSpec, given: Mapping[str, Any], place: Place, spelled: Callable[[str], str]
) -> list[str]:
    """Refuse options that mean nothing to a method, in a place, or to each other.

    Parameters
    ----------
    spec : MethodSpec
    given : mapping
        Options by name; those that are None are not given.
    place : str
    spelled : callable
        Says how the place writes an option's name.

    Returns
    -------
    list of str
        Options that are without effect, and may be given.

    Raises
    ------
    ProblemError
        The message names the option and what it is for.

    Examples
    --------
    >>> from datacollect.methods.choice import METHODS
    >>> require_fit(METHODS.get("direct"), {"slot_s": 1.0}, "plan", str)
    ['slot_s has no meaning for direct, which has no relays']
    """
    names = [name for name, value in given.items() if value is not None]
    notes = []
    for name in names:
        if name in spec.takes:
            _require_possible(spec.takes[name], name, names, place, spelled)
            continue
        owners = [other for other in planners() if name in other.takes]
        lacking = owners[0].takes[name].lacking
        if not lacking:
            known = " or ".join(other.name for other in owners)
            raise ProblemError(f"{spelled(name)} is for --method {known}, got --method {spec.name}")
        notes.append(f"{spelled(name)} has no meaning for {spec.name}, {lacking}")
    return notes


def _require_possible(
    about: Option, name: str, names: list[str], place: Place, spelled: Callable[[str], str]
) -> None:
    if place in about.not_in:
        raise ProblemError(f"{spelled(name)}: {about.not_in[place]}; leave it out")
    for other in about.excludes:
        if other in names:
            raise ProblemError(
                f"{spelled(name)} and {spelled(other)} cannot be combined; give one of them"
            )
    if about.needs is not None and about.needs[0] not in names:
        needed, why = about.needs
        raise ProblemError(f"{spelled(name)} needs {spelled(needed)}: {why}")
