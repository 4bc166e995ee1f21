"""Makers: hidden hosts by which plans see sources that make their data at a constant rate.

A source S that makes r bytes per second is the same as a hidden host that has S's backlog and one
link, of r bytes per second, to S: what has passed that link has been made. So every network, every
linear program and every slot knows such sources without a rule of its own. Nobody else sees the
hidden hosts: here they are added, and here they vanish from plans, bottlenecks and messages. Their
links count for no limit of a host, no connection, no price and no picture.

- What S has made already stays S's own backlog.
- Where S has limited room for others' data, its own waits in a second hidden host behind the
  first: a network cannot tell whose data wait at a host. In slots that would cost a slot; there S
  has room for all, and where that breaks S's limit, others send nothing through S.
- A hidden link does not know bytes apart. Those that leave S get their offsets in the order in
  which they leave, so that none leaves before it is made. Where several routes leave S at once they
  take stripes of its data by turns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.flow.stripes import in_made_order
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.host_limits import LIMITS, SHOWN, is_constant
from datacollect.problem.nominal_rates import NominalRates
from datacollect.schedule.data.transfers import Bottleneck, Route, Transfers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from datacollect.errors import InfeasibleError
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.hosts import DailyPeriods
    from datacollect.problem.open_links import OpenLinks
    from datacollect.problem.problem import Problem


_COLUMNS = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "finish_s", "streams")


@dataclass(frozen=True, eq=False)
class Makers:
    """A problem with sources that make data, and the same with hidden hosts instead.

    Attributes
    ----------
    problem : Problem
        As everybody knows it.
    expanded : Problem
        As it is planned: the same hosts, then hidden ones; nobody makes anything.
    source_of : mapping of str to str
        From hidden hosts to the sources before which they stand.
    waits_s : float
        So long after each byte is made it may leave.
    """

    problem: Problem
    expanded: Problem
    source_of: Mapping[str, str]
    waits_s: float = 0.0

    @cached_property
    def first_byte(self) -> dict[str, int]:
        """Return where in its source's backlog each hidden host's begins."""
        made, index = self.problem.made_bytes, self.problem.host_index
        assert made is not None
        return {name: int(made[index[source]]) for name, source in self.source_of.items()}

    # What people are told ----------------------------------------------------------------------

    def said(self, text: str) -> str:
        """Return a text without the names of hidden hosts.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(
        ...     ["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", produces_bytes_per_s=2.0
        ... )
        >>> makers = makers_of(problem)
        >>> makers.said("Host 'what S makes' binds: all its links together send at most 2 B/s; …")
        "Host 'S' makes no more than 2 B/s; …"
        """
        for name, source in self.source_of.items():
            hidden, shown, link = repr(name), repr(source), f"{name!r} -> {source!r}"
            if hidden not in text:
                continue
            # All that crosses is the hidden link: the source makes no more.
            text = re.sub(
                rf"Host {re.escape(hidden)} (?:binds: all its links together send at most ([^;]*)"
                rf"|can send at most ([^(]*) \(the link {re.escape(link)}\))",
                lambda found, host=shown: f"Host {host} makes no more than {found[1] or found[2]}",  # type: ignore[misc]
                text,
            )
            for said, better in (
                (f"the link {link}", f"what {shown} makes"),
                (f"link {link}", f"what {shown} makes"),
                (hidden, shown),
                (
                    f"What {shown} sends waits at {shown}, which can pass on",
                    f"Host {shown} can send",
                ),
                (f"{shown} and {shown}", shown),
                (f"{shown}, {shown}", shown),
                (f"Hosts {shown} together can", f"Host {shown} can"),
            ):
                text = text.replace(said, better)
        return text

    def bottleneck(self, found: Bottleneck) -> Bottleneck:
        """Return a bottleneck of the expanded problem as one of the problem."""
        hosts = dict.fromkeys(self.source_of.get(name, name) for name in found.hosts)
        return Bottleneck(found.kind, tuple(hosts), self.said(found.text))

    def error(self, error: InfeasibleError) -> InfeasibleError:
        """Return an error about the expanded problem as one about the problem."""
        hosts = dict.fromkeys(self.source_of.get(name, name) for name in error.hosts)
        return type(error)(self.said(str(error)), tuple(hosts))

    # Plans -------------------------------------------------------------------------------------

    def without_hidden(
        self, routes: tuple[Route, ...], columns: Transfers, slot_s: float | None
    ) -> tuple[tuple[Route, ...], Transfers]:
        """Return routes and transfers from the sources on.

        Raises
        ------
        NotInOrder
            Several routes leave a source at once, and bytes leave as they are made: they need to
            wait for a moment.
        """
        hidden = self.source_of
        if not any(route.source in hidden for route in routes):
            return routes, columns
        skipped = np.array([sum(name in hidden for name in route.hosts) for route in routes])
        numbers: dict[Route, int] = {}
        number = np.array(
            [
                numbers.setdefault(
                    Route(
                        hidden.get(route.source, route.source),
                        tuple(name for name in route.hosts if name not in hidden),
                    ),
                    len(numbers),
                )
                for route in routes
            ]
        )
        owner = np.array(
            [self.expanded.host_index[route.source] for route in routes], dtype=np.int64
        )
        left = columns.hop >= skipped[columns.route]
        route, hop = columns.route[left], (columns.hop - skipped[columns.route])[left]
        parts = {
            "route": number[route],
            "hop": hop,
            "offset_bytes": columns.offset_bytes[left],
            "n_bytes": columns.n_bytes[left],
            "start_s": columns.start_s[left],
            "finish_s": columns.finish_s[left],
            "streams": columns.streams[left],
        }
        index = self.expanded.host_index
        found = []
        for name in [None, *(name for name in hidden if self.expanded.backlog_bytes[index[name]])]:
            if name is None:
                rows = ~np.isin(owner[route], [index[each] for each in hidden])
                found.append({key: column[rows] for key, column in parts.items()})
                continue
            rows = owner[route] == index[name]
            of_one = {key: column[rows] for key, column in parts.items()}
            rate = float(self._rate(hidden[name]))
            release_s = float(self.expanded.release_s[index[name]]) - self.waits_s
            of_one = in_made_order(of_one, rate, release_s, slot_s)
            of_one["offset_bytes"] = of_one["offset_bytes"] + self.first_byte[name]
            found.append(of_one)
        every: dict[str, Any] = {
            key: np.concatenate([each[key] for each in found]) for key in found[0]
        }
        return tuple(numbers), Transfers.build(**every)

    def with_hidden(
        self, routes: tuple[Route, ...], columns: Transfers
    ) -> tuple[tuple[Route, ...], Transfers]:
        """Return routes and transfers from the hidden hosts on: each byte passes as it is made.

        What is there at the release leaves from the source itself.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(
        ...     ["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", produces_bytes_per_s=2.0
        ... )
        >>> plan = dc.direct(problem)
        >>> routes, columns = makers_of(problem).with_hidden(plan.routes, plan.columns)
        >>> routes[0].hosts, columns.hop.tolist(), columns.finish_s.tolist()
        (('what S makes', 'S', 'D'), [0, 1], [5.0, 5.0])
        """
        chains: dict[str, tuple[str, ...]] = {}
        for name, source in self.source_of.items():
            chains[source] = (name, *chains.get(source, ()))
        numbers: dict[Route, int] = {}
        rows: list[tuple[int, int, int, int, float, float, int]] = []
        index = self.problem.host_index
        for number, hop, offset, size, start_s, finish_s, streams in zip(
            *(getattr(columns, key).tolist() for key in _COLUMNS), strict=True
        ):
            route = routes[number]
            chain = chains.get(route.source, ())
            made = self.first_byte[chain[0]] if chain else 0
            starts_there = route.hosts[0] == route.source
            before = size if not chain or not starts_there else min(max(made - offset, 0), size)
            middle_s = start_s + (finish_s - start_s) * (before / size)
            if before:
                own = numbers.setdefault(route, len(numbers))
                end_s = finish_s if before == size else middle_s
                rows.append((own, hop, offset, before, start_s, end_s, streams))
            if before == size:
                continue
            hidden = numbers.setdefault(Route(chain[0], (*chain, *route.hosts)), len(numbers))
            first, left = offset + before - made, size - before
            begin_s = start_s if not before else middle_s
            rows.append((hidden, hop + len(chain), first, left, begin_s, finish_s, streams))
            if hop == 0:
                rate = self._rate(route.source)
                release_s = float(self.problem.release_s[index[route.source]])
                times = (release_s + first / rate, release_s + (first + left) / rate)
                rows += [(hidden, k, first, left, *times, streams) for k in range(len(chain))]
        parts = zip(*rows, strict=True) if rows else ([] for _ in _COLUMNS)
        found: dict[str, Any] = dict(zip(_COLUMNS, parts, strict=True))
        return tuple(numbers), Transfers.build(**found)

    def _rate(self, source: str) -> float:
        rates = self.problem.produces_bytes_per_s
        assert rates is not None
        return float(rates[self.problem.host_index[source]])


def makers_of(problem: Problem) -> Makers | None:
    """Return the problem with hidden hosts; None where no source makes anything.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", produces_bytes_per_s=2.0
    ... )
    >>> makers_of(problem).expanded.names
    ('S', 'D', 'what S makes')
    >>> dc.lower_bound(problem)[0]
    5.0
    """
    if not len(problem.makers):
        return None
    # With the problem itself, and gone with it; copies find their own.
    found: Makers | None = vars(problem).get("_makers")
    if found is None:
        roomy = np.isinf(problem.storage_bytes[problem.makers])
        waits_at = dict(zip(problem.makers.tolist(), (~roomy).tolist(), strict=True))
        found = _expanded(problem, waits_at, problem)
        vars(problem)["_makers"] = found
    return found


def ways_to_plan(problem: Problem, *, in_slots: bool) -> Iterator[Makers]:
    """Yield problems with hidden hosts to plan on; the next where a plan on the one before fails.

    The first is what the lower bound is found on, unless room is limited and there are slots.
    """
    makers = makers_of(problem)
    assert makers is not None
    limited = problem.makers[np.isfinite(problem.storage_bytes[problem.makers])]
    if not in_slots or not len(limited):
        yield makers
        roomy = problem
        waits_at = {
            host: bool(np.isfinite(problem.storage_bytes[host])) for host in problem.makers.tolist()
        }
    else:
        room = problem.storage_bytes.copy()
        room[limited] = np.inf
        roomy = problem.replace(storage_bytes=room, daily=problem.daily)
        waits_at = dict.fromkeys(problem.makers.tolist(), False)
        if (problem.storage_bytes[limited] >= 1).any():
            yield _expanded(problem, waits_at, roomy)
        into = np.isin(roomy.link_to, limited)
        if into.any():
            roomy = roomy.with_links(np.flatnonzero(~into)).replace(
                price_per_gb=None if problem.price_per_gb is None else problem.price_per_gb[~into]
            )
        yield _expanded(problem, waits_at, roomy)
    yield from (_expanded(problem, waits_at, roomy, part) for part in (1e-3, 1e-2))


# Adding hidden hosts --------------------------------------------------------------------------


def _expanded(
    problem: Problem, waits_at: Mapping[int, bool], like: Problem, wait_part: float = 0.0
) -> Makers:
    """Add hidden hosts to `like`; those whose data wait in a second one are marked in `waits_at`.

    Data may leave later than they are made, by a part of the time in which all are made.
    """
    rates, made = problem.produces_bytes_per_s, problem.made_bytes
    assert rates is not None
    assert made is not None
    names, taken = list(like.names), set(like.names)
    backlog, release = like.backlog_bytes.tolist(), like.release_s.tolist()
    lasts_s = max(
        float((problem.backlog_bytes[i] - made[i]) / rates[i]) for i in problem.makers.tolist()
    )
    source_of: dict[str, str] = {}
    links: list[tuple[int, int, FloatArray]] = []
    for host, waits in waits_at.items():
        source, ends = like.names[host], host
        if waits:
            ends = _added(names, taken, f"what {source} has made")
            source_of[names[ends]] = source
            out = like.bandwidth_bytes_per_s[:, like.links_out_of([host])].sum(axis=1)
            enough = max(float(out.max(initial=0.0)), float(rates[host]))
            links.append((ends, host, np.full(like.n_periods, enough)))
            backlog.append(0)
            release.append(0.0)
        maker = _added(names, taken, f"what {source} makes")
        source_of[names[maker]] = source
        links.append((maker, ends, np.full(like.n_periods, float(rates[host]))))
        backlog.append(int(problem.backlog_bytes[host] - made[host]))
        backlog[host] = int(made[host])
        release.append(float(problem.release_s[host]) + wait_part * lasts_s)
    tail = np.array([begin for begin, _, _ in links], dtype=np.int64)
    head = np.array([end for _, end, _ in links], dtype=np.int64)
    rows = np.array([rate for _, _, rate in links]).T
    changes: dict[str, Any] = {
        "names": names,
        "backlog_bytes": backlog,
        "release_s": release,
        "storage_bytes": _longer(like.storage_bytes, len(source_of), np.inf),
        **{key: _wider(getattr(like, key), len(source_of)) for key in LIMITS},
        "link_from": np.append(like.link_from, tail),
        "link_to": np.append(like.link_to, head),
        "bandwidth_bytes_per_s": np.hstack([like.bandwidth_bytes_per_s, rows]),
        "price_per_gb": None
        if like.price_per_gb is None
        else _longer(like.price_per_gb, len(links), 0.0),
        **{
            key: None
            if (column := getattr(like, key)) is None
            else _longer(column, len(links), np.nan)
            for key in RATE_COLUMNS
        },
        **dict.fromkeys((*SHOWN.values(), "latitude", "longitude", "manifest")),
        **dict.fromkeys(("produces_bytes_per_s", "made_bytes", "bandwidth_intervals")),
        "most_connections": None
        if like.most_connections is None
        else _longer(like.most_connections, len(source_of), np.inf),
        "daily": _with_hidden(like, names, tail, head, rows),
    }
    return Makers(problem, like.replace(**changes), source_of, wait_part * lasts_s)


def _added(names: list[str], taken: set[str], name: str) -> int:
    """Add a host whose name is free; return its index."""
    while name in taken:
        name += "*"
    taken.add(name)
    names.append(name)
    return len(names) - 1


def _longer(column: FloatArray, n_more: int, value: float) -> FloatArray:
    return np.append(column, np.full(n_more, value))


def _wider(limit: FloatArray, n_more: int) -> FloatArray:
    """Return hosts' limits by period with hidden hosts, which have none."""
    rows = limit[:1] if is_constant(limit) else limit
    return np.hstack([rows, np.full((len(rows), n_more), np.inf)])


def _with_hidden(
    problem: Problem, names: list[str], tail: IntArray, head: IntArray, rates: FloatArray
) -> DailyPeriods | None:
    """Return a calendar that closes no hidden link: what is closed goes on making data."""
    daily = problem.daily
    if daily is None or daily.nominal is None:
        return daily
    known = daily.nominal.of_links(problem)
    nominal = NominalRates(
        tuple(names),
        np.append(problem.link_from, tail),
        np.append(problem.link_to, head),
        np.hstack([known, np.broadcast_to(rates[:1], (len(known), len(tail)))]),
    )
    sources = {problem.names[host] for host in problem.makers.tolist()}
    windows: list[OpenLinks] = []
    for limit in daily.windows:
        if limit.to_host is None or limit.from_host is not None or limit.to_host not in sources:
            windows.append(limit)
            continue
        into = problem.link_from[problem.link_to == problem.host_index[limit.to_host]]
        windows += [replace(limit, from_host=problem.names[host]) for host in into.tolist()]
    return replace(daily, windows=tuple(windows), nominal=nominal)
