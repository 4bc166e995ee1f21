"""From what the state says, and what has moved, to the answer of a pull."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.transfer.pull.answer import Pulled, RouteUse
from datacollect.transfer.store.log import without_secrets
from datacollect.transfer.store.state import FileState, Missing
from datacollect.units import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.choices import RunMethod
    from datacollect.transfer.protocol.source import Assurance, Source
    from datacollect.transfer.store.state import State


@dataclass
class Use:
    """What a start has used so far: time, routes, connections, bytes in vain.

    Attributes
    ----------
    begun_s : float
        By the clock that never jumps.
    predicted_s : float or None
        When the end is expected, from the start on.
    routes, route_sessions : Counter of tuple of str
        New bytes, and most sessions at a time, by hosts of the route.
    refetched : Counter of str
        Bytes in vain, by the reason.
    """

    begun_s: float = field(default_factory=time.monotonic)
    predicted_s: float | None = None
    routes: Counter[tuple[str, ...]] = field(default_factory=Counter)
    route_sessions: Counter[tuple[str, ...]] = field(default_factory=Counter)
    refetched: Counter[str] = field(default_factory=Counter)


def answer_of(
    state: State,
    sources: Mapping[str, Source],
    ended: Mapping[str, str],
    method: RunMethod,
    use: Use,
) -> Pulled:
    """Return the answer of a start that is over.

    Parameters
    ----------
    state : State
        Says what is there, and whether it is all.
    sources : mapping of str to Source
    ended : mapping of str to str
        Sources that were given up, and why.
    method : str
    use : Use
    """
    done = [each[FileState.DONE] for each in state.counts().values() if FileState.DONE in each]
    missing = [*state.missing(), *_not_here(state, ended)]
    return Pulled(
        complete=state.is_complete(),
        n_bytes=sum(n_bytes for _, n_bytes in done),
        n_files=sum(n for n, _ in done),
        predicted_makespan_s=use.predicted_s,
        makespan_s=time.monotonic() - use.begun_s,
        method=method,
        routes=tuple(
            RouteUse(hosts[0], hosts, n_bytes, use.route_sessions[hosts])
            for hosts, n_bytes in use.routes.items()
        ),
        refetched={why: n for why, n in use.refetched.items() if n},
        missing=tuple(missing),
        assurances=_assurances(state, sources),
        listed=all(each.is_listed for each in state.wanted()),
    )


def _not_here(state: State, ended: Mapping[str, str]) -> list[Missing]:
    """Return what is missing as a whole: of sources not listed, or not fetched to the end."""
    waiting = {name: (n, n_bytes) for name, n, n_bytes in state.waiting()}
    found = []
    for each in state.wanted():
        n, n_bytes = waiting.get(each.name, (0, 0))
        if each.is_listed and not n:
            continue
        what = f"{counted(n, 'file')}, {format_bytes(n_bytes)}" if n else "all of it"
        why = ended.get(each.name) or each.why
        why = why or ("not fetched yet" if each.is_listed else "not listed to its end")
        found.append(Missing(each.name, "", without_secrets(f"{what}: {why}")))
    return found


def _assurances(state: State, sources: Mapping[str, Source]) -> tuple[Assurance, ...]:
    tags: dict[str, dict[str | None, int]] = {}
    for name, tag, n in state.tags():
        tags.setdefault(name, {})[tag] = n
    found = (
        sources[name].assurance(each) for name, each in sorted(tags.items()) if name in sources
    )
    return tuple(assurance for assurance in found if assurance is not None)
