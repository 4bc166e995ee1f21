"""Throughput of a machine that receives, sends or relays: a sum of costs, the least limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.kinds import Number, Whole, shown
from datacollect.files.units import (
    BITS_PER_BYTE,
    counted,
    format_bytes,
    format_rate,
    format_significant,
)
from datacollect.machine.parts import (
    BOTH,
    DISK,
    GIB,
    MEMORY,
    RECEIVES,
    SENDS,
    TCP,
    TLS,
    UDP,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.machine.parts import Cost, Parts, PullUse, Rate

RELAYS = "relays"
PROCESSOR, CONNECTION, WINDOW, NIC = "processor", "connection", "window", "NIC"

# A datagram over IPv4 holds no more, and this much of each packet is headers.
MOST_DATAGRAM_BYTES, HEADER_BYTES = 65_507, 28

# The card writes into the kernel's buffer, the kernel into the program's, and the other way.
CROSSINGS = 2

# What the command line calls what functions take.
OPTIONS = {
    "connections": "--connections",
    "packet_bytes": "--packet-bytes",
    "nic_bytes_per_s": "--nic",
    "window_bytes": "--window",
    "rtt_s": "--rtt",
    "cores": "--cores",
}

# A remedy that gains less is none.
GAIN = 1.01


@dataclass(frozen=True)
class Needs:
    """Task of a machine; see `datacollect.machine.profile.HostProfile.receives`."""

    does: str
    tls: bool = False
    to_disk: bool = False
    connections: Any = None
    packet_bytes: Any = None
    nic_bytes_per_s: Any = None
    window_bytes: Any = None
    rtt_s: Any = None
    cores: Any = None

    @property
    def words(self) -> str:
        """Return what is done, in words."""
        if self.packet_bytes is not None:
            over = f"in datagrams of {format_bytes(self.packet_bytes)}"
        else:
            over = f"over {'TLS' if self.tls else 'TCP'}"
        return f"{self.does} {over}{' to disk' if self.to_disk else ''}"

    @property
    def ends(self) -> tuple[str, ...]:
        """Ends of connections that lie here."""
        return (RECEIVES, SENDS) if self.does == RELAYS else (self.does,)

    @property
    def work(self) -> str:
        """Kind of work that each end is."""
        return UDP if self.packet_bytes is not None else TLS if self.tls else TCP

    @property
    def copies(self) -> int:
        """Return how often a byte is copied in memory."""
        return CROSSINGS * len(self.ends) + self.tls + self.to_disk


@dataclass(frozen=True)
class Limit:
    """Limit that a part of the machine sets.

    Attributes
    ----------
    part : str
        ``processor``, ``connection``, ``window``, ``NIC``, ``memory`` or ``disk``.
    bytes_per_s : float
    why : str
        By which numbers.
    """

    part: str
    bytes_per_s: float
    why: str


@dataclass(frozen=True)
class Remedy:
    """A change that would help, and what there would be then."""

    what: str
    bytes_per_s: float


@dataclass(frozen=True)
class Throughput:
    """Rate at which a machine takes in, sends or passes on.

    Attributes
    ----------
    does : str
        What it does, in words.
    limits : tuple of Limit
        The least first.
    low_bytes_per_s, high_bytes_per_s : float
        With all as slow, and as fast, as it was in any repeat of the measurement.
    remedies : tuple of Remedy
        What would help; the least gain first.
    s_per_gib : float
        Seconds of processors for each 2**30 bytes.
    is_least : bool
        Whether it may well be more: the ends could not be told apart.
    load : float
        What others kept busy, a part of all processors, while costs were measured that idle
        machines alone tell; 0 where they were idle enough.
    """

    does: str
    limits: tuple[Limit, ...]
    low_bytes_per_s: float
    high_bytes_per_s: float
    remedies: tuple[Remedy, ...]
    s_per_gib: float
    is_least: bool = False
    load: float = 0.0

    @property
    def bytes_per_s(self) -> float:
        """Return what there is, in bytes per second."""
        return self.limits[0].bytes_per_s

    @property
    def binds(self) -> str:
        """The part that binds."""
        return self.limits[0].part

    @property
    def next(self) -> str | None:
        """The part that would bind next; None where no other is known."""
        return self.limits[1].part if len(self.limits) > 1 else None

    @property
    def was_busy(self) -> bool:
        """Return whether others were so busy meanwhile that the numbers are not to be trusted."""
        return self.load > 0

    @property
    def rate_words(self) -> str:
        """The rate, for people."""
        return f"{'at least ' if self.is_least else ''}{rounded_rate(self.bytes_per_s)}"

    def __repr__(self) -> str:
        return f"<Throughput: {self.does} {self.rate_words}, {self.binds} binds>"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data.

        Returns
        -------
        dict

        Examples
        --------
        >>> Throughput("sends", (Limit("disk", 5.0, ""),), 4.0, 6.0, (), 1.0).to_dict()["binds"]
        'disk'
        """
        return {
            "does": self.does,
            "bytes_per_s": self.bytes_per_s,
            "low_bytes_per_s": self.low_bytes_per_s,
            "high_bytes_per_s": self.high_bytes_per_s,
            "binds": self.binds,
            "next": self.next,
            "s_per_gib": self.s_per_gib,
            "at_least": self.is_least,
            "load": self.load,
            "limits": [
                {"part": each.part, "bytes_per_s": each.bytes_per_s, "why": each.why}
                for each in self.limits
            ],
            "would_help": [
                {"what": each.what, "bytes_per_s": each.bytes_per_s} for each in self.remedies
            ],
        }


def rounded_rate(bytes_per_s: float) -> str:
    """Write a rate with the digits that a prediction has.

    >>> rounded_rate(412_345_678)
    '3.3 Gbit/s'
    """
    return format_rate(float(f"{bytes_per_s * BITS_PER_BYTE:.2g}") / BITS_PER_BYTE)


def throughput_of(parts: Parts, needs: Needs, place: str = "the profile") -> Throughput:
    """Return what a machine does, and what binds.

    Parameters
    ----------
    parts : Parts
    needs : Needs
        As they were given.
    place : str
        Where the parts were read, for messages.

    Raises
    ------
    ProblemError
        A need is not valid, or something was not measured.
    """
    needs = _checked(parts, needs)
    costs = _costs(parts, needs, place)
    limits = _limits(parts, needs, costs)
    used: list[Cost | Rate | PullUse] = [*costs, *(parts.pulls if needs.tls else ())]
    used += [rate for of in _rates_used(needs) if (rate := parts.rate(of))]
    return Throughput(
        needs.words,
        limits,
        _least(parts.at_worst(), needs, place),
        _least(parts.at_best(), needs, place),
        tuple(_remedies(parts, needs, place, limits[0].bytes_per_s)),
        _s_per_byte(costs, needs) * GIB,
        is_least=needs.does == RELAYS or any(cost.end == BOTH for cost in costs),
        load=max((each.load for each in used if each.forced), default=0.0),
    )


def _checked(parts: Parts, needs: Needs) -> Needs:
    """Return needs as numbers."""
    rate, amount, time = (
        Number(of, positive=True) for of in ("bytes per second", "bytes", "seconds")
    )
    kinds: dict[str, Number | Whole] = {
        "connections": Whole("", minimum=1),
        "packet_bytes": Whole("bytes", minimum=1),
        "nic_bytes_per_s": rate,
        "window_bytes": amount,
        "rtt_s": time,
        "cores": Number("", positive=True),
    }
    needs = replace(
        needs, **{key: _read(getattr(needs, key), kind, key) for key, kind in kinds.items()}
    )
    if (needs.window_bytes is None) != (needs.rtt_s is None):
        raise ProblemError(
            "window_bytes (--window) and rtt_s (--rtt) belong together: a window limits what comes "
            "in each round trip; give both"
        )
    if needs.cores is not None and needs.cores > parts.processors:
        raise ProblemError(
            f"cores (--cores) must be at most {parts.processors:g}, as many as there are, got "
            f"{needs.cores:g}; leave it out for all of them"
        )
    if needs.packet_bytes is not None:
        _check_packet(parts, needs)
    return needs


def _read(given: Any, kind: Number | Whole, key: str) -> Any:
    """Return a need as a number that makes sense; None where it is not given."""
    from datacollect.files.with_units import in_units  # numpy, which help does not need

    number = in_units(given, kind, key)
    return None if number is None else kind.read(number, f"{key} ({OPTIONS[key]})")


def _check_packet(parts: Parts, needs: Needs) -> None:
    if needs.tls or needs.to_disk:
        raise ProblemError(
            "packet_bytes (--packet-bytes) asks for datagrams, which TLS and pulls do not use; "
            "leave out tls (--tls) and to_disk (--to-disk)"
        )
    most, why = MOST_DATAGRAM_BYTES, "no datagram is longer"
    nic = parts.fastest_nic
    if nic is not None and nic.mtu_bytes is not None and nic.mtu_bytes - HEADER_BYTES < most:
        most = nic.mtu_bytes - HEADER_BYTES
        why = f"{nic.name} carries packets of {nic.mtu_bytes} bytes, headers included"
    if needs.packet_bytes > most:
        raise ProblemError(
            f"packet_bytes (--packet-bytes) must be at most {most}: {why}; got "
            f"{shown(needs.packet_bytes)}; send several"
        )


def _costs(parts: Parts, needs: Needs, place: str) -> list[Cost]:
    """Return what a byte costs of processors, as far as it was measured; else say what was not."""
    wanted = [(needs.work, end) for end in needs.ends]
    if needs.to_disk:
        wanted.append((DISK, RECEIVES))
    found = []
    for work, end in wanted:
        cost = parts.cost(work, end)
        if cost is None:
            raise ProblemError(
                f"{place}: no cost of {work} was measured where a host {end}; calibrate again "
                "while the machine is idle, or with --anyway: "
                "`datacollect host calibrate -o PROFILE.toml`"
            )
        if cost not in found:  # what both ends take together counts once
            found.append(cost)
    return found


def _s_per_byte(costs: list[Cost], needs: Needs) -> float:
    return sum(cost.s_per_byte(needs.packet_bytes) for cost in costs)


def _limits(parts: Parts, needs: Needs, costs: list[Cost]) -> tuple[Limit, ...]:
    """Return all limits, the least first."""
    return tuple(sorted(_each_limit(parts, needs, costs), key=lambda limit: limit.bytes_per_s))


def _each_limit(parts: Parts, needs: Needs, costs: list[Cost]) -> Iterator[Limit]:
    s_per_byte = _s_per_byte(costs, needs)
    cores = parts.processors if needs.cores is None else needs.cores
    per_gib = format_significant(float(f"{s_per_byte * GIB:.2g}"))
    there = "there is 1" if cores == 1 else f"there are {cores:g}"
    share, used = _share_used(parts, needs)
    why = f"{per_gib} s of all cores per GiB, {there}{used}"
    yield Limit(PROCESSOR, share * cores / s_per_byte, why)
    if needs.connections is not None:
        yield _connection_limit(parts, needs, costs, s_per_byte)
    nic = parts.fastest_nic
    if needs.nic_bytes_per_s is not None:
        yield Limit(NIC, needs.nic_bytes_per_s, "its rate")
    elif nic is not None and nic.bytes_per_s is not None:
        yield Limit(NIC, nic.bytes_per_s, f"the rate of {nic.name}")
    if needs.window_bytes is not None:
        one = needs.window_bytes / needs.rtt_s
        n = needs.connections or 1
        yield Limit(WINDOW, n * one, f"{format_bytes(n * needs.window_bytes)} each round trip")
    memory = parts.rate(MEMORY)
    if memory is not None:
        copies = counted(needs.copies, "copy", "copies")
        yield Limit(MEMORY, memory.bytes_per_s / needs.copies, f"{copies} of each byte")
    disk = parts.rate(DISK)
    if needs.to_disk and disk is not None:
        yield Limit(DISK, disk.bytes_per_s, "what it wrote, synced")


def _share_used(parts: Parts, needs: Needs) -> tuple[float, str]:
    """Return the part of the processors that is used, and how to say so."""
    if not needs.tls:  # neither agents nor pulls do it
        return 1.0, ""
    share = parts.share_used(needs.connections)
    if share is None:
        return 1.0, ", without waiting"
    return share, f", {share:.0%} used"


def _connection_limit(parts: Parts, needs: Needs, costs: list[Cost], s_per_byte: float) -> Limit:
    """Return what so many connections get, each of which has one core at a time."""
    one = parts.rate(needs.work, 1)
    if one is None or needs.does == RELAYS:
        each_s = s_per_byte
    else:
        each_s = 1 / one.bytes_per_s + _s_per_byte([c for c in costs if c.work == DISK], needs)
    n = needs.connections
    return Limit(CONNECTION, n / each_s, f"{rounded_rate(1 / each_s)} for each, there {_are(n)}")


def _are(n: int) -> str:
    return "is 1" if n == 1 else f"are {n}"


def _rates_used(needs: Needs) -> tuple[str, ...]:
    return (MEMORY, DISK) if needs.to_disk else (MEMORY,)


def _least(parts: Parts, needs: Needs, place: str) -> float:
    return _limits(parts, needs, _costs(parts, needs, place))[0].bytes_per_s


def _remedies(parts: Parts, needs: Needs, place: str, now: float) -> list[Remedy]:
    """Return what would help, the least gain first.

    The paper's remedies for end hosts: more processors, work taken off them, fewer copies, faster
    memory; and of what else may bind, twice as much.
    """
    cores = 2 * (parts.processors if needs.cores is None else needs.cores)
    tried: list[tuple[str, Parts, Needs]] = [
        (
            f"{cores:g} cores",
            replace(parts, processors=max(parts.processors, cores)),
            replace(needs, cores=cores),
        ),
    ]
    if needs.tls and all(parts.cost(TCP, end) for end in needs.ends):
        tried.append(("without TLS", parts, replace(needs, tls=False)))
    for what, of in (("memory twice as fast", MEMORY), ("a disk twice as fast", DISK)):
        tried.append((what, _with_faster(parts, of), needs))
    nic = parts.fastest_nic
    rate = needs.nic_bytes_per_s or (nic.bytes_per_s if nic is not None else None)
    if rate is not None:
        tried.append(
            (f"a NIC of {format_rate(2 * rate)}", parts, replace(needs, nic_bytes_per_s=2 * rate))
        )
    if needs.window_bytes is not None:
        window = 2 * needs.window_bytes
        tried.append(
            (f"a window of {format_bytes(window)}", parts, replace(needs, window_bytes=window))
        )
    if needs.connections is not None or needs.window_bytes is not None:
        n = 2 * (needs.connections or 1)
        tried.append((f"{n} connections", parts, replace(needs, connections=n)))
    helping = [Remedy(what, _least(other, so, place)) for what, other, so in tried]
    return sorted(
        (each for each in helping if each.bytes_per_s > now * GAIN),
        key=lambda each: float(f"{each.bytes_per_s:.2g}"),
    )


def _with_faster(parts: Parts, of: str) -> Parts:
    names = ("low_bytes_per_s", "bytes_per_s", "high_bytes_per_s")
    return replace(
        parts,
        rates=tuple(
            replace(rate, **{name: 2 * getattr(rate, name) for name in names})
            if rate.of == of
            else rate
            for rate in parts.rates
        ),
    )
