"""Copies of problems: what they take over, what they forget, and what is checked of them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from datacollect.files.one_number import SINCE_1970
from datacollect.files.with_units import values_in_units
from datacollect.numbers.containers import ArrayAxis, texts_of
from datacollect.problem.connection_rates import RATE_COLUMNS, wire_rates
from datacollect.problem.contents import ProblemContents
from datacollect.problem.fields import COUNTED
from datacollect.problem.host_limits import LIMITS, SHOWN, shown_rates
from datacollect.problem.manifest import require_fit
from datacollect.problem.numbers import floats_of
from datacollect.problem.places import PLACE_COLUMNS, changed_places
from datacollect.problem.production import PRODUCTION_COLUMNS, changed_production, reject_early_held
from datacollect.problem.rules import (
    HOST_COLUMNS,
    LINK_COLUMNS,
    changed_columns,
    reject_bad_held,
    reject_bad_shared,
    require_hosts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

_P = TypeVar("_P", bound=ProblemContents)
_ATTRIBUTES = frozenset(ProblemContents.__dataclass_fields__)

_LINKS = frozenset(("names", "link_from", "link_to"))
_HELD = frozenset(("names", "held"))
_PARCELS = _HELD | {"destination", "backlog_bytes", "release_s"}

# Of what a problem computes once, when first asked for: what a copy takes over unless one of the
# attributes is changed that it follows from. It is what takes long; all else is computed again.
TAKEN_OVER = {
    "host_index": frozenset(("names",)),
    "held_columns": _HELD,
    "parcel_columns": _PARCELS,
    "parcels": _PARCELS,
    "_link_key": _LINKS,
    "shared_links": _LINKS | {"shared"},
    "_digest_of_links": _LINKS,
    "_digest_of_bandwidth": _LINKS | {"bandwidth_bytes_per_s", "periods_s", "daily", "clock"},
    "_digest_of_shared": _LINKS | {"shared"},
}


def copied(problem: _P, changes: Mapping[str, Any]) -> _P:
    """Return a copy with other values for some attributes, not checked yet.

    Parameters
    ----------
    problem : ProblemContents
        A problem, with what it has computed.
    changes : mapping of str to object
        New values by the attributes' names.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> copied(problem, {"destination": "S"}).destination
    'S'
    """
    if not changes.keys().isdisjoint(("names", "bandwidth_bytes_per_s")):
        changes = {"bandwidth_intervals": None, **changes}  # they were of others
    if not changes.keys().isdisjoint(("names", *LIMITS)) and "daily" not in changes:
        changes = {"limit_causes": None, **changes}
    other = copy.copy(problem)
    keeps = {name for name, follows in TAKEN_OVER.items() if follows.isdisjoint(changes)}
    for name in other.__dict__.keys() - _ATTRIBUTES - keeps:
        del other.__dict__[name]
    for key, value in changes.items():
        object.__setattr__(other, key, value)
    return other


def _let_in(problem: Any, changed: Set[str]) -> None:
    """Bring names and numbers that have changed through the door."""
    # Plain texts: equal problems are equal however they were built.
    if "names" in changed:
        object.__setattr__(problem, "names", texts_of(problem.names, "names"))
    if "destination" in changed:
        [destination] = texts_of([problem.destination], "destination")
        object.__setattr__(problem, "destination", destination)
    columns = {key: getattr(problem, key) for key in changed & COUNTED.keys()}
    for key, value in counted(problem, columns).items():
        object.__setattr__(problem, key, value)


def counted(problem: ProblemContents, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a problem's attributes, all of them, by the door for numbers.

    Labels are those of the hosts or links that the problem has with these values.
    """

    def now(key: str) -> Any:
        return given[key] if key in given else getattr(problem, key)

    names = texts_of(now("names"), "names")

    def pairs() -> list[tuple[str, str]]:
        ends = (np.asarray(now(key)).tolist() for key in ("link_from", "link_to"))
        return [(names[a], names[b]) for a, b in zip(*ends, strict=True)]

    hosts, links = (ArrayAxis("host", lambda: names),), (ArrayAxis("link", pairs),)
    axes = dict.fromkeys(
        (
            *HOST_COLUMNS,
            *SHOWN.values(),
            "most_connections",
            *PRODUCTION_COLUMNS,
            *PLACE_COLUMNS,
        ),
        hosts,
    )
    axes |= dict.fromkeys(LINK_COLUMNS[2:], links)
    measured = {key: given[key] for key in ("measured_s",) if key in given}
    others = {key: value for key, value in given.items() if key not in measured}
    return {
        **values_in_units(others, COUNTED, axes, now("clock")),
        **values_in_units(measured, COUNTED, clock=SINCE_1970),
    }


def with_rates(problem: ProblemContents, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes with those of rates by connections that follow from them.

    A link that is estimated twice as fast has twice the capacity and twice the rate of a
    connection, among as many competitors. Of other links nothing is known.
    """
    changes = dict(changes)
    columns = {key: getattr(problem, key) for key in RATE_COLUMNS}
    if columns["competitors"] is None or not changes.keys().isdisjoint(columns):
        return changes
    if not changes.keys().isdisjoint(("names", "link_from", "link_to")):
        return changes | dict.fromkeys(RATE_COLUMNS)
    if "bandwidth_bytes_per_s" in changes:
        before = problem.bandwidth_bytes_per_s[0]
        after = np.atleast_2d(floats_of("bandwidth_bytes_per_s", changes["bandwidth_bytes_per_s"]))[
            0
        ]
        if after.shape == before.shape:
            with np.errstate(invalid="ignore", divide="ignore"):
                factor = after / before
                for key in RATE_COLUMNS:
                    scaled = columns[key] * (1.0 if key == "competitors" else factor)
                    # Without any capacity they say nothing.
                    changes[key] = np.where(after > 0, scaled, np.nan)
    return changes


def _changed_shown(problem: ProblemContents, changed: Set[str]) -> dict[str, Any]:
    """Check what hosts were seen to do where it has changed; return it, frozen."""
    found: dict[str, Any] = {}
    for key in SHOWN.values():
        given = getattr(problem, key)
        if changed & {"names", key} and given is not None:
            found[key] = rates = shown_rates(problem.names, key, given)
            if rates is not None:
                found[key] = rates = rates.copy()
                rates.flags.writeable = False
    return found


def settle(problem: Any, changed: Set[str]) -> None:
    """Check what has changed of a `Problem`, and what refers to it; freeze arrays.

    What has not changed needs no second look: there may be millions of links.
    """
    _let_in(problem, changed)
    for key in changed & {"shared", "held"}:
        object.__setattr__(problem, key, tuple(getattr(problem, key)))
    if "price_per_gb" in changed and not np.any(problem.price_per_gb):
        object.__setattr__(problem, "price_per_gb", None)  # all free: no prices
    if problem.most_connections is not None and not np.isfinite(problem.most_connections).any():
        object.__setattr__(problem, "most_connections", None)  # nowhere limited
    if changed & {"names", "destination"}:
        require_hosts(problem.names, problem.destination)
    columns: dict[str, Any] = {
        **changed_columns(problem, changed),
        **changed_places(problem, changed),
        **_changed_shown(problem, changed),
    }
    for key, array in columns.items():
        object.__setattr__(problem, key, array)
    for key, array in changed_production(problem, changed).items():
        object.__setattr__(problem, key, array)
    if changed & {"names", "link_from", "link_to", "shared"}:
        reject_bad_shared(problem.shared, problem)
    if "shared" in changed:
        wire_rates(problem)  # refuses what contradicts itself
    if problem.manifest is not None and changed & {"names", "backlog_bytes", "manifest"}:
        require_fit(problem, problem.manifest, "manifest")
    if changed & {"names", "destination", "backlog_bytes", "storage_bytes", "held"}:
        reject_bad_held(problem.held, problem)
    if changed & {"names", "backlog_bytes", "held", *PRODUCTION_COLUMNS}:
        reject_early_held(problem)
