"""Windows of links: between two hosts, of all out of one, or into one; and who is open when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from datacollect.problem.windows import spans_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.files.clock import Clock
    from datacollect.numbers.arrays import BoolArray, FloatArray, IndexArray
    from datacollect.problem.windows import Window


@dataclass(frozen=True)
class OpenLinks:
    """Windows of the links between two hosts, of all out of one (``to_host`` None), or into one."""

    from_host: str | None
    to_host: str | None
    windows: tuple[Window, ...]


class Links(Protocol):
    """Ends of links."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hosts."""
        ...

    @property
    def link_from(self) -> IndexArray:
        """The hosts that links leave, as indices of names."""
        ...

    @property
    def link_to(self) -> IndexArray:
        """The hosts to which links lead."""
        ...


class LinkEnds(NamedTuple):
    """The ends of some links, as indices of names."""

    names: tuple[str, ...]
    link_from: IndexArray
    link_to: IndexArray


def edges_s(limits: Iterable[OpenLinks], clock: Clock, until_s: float) -> list[float]:
    """Return the instants after 0 and before `until_s` at which something opens or closes."""
    differing = dict.fromkeys(limit.windows for limit in limits)
    spans = [span for windows in differing for span in spans_s(windows, clock, until_s)]
    return sorted({at for span in spans for at in span if 0 < at < until_s})


def open_links(
    limits: Sequence[OpenLinks],
    links: Links,
    clock: Clock,
    starts_s: FloatArray,
    until_s: float,
) -> BoolArray:
    """Mark links that are open in periods that start at `starts_s`; shape (n_periods, n_links).

    A link is open while all of its windows, its own and those of both hosts, are.
    """
    is_open = np.ones((len(starts_s), len(links.link_from)), dtype=bool)
    for windows, of_these in alike(limits).items():
        now = open_at(windows, clock, starts_s, until_s)
        is_open[np.ix_(~now, limited_links(of_these, links))] = False
    return is_open


def alike(limits: Iterable[OpenLinks]) -> dict[tuple[Window, ...], list[OpenLinks]]:
    """Return the limits of each list of windows: thousands of links may have the same."""
    found: dict[tuple[Window, ...], list[OpenLinks]] = {}
    for limit in limits:
        found.setdefault(limit.windows, []).append(limit)
    return found


def open_at(
    windows: Iterable[Window], clock: Clock, starts_s: FloatArray, until_s: float
) -> BoolArray:
    """Mark the periods, by their starts, in which any of the windows is open."""
    edges = np.array(spans_s(windows, clock, until_s), dtype=float).ravel()
    is_open: BoolArray = np.searchsorted(edges, starts_s, side="right") % 2 == 1
    return is_open


def limited_links(limits: Iterable[OpenLinks], links: Links) -> BoolArray:
    """Mark the links that any of the limits is of; shape (n_links,)."""
    index = {name: i for i, name in enumerate(links.names)}
    n_hosts = len(index)
    out, into = np.zeros(n_hosts, dtype=bool), np.zeros(n_hosts, dtype=bool)
    pairs = []
    for limit in limits:
        tail, head = index.get(limit.from_host or ""), index.get(limit.to_host or "")
        if limit.to_host is None:
            out[[] if tail is None else tail] = True
        elif limit.from_host is None:
            into[[] if head is None else head] = True
        elif tail is not None and head is not None:
            pairs.append(tail * n_hosts + head)
    key = links.link_from.astype(np.int64) * n_hosts + links.link_to
    marked: BoolArray = out[links.link_from] | into[links.link_to] | np.isin(key, pairs)
    return marked
