"""The binding bottleneck in words: from a minimum cut to a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.files.units import format_bytes, format_duration, format_rate
from datacollect.flow.network.layered import NO_LINK
from datacollect.problem.profile_limits import limit_name
from datacollect.schedule.data.transfers import Bottleneck

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.network.pools import Pool
    from datacollect.flow.quickest.quickest import Quickest
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem

NOTHING_TO_MOVE = Bottleneck("none", (), "There is nothing to move.")


MOST_LINKS_NAMED = 3

# Up to this many stretches of time are listed one by one, with what crosses a cut in each.
MOST_SPANS_LISTED = 3
MOST_HOSTS_NAMED = 5


def name_hosts(names: Sequence[str]) -> str:
    """List hosts' names, shortened where there are many.

    >>> name_hosts(["a", "b", "c"])
    "'a', 'b' and 'c'"
    """
    if len(names) > MOST_HOSTS_NAMED:
        return _shortened(names[: MOST_HOSTS_NAMED - 1], names[-1], len(names))
    quoted = [repr(name) for name in names]
    if len(quoted) <= 1:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _name_numbered(problem: Problem, hosts: Sequence[int] | IntArray) -> str:
    """List hosts in words by their numbers, in the order of these."""
    ordered, names = _distinct(hosts), problem.names
    if len(ordered) <= MOST_HOSTS_NAMED:
        return name_hosts(_names(problem, ordered))
    first = [names[host] for host in ordered[: MOST_HOSTS_NAMED - 1].tolist()]
    return _shortened(first, names[ordered[-1]], len(ordered))


def _shortened(first: Sequence[str], last: str, n_hosts: int) -> str:
    return f"{', '.join(map(repr, first))} … {last!r} ({n_hosts} hosts)"


def never_ends(problem: Problem) -> InfeasibleError:
    """Return the error where the last byte arrives at an instant beyond all numbers."""
    return InfeasibleError(
        f"some links are too slow for a number to say when all data have arrived at "
        f"{problem.destination!r}; give them a bandwidth of 0, or leave them out",
        problem.sources,
    )


def never_arrives(problem: Problem, names: Sequence[str]) -> InfeasibleError:
    """Return the error that names the hosts whose data cannot reach the destination."""
    return InfeasibleError(
        f"the data at {name_hosts(names)} cannot reach the destination {problem.destination!r}: "
        "no usable links lead there in time; add links, or set the backlog to 0",
        names,
    )


def destination_bottleneck(
    problem: Problem,
    rate_bytes_per_s: float,
    sources: Sequence[int] | IntArray,
    *,
    downlink: bool = False,
) -> Bottleneck:
    """Say that what leads into the destination binds."""
    limit = limit_name(problem, "downlink", problem.destination)
    what = f"{limit} of" if downlink else "links into"
    text = (
        f"The {what} the destination {problem.destination!r} "
        f"{'binds' if downlink else 'bind'} ({'' if downlink else 'together '}"
        f"{format_rate(rate_bytes_per_s)}): relays cannot help beyond this."
    )
    return Bottleneck("destination", _names(problem, sources), text)


def source_bottleneck(
    problem: Problem, host: int, rate_bytes_per_s: float, sources: Sequence[int] | IntArray
) -> Bottleneck:
    """Say that what leaves one host binds."""
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
    entries = network.entries
    waiting = cut[entries.node]
    sources, holders = _distinct(entries.source[waiting]), _distinct(entries.host[waiting])
    into_destination = network.node_host[network.head[crossing]] == network.sink
    last = network.n_pieces - 1
    in_last = crossing[network.piece[crossing] == last]
    rate = float(network.rate_bytes_per_s[in_last].sum())
    if network.n_pieces == 1 and into_destination.all():
        downlink = bool((network.link[crossing] == NO_LINK).all())
        if waiting.all() or downlink:
            return destination_bottleneck(problem, rate, sources, downlink=downlink)
    kind = "source" if len(holders) == 1 else "hosts"
    if into_destination.all() and waiting.all():
        kind = "destination"
    text = _cut_text(problem, network, found.lengths_s, crossing, holders)
    return Bottleneck(kind, _names(problem, sources), text)


def _cut_text(
    problem: Problem,
    network: LayeredNetwork,
    lengths_s: FloatArray,
    crossing: np.ndarray,
    holders: IntArray,
) -> str:
    who = _who_sends(problem, network, crossing, holders)
    spans = _spans(problem, network, crossing)
    earlier = crossing[network.piece[crossing] < network.n_pieces - 1]
    limited = earlier[network.stored[earlier]]
    if len(spans) <= MOST_SPANS_LISTED and not len(limited):
        text = f"{who} {_spans_text(problem, spans)}"
    else:
        text = f"{who} at most {format_rate(spans[-1].rate_bytes_per_s)}"
        text += f" from {_when(problem, spans[-1].from_s)} on{_in_brackets(spans[-1].crossings)}"
        moved = float(network.capacity_bytes(lengths_s)[earlier].sum())
        text += f", and at most {format_bytes(moved)} before{_range_text(network, earlier)}"
    if len(limited):
        relays = sorted({problem.names[network.node_host[network.tail[i]]] for i in limited})
        text += f", of which storage at {name_hosts(relays)} is part"
    if network.n_pieces > 1:
        behind = set(holders.tolist())
        late = [
            problem.names[pool.host]
            for pool in network.pools
            if pool.host in behind and pool.release_s > 0
        ]
        if late:
            text += f"; data of {name_hosts(late)} are released late"
    return text + "."


def _who_sends(
    problem: Problem, network: LayeredNetwork, crossing: np.ndarray, holders: IntArray
) -> str:
    """Say who sends across a cut: hosts that hold data, or stores to which these have sent theirs.

    Where nothing changes, nothing waits, and hosts that hold data send no more than crosses.
    """
    stores = [] if network.n_pieces == 1 else _stores_before(problem, network, crossing, holders)
    if not stores:
        who, alone = _name_numbered(problem, holders), len(holders) == 1
        return f"Host{'' if alone else 's'} {who}{'' if alone else ' together'} can send"
    names = _names(problem, holders)
    waiting = [problem.names[host] for host in stores]
    if np.isin(_sending(network, crossing), stores).all():
        pass_on = "which can" if len(stores) == 1 else "which together can"
        what = f"What {name_hosts(names)} {'sends' if len(names) == 1 else 'send'}"
        return f"{what} waits at {name_hosts(waiting)}, {pass_on} pass on"
    return f"Hosts {name_hosts([*names, *waiting])} together can send"


def _stores_before(
    problem: Problem, network: LayeredNetwork, crossing: np.ndarray, holders: IntArray
) -> list[int]:
    """Return the hosts before a cut that hold nothing at first, and can store what comes."""
    sending = np.setdiff1d(_sending(network, crossing), holders)
    stores: list[int] = sending[problem.storage_bytes[sending] > 0].tolist()
    return stores


def _sending(network: LayeredNetwork, crossing: np.ndarray) -> IntArray:
    """Return the hosts from which links, or uplinks, cross."""
    rated = crossing[np.isfinite(network.rate_bytes_per_s[crossing])]
    sends = rated[(network.link[rated] != NO_LINK) | _is_uplink(network, rated)]
    return _distinct(network.node_host[network.tail[sends]])


class _Span(NamedTuple):
    """A stretch of time in which what crosses a cut stays as it is."""

    from_s: float
    rate_bytes_per_s: float
    crossings: str


def _spans(problem: Problem, network: LayeredNetwork, crossing: np.ndarray) -> list[_Span]:
    """Say at which rate, and where, data cross a cut from each change on; of many the last."""
    with_rate = crossing[np.isfinite(network.rate_bytes_per_s[crossing])]
    if network.n_pieces == 1:
        rate = float(network.rate_bytes_per_s[with_rate].sum())
        return [_Span(0.0, rate, _crossings(problem, network, with_rate))]
    with_rate = with_rate[np.argsort(network.piece[with_rate], kind="stable")]
    edges = np.searchsorted(network.piece[with_rate], np.arange(network.n_pieces + 1)).tolist()
    found: list[_Span] = []
    before: list[bytes] = []
    for piece in reversed(range(network.n_pieces)):
        arcs = with_rate[edges[piece] : edges[piece + 1]]
        hosts = network.node_host[network.tail[arcs]]
        what = (network.rate_bytes_per_s[arcs], network.link[arcs], hosts)
        same = [column.tobytes() for column in what]
        from_s = float(network.starts_s[piece])
        if same == before:
            found[-1] = found[-1]._replace(from_s=from_s)
            continue
        if len(found) > MOST_SPANS_LISTED:
            break
        rate = float(network.rate_bytes_per_s[arcs].sum())
        found.append(_Span(from_s, rate, _crossings(problem, network, arcs)))
        before = same
    return found[::-1]


def _spans_text(problem: Problem, spans: Sequence[_Span]) -> str:
    """Say what crosses in each stretch of time, and where: once, if it is always the same."""
    alike = len({span.crossings for span in spans if span.crossings}) <= 1
    parts = []
    most = "at most "
    for number, span in enumerate(spans):
        rate = "nothing"
        if span.rate_bytes_per_s:
            rate, most = f"{most}{format_rate(span.rate_bytes_per_s)}", ""
        is_last = number == len(spans) - 1
        if not is_last:
            rate += f" until {_when(problem, spans[number + 1].from_s)}"
        elif number:
            rate += f" from {_when(problem, span.from_s)} on"
        parts.append(rate + ("" if alike and not is_last else _in_brackets(span.crossings)))
    return " and ".join([", ".join(parts[:-1])] * (len(parts) > 1) + parts[-1:])


def _when(problem: Problem, instant_s: float) -> str:
    """Tell an instant by the clock where the problem has one."""
    clock = problem.clock
    return format_duration(instant_s) if clock is None else clock.text(instant_s)


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _range_text(network: LayeredNetwork, arcs: np.ndarray) -> str:
    """Say between which rates data cross before the last piece of time."""
    with_rate = arcs[np.isfinite(network.rate_bytes_per_s[arcs])]
    rates = np.zeros(network.n_pieces - 1)
    np.add.at(rates, network.piece[with_rate], network.rate_bytes_per_s[with_rate])
    if not rates.any():
        return ""
    return f" ({' to '.join(dict.fromkeys(map(format_rate, (rates.min(), rates.max()))))})"


def _crossings(problem: Problem, network: LayeredNetwork, arcs: np.ndarray) -> str:
    """Describe the arcs that cross in a piece of time: links, uplinks, downlinks."""
    parts = []
    links = network.link[arcs]
    used = _distinct(links[links != NO_LINK])
    if 0 < len(used) <= MOST_LINKS_NAMED:
        ends = zip(problem.link_from[used].tolist(), problem.link_to[used].tolist(), strict=True)
        named = ", ".join(f"{problem.names[a]!r} -> {problem.names[b]!r}" for a, b in ends)
        parts.append(f"the link{'s' * (len(used) > 1)} {named}")
    elif len(used):
        heads = _distinct(problem.link_to[used])
        to = ""
        if len(heads) <= MOST_LINKS_NAMED:
            to = f" to {name_hosts(sorted(_names(problem, heads)))}"
        parts.append(f"{len(used)} links{to} together")
    gates = arcs[links == NO_LINK]
    is_up = _is_uplink(network, gates)
    up = network.node_host[network.tail[gates[is_up]]]
    down = network.node_host[network.head[gates[~is_up]]]
    for kind, hosts in (("uplink", up), ("downlink", down)):
        by_part: dict[str, list[int]] = {}
        for host in hosts.tolist():
            part = limit_name(problem, kind, problem.names[host])
            by_part.setdefault(part, []).append(host)
        parts += [f"the {part} of {_name_numbered(problem, of)}" for part, of in by_part.items()]
    return ", ".join(parts)


def _is_uplink(network: LayeredNetwork, arcs: IntArray) -> BoolArray:
    """A host's uplink leads from its node to its gate; gates are numbered after all host nodes."""
    return network.tail[arcs] < network.head[arcs]


def _names(problem: Problem, hosts: Sequence[int] | IntArray) -> tuple[str, ...]:
    names = problem.names
    if len(hosts) == 1:
        return (names[hosts[0]],)
    return tuple([names[host] for host in _distinct(hosts).tolist()])


def _distinct(numbers: Sequence[int] | npt.NDArray[np.integer[Any]]) -> IntArray:
    """Sort numbers, each once: of thousands many times as fast as by numpy's own table."""
    ordered = np.asarray(numbers, dtype=np.int64)
    if (ordered[1:] > ordered[:-1]).all():
        return ordered
    ordered = np.sort(ordered)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def linear_bottleneck(
    problem: Problem,
    network: LayeredNetwork,
    shared: Sequence[int],
    arcs: np.ndarray,
    pools: Sequence[Pool],
) -> Bottleneck:
    """Put the resources with a positive dual value of the linear program into words."""
    sources = [parcel.source for pool in pools for parcel in pool.parcels]
    behind = _name_numbered(problem, sources)
    crossings = []
    named = shared if len(shared) <= MOST_LINKS_NAMED else shared[:1]
    for number in named:
        bottleneck = problem.shared[number]
        rate = format_rate(bottleneck.bandwidth_bytes_per_s)
        crossings.append(f"the shared bottleneck {bottleneck.name!r} ({rate})")
    if len(named) < len(shared):
        crossings.append(f"{len(shared) - len(named)} more shared bottlenecks")
    if len(arcs):
        crossings.append(_crossings(problem, network, arcs))
    into_destination = len(arcs) > 0 and bool(
        (network.node_host[network.head[arcs]] == network.sink).all()
    )
    if shared:
        kind = "shared"
    elif into_destination and len(pools) == len(network.pools):
        kind = "destination"
    else:
        kind = "source" if len(pools) == 1 else "hosts"
    text = f"What binds the data of {behind}: {' and '.join(crossings)}."
    return Bottleneck(kind, _names(problem, sources), text)
