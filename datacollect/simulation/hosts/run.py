"""Run of a simulated host: what it loses and where, and each second what its parts hold and do."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from datacollect.simulation.hosts.data_path import (
    Arrivals,
    CardMeter,
    CardTotals,
    Window,
    through_card,
)
from datacollect.simulation.hosts.job import Reader, Totals
from datacollect.simulation.hosts.streams import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.simulation.hosts.data_path import CardLoss
    from datacollect.simulation.hosts.setting import HostSimulation

PROCESSOR, KERNEL_BUFFER, NIC_BUFFER = CAUSES = ("processor", "kernel buffer", "NIC buffer")


@dataclass(frozen=True, slots=True)
class Loss:
    """Packets that were lost one soon after the other, for one cause.

    Attributes
    ----------
    cause : str
        ``processor``: it was busy all the time; ``kernel buffer``: it was full before the job was
        to read again; ``NIC buffer``: it was full, though the kernel keeps up on average.
    first_packet, last_packet : int
        Numbers, from 0 on.
    packets : int
        How many of these were lost.
    from_s, to_s : float
        When the first and the last were.
    """

    cause: str
    first_packet: int
    last_packet: int
    packets: int
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Second:
    """State at the end of a second, or of the run, and what happened since the one before.

    Buffers and loads come twice: as they are, and on average since then. A load is 1 where the
    processor, or each of two, is busy.
    """

    time_s: float
    due_packets: int
    arrived_packets: int
    lost_packets: int
    read_packets: int
    nic_buffer_bytes: int
    nic_buffer_mean_bytes: float
    kernel_buffer_bytes: int
    kernel_buffer_mean_bytes: float
    user_buffer_bytes: int
    user_buffer_mean_bytes: float
    load: float
    mean_load: float
    kernel_mean_load: float
    job_mean_load: float


@dataclass(frozen=True)
class HostRun:
    """Outcome of a stream at a simulated host.

    Attributes
    ----------
    host : HostSimulation
    seconds : tuple of Second
    losses : tuple of Loss
        In the order of their instants.
    frames : dict of str to int
        Of videos: frames by their kind.
    damaged_frames : dict of str to int
        Those of which a packet was lost.
    livelock_s : float or None
        When the job last read, where the kernel's work alone has kept the processor ever since.
    """

    host: HostSimulation
    seconds: tuple[Second, ...]
    losses: tuple[Loss, ...]
    frames: dict[str, int]
    damaged_frames: dict[str, int]
    livelock_s: float | None

    @property
    def lost(self) -> dict[str, int]:
        """Lost packets by cause."""
        counts = Counter(dict.fromkeys(CAUSES, 0))
        for loss in self.losses:
            counts[loss.cause] += loss.packets
        return dict(counts)

    def total(self, column: str) -> int:
        """Return the sum of a column of `seconds`."""
        return sum(getattr(each, column) for each in self.seconds)

    def mean(self, column: str) -> float:
        """Return the mean of a column of `seconds` over time."""
        before, total = 0.0, 0.0
        for each in self.seconds:
            total += getattr(each, column) * (each.time_s - before)
            before = each.time_s
        return total / before

    @property
    def read_bytes_per_s(self) -> float:
        """Payload that the job has read, per second."""
        n_bytes = self.total("read_packets") * self.host.packet_bytes
        return n_bytes * NS_PER_S / self.host.end_ns

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "host": self.host.to_dict(),
            "arrived_packets": self.total("arrived_packets"),
            "read_packets": self.total("read_packets"),
            "read_bytes_per_s": self.read_bytes_per_s,
            "lost_packets": self.lost,
            "mean_load": self.mean("mean_load"),
            "frames": self.frames,
            "damaged_frames": self.damaged_frames,
            "livelock_s": self.livelock_s,
            "seconds": [asdict(each) for each in self.seconds],
            "losses": [asdict(each) for each in self.losses],
        }

    def seconds_csv(self) -> str:
        """Return `seconds` as CSV."""
        return _csv(Second, self.seconds)

    def losses_csv(self) -> str:
        """Return `losses` as CSV."""
        return _csv(Loss, self.losses)


def _csv(kind: Any, rows: Sequence[Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [field.name for field in fields(kind)]
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in rows)
    return text.getvalue()


def run_host(host: HostSimulation) -> HostRun:
    """Simulate a host to its end.

    Parameters
    ----------
    host : HostSimulation

    Returns
    -------
    HostRun
    """
    trains, window = host.stream.trains, None
    card_losses: list[CardLoss] = []
    if host.is_tcp:
        window = Window(trains, host.kernel_ns, host.wire_ns, host.room)
        runs = window.runs
    else:
        runs, card_losses = through_card(trains, host.kernel_ns, host.slots)
    busy_ns = host.kernel_ns if host.processors == 1 else 0
    opens = None if window is None else window.opens
    reader = Reader(runs, host.job, host.room, busy_ns, opens)
    seconds = _seconds(host, reader, CardMeter(runs, host.kernel_ns))
    losses = [*_of_card(host, card_losses), *_of_buffer(reader)]
    damaged = {loss.number for loss in card_losses} | {each.run.number for each in reader.losses}
    frames = host.stream.frames
    return HostRun(
        host,
        tuple(seconds),
        tuple(sorted(losses, key=lambda each: (each.from_s, each.first_packet))),
        dict(Counter(frames.values())),
        dict(Counter(kind for number, kind in frames.items() if number in damaged)),
        _livelock_s(host, reader),
    )


def _seconds(host: HostSimulation, reader: Reader, meter: CardMeter) -> list[Second]:
    due, arrived = Arrivals(host.stream.trains), Arrivals(host.stream.trains)
    before = (0, 0, CardTotals(0, 0, 0, 0), 0, Totals(0, 0, 0, 0, 0, 0, 0))
    rows = []
    for time_ns in (*range(NS_PER_S, host.end_ns, NS_PER_S), host.end_ns):
        job = reader.go_to(time_ns)
        card = meter.go_to(time_ns)
        n_arrived = card.accepted if host.is_tcp else arrived.go_to(time_ns)
        lost = n_arrived - card.accepted + card.taken - job.stored
        now = (due.go_to(time_ns), n_arrived, card, lost, job)
        rows.append(_second(host, before, now))
        before = now
    return rows


def _second(host: HostSimulation, before: Any, now: Any) -> Second:
    due, arrived, card, lost, job = now
    old_due, old_arrived, old_card, old_lost, old_job = before
    passed_ns = job.time_ns - old_job.time_ns
    frame_bytes = host.packet_bytes + host.header_bytes
    kernel_load = (card.busy_ns - old_card.busy_ns) / passed_ns
    job_load = (job.worked_ns - old_job.worked_ns) / passed_ns
    has_kernel_work, has_job_work = card.accepted > card.taken, job.read > job.freed
    busy = min(host.processors, has_kernel_work + has_job_work)
    return Second(
        time_s=job.time_ns / NS_PER_S,
        due_packets=due - old_due,
        arrived_packets=arrived - old_arrived,
        lost_packets=lost - old_lost,
        read_packets=job.read - old_job.read,
        nic_buffer_bytes=(card.accepted - card.taken) * frame_bytes,
        nic_buffer_mean_bytes=(card.card_ns - old_card.card_ns) * frame_bytes / passed_ns,
        kernel_buffer_bytes=(job.stored - job.read) * host.packet_bytes,
        kernel_buffer_mean_bytes=(job.kernel_ns - old_job.kernel_ns)
        * host.packet_bytes
        / passed_ns,
        user_buffer_bytes=(job.read - job.freed) * host.packet_bytes,
        user_buffer_mean_bytes=(job.user_ns - old_job.user_ns) * host.packet_bytes / passed_ns,
        load=busy / host.processors,
        mean_load=(kernel_load + job_load) / host.processors,
        kernel_mean_load=kernel_load,
        job_mean_load=job_load,
    )


def _of_card(host: HostSimulation, losses: Sequence[CardLoss]) -> list[Loss]:
    """Return what the card loses; where the kernel never keeps up, the processor is the cause."""
    overloaded = host.stream.packets * host.kernel_ns > host.end_ns
    cause = PROCESSOR if overloaded else NIC_BUFFER
    return [
        Loss(
            cause,
            loss.number + loss.first,
            loss.number + loss.last,
            loss.packets,
            (loss.train.first_ns + loss.first * loss.train.every_ns) / NS_PER_S,
            (loss.train.first_ns + loss.last * loss.train.every_ns) / NS_PER_S,
        )
        for loss in losses
    ]


def _of_buffer(reader: Reader) -> list[Loss]:
    return [
        Loss(
            PROCESSOR if each.is_late else KERNEL_BUFFER,
            each.run.number_of(each.begin),
            each.run.number_of(each.end - 1),
            each.packets,
            (each.run.first_ns + each.begin * each.run.every_ns) / NS_PER_S,
            (each.run.first_ns + (each.end - 1) * each.run.every_ns) / NS_PER_S,
        )
        for each in reader.losses
    ]


def _livelock_s(host: HostSimulation, reader: Reader) -> float | None:
    """Return since when the kernel alone has kept the processor from a job that was to read."""
    since_ns = reader.due_ns
    waits = reader.next_ns > host.end_ns >= since_ns + host.job.period_ns
    if not waits or host.processors > 1:
        return None
    meter = CardMeter(reader.runs, host.kernel_ns)
    busy_ns = -meter.go_to(since_ns).busy_ns + meter.go_to(host.end_ns).busy_ns
    return since_ns / NS_PER_S if busy_ns == host.end_ns - since_ns else None
