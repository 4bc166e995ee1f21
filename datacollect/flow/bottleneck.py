"""The binding bottleneck in words: from a minimum cut to a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.layered import NO_LINK
from datacollect.schedule.transfers import Bottleneck
from datacollect.units import format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.arrays import BoolArray, FloatArray
    from datacollect.flow.layered import LayeredNetwork
    from datacollect.flow.pools import Pool
    from datacollect.flow.quickest import Quickest
    from datacollect.problem.problem import Problem

NOTHING_TO_MOVE = Bottleneck("none", (), "Nothing is to be moved.")


MOST_LINKS_NAMED = 3


def name_hosts(names: Sequence[str], most: int = 5) -> str:
    """List hosts' names, shortened where there are many.

    >>> name_hosts(["a", "b", "c"])
    "'a', 'b' and 'c'"
    """
    quoted = [repr(name) for name in names]
    if len(quoted) > most:
        return f"{', '.join(quoted[: most - 1])} … {quoted[-1]} ({len(quoted)} hosts)"
    if len(quoted) <= 1:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def never_ends(problem: Problem) -> InfeasibleError:
    """Return the error where the last byte arrives at an instant beyond all numbers."""
    return InfeasibleError(
        f"some links are so slow that no number tells when all data have arrived at "
        f"{problem.destination!r}; give them a bandwidth of 0, or leave them out",
        problem.sources,
    )


def never_arrives(problem: Problem, names: Sequence[str]) -> InfeasibleError:
    """Return the error that names the hosts whose data cannot reach the destination."""
    return InfeasibleError(
        f"what lies at {name_hosts(names)} cannot reach the destination {problem.destination!r}: "
        "no usable links lead there in time; add links, or set the backlog to 0",
        names,
    )


def destination_bottleneck(
    problem: Problem, rate_bytes_per_s: float, sources: Iterable[int], *, downlink: bool = False
) -> Bottleneck:
    """Say that what leads into the destination binds."""
    what = "downlink of" if downlink else "links into"
    text = (
        f"The {what} the destination {problem.destination!r} "
        f"{'binds' if downlink else 'bind'} ({'' if downlink else 'together '}"
        f"{format_rate(rate_bytes_per_s)}): relays cannot help beyond this."
    )
    return Bottleneck("destination", _names(problem, sources), text)


def source_bottleneck(
    problem: Problem, host: int, rate_bytes_per_s: float, sources: Iterable[int]
) -> Bottleneck:
    """Say that one host's own way out binds."""
    text = (
        f"Host {problem.names[host]!r} binds: all its links together send at most "
        f"{format_rate(rate_bytes_per_s)}; other routes cannot help it."
    )
    return Bottleneck("source", _names(problem, sources), text)


def cut_bottleneck(problem: Problem, found: Quickest) -> Bottleneck:
    """Put the last cut of Newton's method into words."""
    assert found.cut is not None
    network, cut = found.network, found.cut
    crossing = np.flatnonzero(cut[network.tail] & ~cut[network.head])
    sources = {parcel.source for pool in network.pools if cut[pool.node] for parcel in pool.parcels}
    holders = sorted({pool.host for pool in network.pools if cut[pool.node]})
    into_destination = network.node_host[network.head[crossing]] == network.sink
    last = network.n_pieces - 1
    in_last = crossing[network.piece[crossing] == last]
    rate = float(network.rate_bytes_per_s[in_last].sum())
    if network.n_pieces == 1 and into_destination.all():
        downlink = bool((network.link[crossing] == NO_LINK).all())
        everything = _holds_everything(network, cut)
        if everything or downlink:
            return destination_bottleneck(problem, rate, sources, downlink=downlink)
    kind = "source" if len(holders) == 1 else "hosts"
    if into_destination.all() and _holds_everything(network, cut):
        kind = "destination"
    text = _cut_text(problem, network, found.lengths_s, crossing, holders, rate)
    return Bottleneck(kind, _names(problem, sources), text)


def _holds_everything(network: LayeredNetwork, cut: BoolArray) -> bool:
    return all(cut[pool.node] for pool in network.pools)


def _cut_text(
    problem: Problem,
    network: LayeredNetwork,
    lengths_s: FloatArray,
    crossing: np.ndarray,
    holders: Sequence[int],
    rate_bytes_per_s: float,
) -> str:
    names = [problem.names[host] for host in holders]
    subject = f"Host {names[0]!r}" if len(names) == 1 else f"Hosts {name_hosts(names)} together"
    last = network.n_pieces - 1
    start_s, clock = float(network.starts_s[-1]), problem.clock
    since = format_duration(start_s) if clock is None else clock.text(start_s)
    when = "" if network.n_pieces == 1 else f" from {since} on"
    text = f"{subject} can send at most {format_rate(rate_bytes_per_s)}{when}"
    via = _ways_out(problem, network, crossing[network.piece[crossing] == last])
    if via:
        text += f" ({via})"
    earlier = crossing[network.piece[crossing] < last]
    if len(earlier):
        moved = float(network.capacity_bytes(lengths_s)[earlier].sum())
        text += f", and at most {format_bytes(moved)} before"
    limited = earlier[network.stored[earlier]]
    if len(limited):
        relays = sorted({problem.names[network.node_host[network.tail[i]]] for i in limited})
        text += f", of which storage at {name_hosts(relays)} is part"
    late = [
        problem.names[pool.host]
        for pool in network.pools
        if pool.host in holders and pool.parcels[0].release_s > 0
    ]
    if late:
        text += f"; data of {name_hosts(late)} are released late"
    return text + "."


def _ways_out(problem: Problem, network: LayeredNetwork, arcs: np.ndarray) -> str:
    """Describe the arcs that cross in the last piece: links, uplinks, downlinks."""
    parts = []
    links = network.link[arcs]
    used = np.unique(links[links != NO_LINK]).tolist()
    ends = [(problem.names[problem.link_from[i]], problem.names[problem.link_to[i]]) for i in used]
    if 0 < len(ends) <= MOST_LINKS_NAMED:
        named = ", ".join(f"{tail!r} -> {head!r}" for tail, head in ends)
        parts.append(f"the link{'s' * (len(ends) > 1)} {named}")
    elif ends:
        heads = sorted({head for _, head in ends})
        to = f" to {name_hosts(heads)}" if len(heads) <= MOST_LINKS_NAMED else ""
        parts.append(f"{len(ends)} links{to} together")
    gates = arcs[links == NO_LINK]
    up = sorted({int(network.node_host[network.tail[i]]) for i in gates if _is_uplink(network, i)})
    down = sorted(
        {int(network.node_host[network.head[i]]) for i in gates if not _is_uplink(network, i)}
    )
    if up:
        parts.append(f"the uplink of {name_hosts([problem.names[h] for h in up])}")
    if down:
        parts.append(f"the downlink of {name_hosts([problem.names[h] for h in down])}")
    return ", ".join(parts)


def _is_uplink(network: LayeredNetwork, arc: int) -> bool:
    """A host's uplink leads from its node to its gate; gates are numbered after all host nodes."""
    return bool(network.tail[arc] < network.head[arc])


def _names(problem: Problem, sources: Iterable[int]) -> tuple[str, ...]:
    return tuple(problem.names[source] for source in sorted(set(sources)))


def linear_bottleneck(
    problem: Problem,
    network: LayeredNetwork,
    shared: Sequence[int],
    arcs: np.ndarray,
    pools: Sequence[Pool],
) -> Bottleneck:
    """Put the resources with a positive dual value of the linear program into words."""
    sources = {parcel.source for pool in pools for parcel in pool.parcels}
    behind = name_hosts([problem.names[source] for source in sorted(sources)])
    ways = []
    named = shared if len(shared) <= MOST_LINKS_NAMED else shared[:1]
    for number in named:
        bottleneck = problem.shared[number]
        rate = format_rate(bottleneck.bandwidth_bytes_per_s)
        ways.append(f"the shared bottleneck {bottleneck.name!r} ({rate})")
    if len(named) < len(shared):
        ways.append(f"{len(shared) - len(named)} more shared bottlenecks")
    if len(arcs):
        ways.append(_ways_out(problem, network, arcs))
    into_destination = len(arcs) > 0 and bool(
        (network.node_host[network.head[arcs]] == network.sink).all()
    )
    if shared:
        kind = "shared"
    elif into_destination and len(pools) == len(network.pools):
        kind = "destination"
    else:
        kind = "source" if len(pools) == 1 else "hosts"
    text = f"What binds the data of {behind}: {' and '.join(ways)}."
    return Bottleneck(kind, _names(problem, sources), text)
