"""Calibration: all probes in their order, when each is to be trusted, and the profile of all."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from datacollect.errors import DatacollectError
from datacollect.machine.identity import machine_mark, machine_name
from datacollect.machine.parts import (
    DISK,
    IDLE_BELOW,
    LOOPBACK,
    RECEIVES,
    SENDS,
    TCP,
    TLS,
    UDP,
    VETH,
    Parts,
)
from datacollect.machine.profile import HostProfile, now_text
from datacollect.measuring.hosts import (
    connections,
    datagrams,
    disk_writes,
    hashing,
    memory_copies,
    pulls,
    seen,
    two_ends,
)
from datacollect.measuring.hosts.namespaces import LOOPBACK_ADDRESS
from datacollect.measuring.hosts.processor_times import ProcessorTimes, allowed_processors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from datacollect.machine.parts import Cost, PullUse, Rate

_Row = TypeVar("_Row", "Cost", "Rate", "PullUse")

# Parts of the time that there is; what is left, the starts of programs take.
MEMORY_PART, UDP_PART, CONNECTIONS_PART, DISK_PART, PULL_PART = 0.08, 0.03, 0.34, 0.12, 0.3
LEAST_S = 10.0
MOST_LOOKS = 5
# What no idle machine is needed for tells how busy it was, too.
PULL = "pull"
NAMES = {TCP: "TCP", TLS: "TLS", DISK: "the disk", PULL: "a pull"}


@dataclass
class Found:
    """Findings so far."""

    costs: list[Cost]
    rates: list[Rate]
    pulls: list[PullUse]
    facts: dict[str, str]
    refused: dict[str, str]


class Measured(NamedTuple):
    """What one probe has found."""

    costs: Sequence[Cost] = ()
    rates: Sequence[Rate] = ()
    facts: Mapping[str, str] = {}
    pulls: Sequence[PullUse] = ()


@dataclass(frozen=True)
class Probes:
    """Probes that measure; each raises `DatacollectError` where it cannot.

    Attributes
    ----------
    others : callable
        Looks for a moment what others keep busy, a part of all processors.
    watch : callable
        Begins to watch others; returns what tells the part of all processors that they had since.
    memory : callable
        Takes seconds, and what looks at others.
    blake3 : callable
        Takes what others keep busy.
    datagrams : callable
        Takes seconds; returns costs, and facts.
    connections : callable
        Takes seconds; returns costs, rates, and facts.
    disk : callable
        Takes the folder, seconds and what others keep busy; returns costs, rates, and facts.
    pulls : callable
        Takes seconds, the folder, and what writing takes there if no pull waits for that disk.
    """

    others: Callable[[], float]
    watch: Callable[[], Callable[[], float]]
    memory: Callable[[float, Callable[[], float]], list[Rate]]
    blake3: Callable[[float], Cost]
    datagrams: Callable[[float], tuple[list[Cost], dict[str, str]]]
    connections: Callable[[float], tuple[list[Cost], list[Rate], dict[str, str]]]
    disk: Callable[[str, float, float], tuple[list[Cost], list[Rate], dict[str, str]]]
    pulls: Callable[[float, Path, float | None], list[PullUse]]


def calibrated(
    disk: str | PathLike[str],
    seconds: float,
    *,
    anyway: bool = False,
    probes: Probes | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> HostProfile:
    """Measure what bytes cost this machine.

    Parameters
    ----------
    disk : path-like
        A folder on the disk that pulls write to.
    seconds : float
        About how long it may take.
    anyway : bool
        Measure also what needs an idle machine where others are busy, and mark it.
    probes : Probes, optional
    tell : callable
        Takes what is measured next.
    """
    probes = probes or own_probes()
    found = Found([], [], [], seen.facts_of(), {})
    others = _Others(probes.others, probes.watch)
    tell("memory, BLAKE3")
    found.rates += probes.memory(MEMORY_PART * seconds, others.look)
    found.costs.append(probes.blake3(others.look()))
    tell("datagrams")
    try:
        costs, facts = probes.datagrams(UDP_PART * seconds)
        load = others.look()
        found.costs += [replace(cost, load=load) for cost in costs]
        found.facts |= facts
    except DatacollectError as error:
        found.refused[UDP] = str(error)
    tell("TCP, TLS")
    _measure_idle(
        found,
        (TCP, TLS),
        others,
        lambda _: Measured(*probes.connections(CONNECTIONS_PART * seconds)),
        anyway,
    )
    tell("disk")
    _measure_idle(
        found,
        (DISK,),
        others,
        lambda load: Measured(*probes.disk(str(disk), DISK_PART * seconds, load)),
        anyway,
    )
    tell("pull")
    _measure_idle(
        found,
        (PULL,),
        others,
        lambda _: Measured(
            pulls=probes.pulls(PULL_PART * seconds, Path(disk), _fast_disk_s_per_gib(found))
        ),
        anyway,
    )
    parts = Parts(
        seen.usable_processors(),
        tuple(map(_rounded, found.costs)),
        tuple(map(_rounded, found.rates)),
        seen.nics_of(),
        tuple(map(_rounded, found.pulls)),
    )
    return HostProfile(
        machine_name(), parts, now_text(), found.facts, found.refused, machine_mark()
    )


def _fast_disk_s_per_gib(found: Found) -> float | None:
    """Return what writing takes of processors if a pull waits for them sooner than for the disk.

    That is where the disk takes more than they allow, to both ends of a pull. Else a pull that
    writes there tells of the disk alone.
    """
    processors = seen.usable_processors()
    parts = Parts(processors, tuple(found.costs), tuple(found.rates))
    disk, write = parts.rate(DISK), parts.cost(DISK, RECEIVES)
    ends = {cost for end in (SENDS, RECEIVES) if (cost := parts.cost(TLS, end))}
    if disk is None or write is None or not ends:
        return None
    s_per_byte = sum(cost.s_per_byte() for cost in (write, *ends))
    return write.s_per_gib if disk.bytes_per_s * s_per_byte > processors else None


def _rounded(row: _Row) -> _Row:
    """Return a row whose numbers have the digits that they mean something with, and some more."""
    shorter: dict[str, Any] = {
        each.name: float(f"{value:.5g}")
        for each in fields(row)
        if isinstance(value := getattr(row, each.name), float)
    }
    return replace(row, **shorter)


class _Others:
    """Looks what others keep busy; where the system does not tell, it is unknown why."""

    def __init__(self, look: Callable[[], float], watch: Callable[[], Callable[[], float]]) -> None:
        self._look, self.watch = look, watch

    def look(self) -> float:
        """Return a part of all processors; 0 where nobody tells: then idle probes are refused."""
        try:
            return self._look()
        except DatacollectError:
            return 0.0

    def require(self) -> float:
        """Return it, or raise `DatacollectError` where nobody tells.

        For a moment the kernel still frees and writes what we have left behind: who is busy then
        counts if he stays so.
        """
        seen = [self._look()]
        while seen[-1] > IDLE_BELOW and len(seen) < MOST_LOOKS:
            seen.append(self._look())
        return min(seen)


def _measure_idle(
    found: Found,
    works: Sequence[str],
    others: _Others,
    measure: Callable[[float], Measured],
    anyway: bool,
) -> None:
    """Measure what an idle machine alone tells: whoever else is busy is counted, too."""
    try:
        before = others.require()
        if before > IDLE_BELOW and not anyway:
            _refuse(found, works, before)
            return
        meanwhile = others.watch()
        measured = measure(before)
        load = max(before, meanwhile(), others.require())
    except DatacollectError as error:
        found.refused |= dict.fromkeys(works, str(error))
        return
    if load > IDLE_BELOW and not anyway:
        _refuse(found, works, load)
        return
    forced = load > IDLE_BELOW
    found.costs += [replace(cost, load=load, forced=forced) for cost in measured.costs]
    found.rates += [replace(rate, load=load, forced=forced) for rate in measured.rates]
    found.pulls += [replace(use, load=load, forced=forced) for use in measured.pulls]
    found.facts |= measured.facts


def _refuse(found: Found, works: Sequence[str], load: float) -> None:
    for work in works:
        found.refused[work] = (
            f"others keep {load:.0%} of the processors busy, and at most {IDLE_BELOW:.0%} may be: "
            f"{NAMES[work]} costs time that nobody is charged for"
        )


# Our own ----------------------------------------------------------------------------------------


def own_probes() -> Probes:
    """Return what measures this machine."""
    return Probes(
        ProcessorTimes().others,
        ProcessorTimes().watched,
        memory_copies.measure_memory,
        hashing.measure_blake3,
        _datagrams,
        _connections,
        _disk,
        pulls.measure_pulls,
    )


def _datagrams(seconds: float) -> tuple[list[Cost], dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="calibrate-") as folder:
        program = datagrams.compiled(Path(folder))
        if program is None:
            found = datagrams.bursts_from_python(seconds)
            how = (
                "from Python, whose calls add 1 to 4 µs to each: no C compiler could build our "
                "program"
            )
            return datagrams.costs_of(found, LOOPBACK), {"datagrams": how}
        words = [str(program), LOOPBACK_ADDRESS, str(seconds)]
        costs = datagrams.costs_of(datagrams.run_program(words, seconds), LOOPBACK)
        together = two_ends.why_not_apart()
        if together is not None:
            return costs, {"datagrams": f"over loopback alone: {together}"}
        cores = two_ends.processors_of_ends()
        wanted = two_ends.Wanted("datagrams", seconds, True, cores, program=str(program))
        bursts = {int(size): each for size, each in two_ends.between_two_ends(wanted).items()}
        return [*costs, *datagrams.costs_of(bursts, VETH)], {}


def _connections(seconds: float) -> tuple[list[Cost], list[Rate], dict[str, str]]:
    why, cores = two_ends.why_not_apart(), two_ends.processors_of_ends()
    with tempfile.TemporaryDirectory(prefix="calibrate-") as folder:
        wanted = two_ends.Wanted("connections", seconds, why is None, cores, folder=folder)
        rows = two_ends.between_two_ends(wanted)
    has_two = len(allowed_processors()) > 1
    costs, rates = connections.costs_of(rows, apart=why is None, has_two=has_two)
    facts = {} if why is None else {"ends": f"both together, at least: {why}"}
    return costs, rates, facts


def _disk(
    folder: str, seconds: float, load: float
) -> tuple[list[Cost], list[Rate], dict[str, str]]:
    cost, rate = disk_writes.measure_disk(folder, seconds, load)
    fio = disk_writes.fio_words(folder)
    return [cost], [rate], {"fio": fio} if fio else {}
