"""Makes the answer of a pull from its state and from what has moved."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.files.units import counted, format_bytes
from datacollect.net.safe_text import without_secrets
from datacollect.transfer.pull.answer import Differs, Pulled, RouteUse, ToCome, WithSource
from datacollect.transfer.store.state.state import FileState, Missing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from datacollect.schedule.data.assumptions import Assumptions
    from datacollect.transfer.protocol.source import Assurance, Source
    from datacollect.transfer.pull.answer import Wait
    from datacollect.transfer.pull.core.core import CollectorCore
    from datacollect.transfer.store.path_lookup import Displaced
    from datacollect.transfer.store.source_check import ComparedWithSource
    from datacollect.transfer.store.state.state import State

# The most files of a source given up that are named, each with its reason; others are counted.
MOST_NAMED = 1000
LATE = "no data, or too little, arrived when requested"

# Why files are missing with which nothing is wrong.
NOT_YET = "not fetched yet"


@dataclass
class StartUse:
    """Resources that a start has used so far: time, routes, connections, bytes received twice.

    Attributes
    ----------
    begun_s : float
        By the clock that never jumps.
    predicted_s : float or None
        When the end is expected, from the start on.
    promised_s : (float, float) or None
        Between which times in eight of ten cases, where bandwidths have intervals.
    n_regroups : int
        After so many regroups the last round began.
    assumptions : Assumptions or None
        What the plan leans on, where no more than a plan was wanted.
    routes, route_sessions : Counter of tuple of str
        New bytes, and most sessions at a time, by hosts of the route.
    refetched : Counter of str
        Bytes received twice, by the reason.
    late : dict of str to set of int
        Numbers of files of which nothing came when it was their turn, by source.
    waits : tuple of Wait
        What waits where, where no more than a plan in slots was wanted.
    """

    begun_s: float = field(default_factory=time.monotonic)
    predicted_s: float | None = None
    promised_s: tuple[float, float] | None = None
    n_regroups: int = 0
    assumptions: Assumptions | None = None
    routes: Counter[tuple[str, ...]] = field(default_factory=Counter)
    route_sessions: Counter[tuple[str, ...]] = field(default_factory=Counter)
    refetched: Counter[str] = field(default_factory=Counter)
    late: dict[str, set[int]] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()

    def is_promise_due(self, n_regroups: int) -> bool:
        """Return whether the plan of a round that begins promises.

        The first, and the one of a regroup.

        What is promised anew in every round, until shortly before the end, says nothing.

        >>> use = StartUse(predicted_s=10.0)
        >>> use.is_promise_due(0), use.is_promise_due(1), use.is_promise_due(1)
        (False, True, False)
        """
        is_regrouped, self.n_regroups = n_regroups > self.n_regroups, n_regroups
        return self.predicted_s is None or is_regrouped

    def note(self, core: CollectorCore, late: Mapping[str, set[int]]) -> None:
        """A round has ended; `late` are numbers of files, by source."""
        self.late |= late
        self.routes.update(core.route_bytes)
        self.refetched.update(core.refetched)
        for hosts, n in core.route_sessions.items():
            self.route_sessions[hosts] = max(n, self.route_sessions[hosts])


def answer_of(
    state: State,
    sources: Mapping[str, Source],
    ended: Mapping[str, str],
    method: str,
    use: StartUse,
    displaced: Sequence[Displaced],
    compared: Mapping[str, ComparedWithSource] | None = None,
) -> Pulled:
    """Return the answer of a start that is over.

    Parameters
    ----------
    state : State
        Says what came, and whether it is all.
    sources : mapping of str to Source
    ended : mapping of str to str
        Sources that were given up, and why.
    method : str
    use : StartUse
    displaced : sequence of Displaced
        What came and does not lie there now, as it was placed.
    compared : mapping of str to ComparedWithSource, optional
        What came of comparing what was there with its source, where that was wanted.
    """
    done = [each[FileState.DONE] for each in state.counts().values() if FileState.DONE in each]
    lost = [Missing(each.source, each.file.path, each.why) for each in displaced]
    missing = [*state.missing(), *_not_here(state, sources, ended, use.late), *lost]
    return Pulled(
        complete=state.is_complete() and not displaced,
        n_bytes=sum(n_bytes for _, n_bytes in done) - sum(each.file.n_bytes for each in displaced),
        n_files=sum(n for n, _ in done) - len(displaced),
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
        narrowed_to=None if (view := state.last_view()).is_all else view,
        to_come=tuple(_to_come(state)),
        with_source=None if compared is None else _with_source(state, compared),
        assumptions=use.assumptions,
        promised_p10_s=None if use.promised_s is None else use.promised_s[0],
        promised_p90_s=None if use.promised_s is None else use.promised_s[1],
        waits=use.waits,
    )


def _with_source(state: State, compared: Mapping[str, ComparedWithSource]) -> WithSource:
    """Return what came of comparing with sources; of one that was not reached, that it was not."""
    return WithSource(
        sum(each.n_files for each in compared.values()),
        sum(each.n_bytes for each in compared.values()),
        tuple(
            Differs(name, file.path, file.n_bytes)
            for name, each in sorted(compared.items())
            for file in each.differing
        ),
        (
            *(
                Missing(file.source, file.path, file.why)
                for each in compared.values()
                for file in each.not_compared
            ),
            *(
                Missing(each.name, "", "none of its files was compared: it was not listed")
                for each in state.wanted()
                if each.name not in compared
            ),
        ),
    )


def _to_come(state: State) -> Iterator[ToCome]:
    waiting = {name: (n, n_bytes) for name, n, n_bytes in state.waiting()}
    for each in state.wanted():
        yield ToCome(each.name, *waiting.get(each.name, (0, 0)))


def _not_here(
    state: State,
    sources: Mapping[str, Source],
    ended: Mapping[str, str],
    late: Mapping[str, Collection[int]],
) -> list[Missing]:
    """Return what is missing of sources that were not listed, or not fetched to the end."""
    waiting = {name: (n, n_bytes) for name, n, n_bytes in state.waiting()}
    found = []
    for name, is_listed, trouble in state.wanted():
        n, n_bytes = waiting.get(name, (0, 0))
        why = without_secrets(ended.get(name) or trouble or "")
        if is_listed and n:
            others = f"{counted(n, 'file')}, {format_bytes(n_bytes)}"
            if why:
                found += (named := _waiting_files(state, name, why, late.get(name, ())))
                more = f"{counted(n - len(named), 'file')} more of {others}"
                others = f"{more}, which are all that is listed and not in the folder yet"
                n -= len(named)
            if n:
                found.append(Missing(name, "", f"{others}: {why or NOT_YET}"))
        elif not is_listed:
            why = why or "not listed to its end"
            n_done = len(state.done_paths(name))
            all_ = (
                f"whatever it has besides {counted(n_done, 'file')} here" if n_done else "all of it"
            )
            found += _named_files(state, sources.get(name), why) or [
                Missing(name, "", f"{all_}: {why}")
            ]
    return found


def _waiting_files(state: State, name: str, why: str, late: Collection[int]) -> list[Missing]:
    """Return files of a source that was given up, each with its own reason."""
    return [
        Missing(name, path, f"{LATE}; {why}" if number in late else why)
        for number, path in state.waiting_files(name, MOST_NAMED)
    ]


def _named_files(state: State, source: Source | None, why: str) -> list[Missing]:
    """Return what the collection itself names of a source that was not listed."""
    if source is None or not source.named:
        return []
    done = state.done_paths(source.name)
    others = [path for path in source.named if path not in done]
    found = [Missing(source.name, path, why) for path in others[:MOST_NAMED]]
    if len(others) > MOST_NAMED:
        more = counted(len(others) - MOST_NAMED, "file")
        found.append(Missing(source.name, "", f"{more} more of those that it names: {why}"))
    return found


def _assurances(state: State, sources: Mapping[str, Source]) -> tuple[Assurance, ...]:
    tags: dict[str, dict[str | None, int]] = {}
    for name, tag, n in state.tags():
        tags.setdefault(name, {})[tag] = n
    found = (
        sources[name].assurance(each) for name, each in sorted(tags.items()) if name in sources
    )
    return tuple(assurance for assurance in found if assurance is not None)
