"""Changes that a sweep's axes may have from one start to the next, so that all runs count.

Rows of results are known by their labels. So a label has to go on meaning what it meant, and a
folder keeps every label that it ever had: a file may have more of them, or fewer.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from datacollect.study.axes import Axis, AxisValue


def grown_axes(before: Sequence[Axis], now: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the axes of an experiment with the labels that its folder has besides.

    Parameters
    ----------
    before : sequence of Axis
        As the folder has them.
    now : sequence of Axis
        As the experiment has them.

    Returns
    -------
    tuple of Axis
        In the order of `now`; of each axis first its labels there, then those of `before` alone.
        ``only`` allows what either of them allows.

    Raises
    ------
    ProblemError
        An axis is new or missing, or paired in one of them only; a label means something else
        than before, or what it means had another label; axes that change the same places stand
        in another order.

    Examples
    --------
    >>> from datacollect.study.axes import Axis, AxisValue
    >>> few = Axis("flows", False, (AxisValue("0", {"background.flows": 0}),))
    >>> more = Axis("flows", False, (AxisValue("5", {"background.flows": 5}),))
    >>> [axis.labels for axis in grown_axes([few], [more])]
    [['5', '0']]
    """
    old = {axis.name: axis for axis in before}
    _require_same_names(list(old), [axis.name for axis in now])
    _require_same_order(before, now)
    return tuple(_grown(old[axis.name], axis) for axis in now)


def _require_same_names(before: Sequence[str], now: Sequence[str]) -> None:
    for name in now:
        if name not in before:
            raise ProblemError(
                f"axes: the axis {name!r} is new, but the results have no label of it"
            )
    for name in before:
        if name not in now:
            raise ProblemError(
                f"axes: the axis {name!r} is missing, but the results have labels of it"
            )


def _require_same_order(before: Sequence[Axis], now: Sequence[Axis]) -> None:
    """Of two axes that change the same place the later one counts: these may not change places."""
    place = {axis.name: i for i, axis in enumerate(before)}
    for one, other in combinations(now, 2):
        if place[one.name] > place[other.name] and _share_a_place(one, other):
            raise ProblemError(
                f"axes: {other.name!r} came before {one.name!r} in the results' experiment; both "
                "change the same key, and the later one counts: restore their order"
            )


def _share_a_place(one: Axis, other: Axis) -> bool:
    ours = {place for value in one.values for place in value.values}
    theirs = {place for value in other.values for place in value.values}
    return any(
        f"{a}.".startswith(f"{b}.") or f"{b}.".startswith(f"{a}.") for a in ours for b in theirs
    )


def _grown(before: Axis, now: Axis) -> Axis:
    if before.paired != now.paired:
        was = "was paired" if before.paired else "was not paired"
        raise ProblemError(f"axes: {now.name!r} {was}")
    for value in now.values:
        for old in before.values:
            same = _plain(value.values) == _plain(old.values)
            if value.label == old.label and not same:
                raise ProblemError(
                    f"axis {now.name!r}: the label {value.label!r} meant {_shown(old.values)}, "
                    f"and means {_shown(value.values)} now; give it a label of its own"
                )
            if value.label != old.label and same:
                raise ProblemError(
                    f"axis {now.name!r}: {value.label!r} was called {old.label!r} before; call it "
                    "that again"
                )
    old_values = {value.label: value for value in before.values}
    grown = [_joined(value, old_values.pop(value.label, None)) for value in now.values]
    return replace(now, values=(*grown, *old_values.values()))


def _joined(now: AxisValue, before: AxisValue | None) -> AxisValue:
    """One value, combined with all labels that it was or is combined with."""
    if before is None:
        return now
    common = [name for name in now.only if name in before.only]
    only = {name: list(dict.fromkeys([*now.only[name], *before.only[name]])) for name in common}
    return replace(now, only=only)


def _plain(values: Mapping[str, Any]) -> Any:
    """Values as a folder keeps them: lists for tuples."""
    return json.loads(json.dumps(dict(values)))


def _shown(values: Mapping[str, Any]) -> str:
    shown: Iterable[str] = (f"{place} = {json.dumps(item)}" for place, item in values.items())
    return ", ".join(shown) or "nothing"
