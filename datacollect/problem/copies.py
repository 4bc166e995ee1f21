"""Copies of problems: what they take over from the original, and what they forget."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

from datacollect.problem.contents import ProblemContents

if TYPE_CHECKING:
    from collections.abc import Mapping

_P = TypeVar("_P", bound=ProblemContents)
_ATTRIBUTES = frozenset(ProblemContents.__dataclass_fields__)

_LINKS = frozenset(("names", "link_from", "link_to"))
_HELD = frozenset(("names", "held"))
_PARCELS = _HELD | {"destination", "backlog_bytes", "release_s"}

# Of what a problem computes once, when first asked for: what a copy takes over unless one of the
# attributes is changed that it follows from. It is what takes long; all else is computed anew.
TAKEN_OVER = {
    "host_index": frozenset(("names",)),
    "held_columns": _HELD,
    "parcel_columns": _PARCELS,
    "parcels": _PARCELS,
    "_link_key": _LINKS,
    "shared_links": _LINKS | {"shared"},
    "_digest_of_links": _LINKS,
    "_digest_of_bandwidth": _LINKS | {"bandwidth_bytes_per_s", "periods_s"},
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
    other = copy.copy(problem)
    keeps = {name for name, follows in TAKEN_OVER.items() if follows.isdisjoint(changes)}
    for name in other.__dict__.keys() - _ATTRIBUTES - keeps:
        del other.__dict__[name]
    for key, value in changes.items():
        object.__setattr__(other, key, value)
    return other
