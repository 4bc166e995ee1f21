"""Job of a simulated host: it reads, works, frees and sleeps, beside the kernel or after it.

From one reading to the next all is arithmetic: how many packets are in by then, and when the job
ends its work in the gaps that the kernel leaves. Readings within one run of packets go through a
loop of their own, which does the same with fewer words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from datacollect.simulation.hosts.data_path import Places, Run, Train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NOTHING = Run(Train(0, 1, 0), 0, Places(), 0, 1, 0)


@dataclass(frozen=True, slots=True)
class Job:
    """Reader of the kernel's buffer.

    Attributes
    ----------
    period_ns : int
        It reads at each multiple of this; at once where its work has lasted longer.
    packet_ns : int
        What its copy of a packet and its work on it take.
    most : int
        Packets that it takes at once at most.
    least : int
        Packets below which it takes none.
    """

    period_ns: int
    packet_ns: int
    most: int
    least: int = 1


class BufferLoss(NamedTuple):
    """Packets of a run for which the kernel's buffer had no room: those from `begin` to `end`.

    `is_late` says that the job's next reading was overdue: the processor is what lacks.
    """

    run: Run
    begin: int
    end: int
    is_late: bool

    @property
    def packets(self) -> int:
        """Return how many are lost."""
        return self.end - self.begin

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of those that are lost."""
        return map(self.run.number_of, range(self.begin, self.end))


class Reading(NamedTuple):
    """One reading of the job: when, how many packets, when its work on them ends."""

    time_ns: int
    taken: int
    end_ns: int


class Totals(NamedTuple):
    """Totals of the job and its buffers at an instant.

    `kernel_ns` and `user_ns` are packets times the nanoseconds for which they have been there.
    """

    time_ns: int
    stored: int
    read: int
    freed: int
    kernel_ns: int
    user_ns: int
    worked_ns: int


@dataclass(slots=True)
class Reader:
    """The job at work.

    Parameters
    ----------
    runs : sequence of Run
        What the kernel takes; it may grow where `opens` is called.
    job : Job
    room : int
        Packets that the kernel's buffer has room for.
    busy_ns : int
        For how long each packet keeps the processor from the job; 0 where the job has its own.
    opens : callable, optional
        Told of each reading: when, and how many packets it has taken.
    readings : list of Reading, optional
        Filled where it is given.
    """

    runs: Sequence[Run]
    job: Job
    room: int
    busy_ns: int
    opens: Callable[[int, int], None] | None = None
    readings: list[Reading] | None = None
    losses: list[BufferLoss] = field(default_factory=list)
    lost: int = 0
    next_ns: int = 0
    due_ns: int = 0
    # Where the job is: in which run, how many of its packets are seen, how many wait.
    _at: int = 0
    _seen: int = 0
    _used: int = 0
    # Totals, and the same weighted by instants.
    _stored_moment: int = 0
    _summed: int = 0
    _read: int = 0
    _read_moment: int = 0
    _freed_moment: int = 0
    _worked_ns: int = 0
    _last: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)

    def __post_init__(self) -> None:
        self.next_ns = self.due_ns = self.job.period_ns

    def go_to(self, time_ns: int) -> Totals:
        """Carry out all readings up to an instant, and return what they have come to by then."""
        while True:
            self._read_within(time_ns)
            at_ns, at, done = self._free_from(self.next_ns)
            if at_ns > time_ns:
                self.next_ns = at_ns  # what is in by then may be looked at before
                break
            self._arrive(at, done)
            self._read_at(at_ns)
        self._arrive(*self._seen_by(time_ns))
        return self._totals(time_ns)

    def _run(self, at: int) -> Run:
        return self.runs[at] if at < len(self.runs) else NOTHING

    def _free_from(self, time_ns: int) -> tuple[int, int, int]:
        """Return when the job may run from an instant on, the run then, and its packets in."""
        at = self._at
        while True:
            run = self._run(at)
            if time_ns >= run.last_ns and at + 1 < len(self.runs):
                at += 1
                continue
            done = run.ended_by(time_ns)
            if done == run.packets:
                return time_ns, at, done
            begins_ns = run.first_ns + done * run.every_ns - self.busy_ns
            if time_ns < begins_ns:
                return time_ns, at, done
            has_gaps = run.every_ns > self.busy_ns
            time_ns = begins_ns + self.busy_ns if has_gaps else run.last_ns

    def _seen_by(self, time_ns: int) -> tuple[int, int]:
        """Return the run at an instant, and how many of its packets are in."""
        at = self._at
        while at + 1 < len(self.runs) and time_ns >= self.runs[at].last_ns:
            at += 1
        return at, self._run(at).ended_by(time_ns)

    def _arrive(self, at: int, done: int) -> None:
        """Put packets into the buffer, up to one of a run."""
        while self._at < at:
            self._put(self._run(self._at).packets)
            self._at, self._seen, self._summed = self._at + 1, 0, 0
        self._put(done)

    def _put(self, done: int) -> None:
        run = self._run(self._at)
        fits = min(done, self._seen + self.room - self._used)
        self._stored_moment += run.ends_total(self._summed, fits)
        self._used += fits - self._seen
        # The processor is what lacks where the job was overdue before the kernel began on a packet.
        timely = min(done, max(fits, run.ended_by(self.due_ns + self.busy_ns)))
        self._lose(run, fits, timely, is_late=False)
        self._lose(run, timely, done, is_late=True)
        self._seen = self._summed = done

    def _lose(self, run: Run, begin: int, end: int, *, is_late: bool) -> None:
        if begin == end:
            return
        self.lost += end - begin
        if self.losses:
            last = self.losses[-1]
            if last.run is run and last.end == begin and last.is_late == is_late:
                self.losses[-1] = BufferLoss(run, last.begin, end, is_late)
                return
        self.losses.append(BufferLoss(run, begin, end, is_late))

    def _read_at(self, time_ns: int) -> None:
        job = self.job
        taken = min(self._used, job.most) if self._used >= job.least else 0
        self._used -= taken
        if self.opens is not None and taken:
            self.opens(time_ns, taken)
        work_ns = taken * job.packet_ns
        at, done = self._at, self._seen
        end_ns = self._end_of(time_ns, work_ns, at, done) if work_ns else time_ns
        self._read += taken
        self._read_moment += taken * time_ns
        self._freed_moment += taken * end_ns
        self._worked_ns += work_ns
        self.due_ns = (time_ns // job.period_ns + 1) * job.period_ns
        self.next_ns = max(self.due_ns, end_ns)
        self._last = time_ns, end_ns, taken, work_ns, at, done
        if self.readings is not None:
            self.readings.append(Reading(time_ns, taken, end_ns))

    def _end_of(self, time_ns: int, work_ns: int, at: int, done: int) -> int:
        """Return when work ends that begins at an instant and gives way to the kernel."""
        for i in range(at, len(self.runs)):
            run, done = self.runs[i], done if i == at else 0
            if done == run.packets:
                continue
            gap_ns = run.first_ns + done * run.every_ns - self.busy_ns - time_ns
            if work_ns <= gap_ns:
                break
            work_ns -= gap_ns
            gap_ns = run.every_ns - self.busy_ns
            gaps = run.packets - 1 - done
            if work_ns <= gaps * gap_ns:
                whole, part = divmod(work_ns - 1, gap_ns)
                return run.first_ns + (done + whole) * run.every_ns + part + 1
            work_ns -= gaps * gap_ns
            time_ns = run.last_ns
        return time_ns + work_ns

    def _read_within(self, until_ns: int) -> None:
        """Carry out readings as long as none leaves its run of packets, or loses any."""
        run, busy_ns, room = self._run(self._at), self.busy_ns, self.room
        first_ns, every_ns, last = run.first_ns, run.every_ns, run.packets - 1
        job, log, gap_ns = self.job, self.readings, every_ns - busy_ns
        period_ns, packet_ns, most, least = job.period_ns, job.packet_ns, job.most, job.least
        seen, used, wake_ns, due_ns = self._seen, self._used, self.next_ns, self.due_ns
        read, read_moment, freed_moment = 0, 0, 0
        latest = None
        if self.opens is not None or gap_ns <= 0 or self._seen < 0:
            return
        while True:
            done = (wake_ns - first_ns) // every_ns + 1
            if not 0 <= done < last:
                break
            begins_ns = first_ns + done * every_ns - busy_ns
            time_ns = wake_ns
            if time_ns >= begins_ns:
                time_ns = begins_ns + busy_ns
                begins_ns += every_ns
                done += 1
            there = used + done - seen
            if there > room or time_ns > until_ns:
                break
            # Calls of min and max would take a fifth of this loop.
            taken = there if there < most else most  # noqa: FURB136
            if there < least:
                taken = 0
            work_ns = taken * packet_ns
            if time_ns + work_ns <= begins_ns:
                end_ns = time_ns + work_ns
            else:
                whole, part = divmod(work_ns - begins_ns + time_ns - 1, gap_ns)
                if done + whole >= last:
                    break
                end_ns = begins_ns + busy_ns + whole * every_ns + part + 1
            latest = time_ns, end_ns, taken, work_ns, self._at, done
            seen, used = done, there - taken
            read += taken
            read_moment += taken * time_ns
            freed_moment += taken * end_ns
            due_ns = (time_ns // period_ns + 1) * period_ns
            wake_ns = due_ns if due_ns > end_ns else end_ns  # noqa: FURB136
            if log is not None:
                log.append(Reading(time_ns, taken, end_ns))
        if latest is None:
            return
        self._seen, self._used, self.next_ns, self.due_ns = seen, used, wake_ns, due_ns
        self._read += read
        self._read_moment += read_moment
        self._freed_moment += freed_moment
        self._worked_ns += read * packet_ns
        self._last = latest

    def _totals(self, time_ns: int) -> Totals:
        began_ns, end_ns, taken, work_ns, at, done = self._last
        freed, freed_moment, worked_ns = self._read, self._freed_moment, self._worked_ns
        if end_ns > time_ns:
            freed, freed_moment = freed - taken, freed_moment - taken * end_ns
            worked_ns += self._run_for(began_ns, time_ns, at, done) - work_ns
        stored = self._read + self._used
        return Totals(
            time_ns,
            stored,
            self._read,
            freed,
            time_ns * self._used - self._stored_moment + self._read_moment,
            time_ns * (self._read - freed) - self._read_moment + freed_moment,
            worked_ns,
        )

    def _run_for(self, began_ns: int, time_ns: int, at: int, done: int) -> int:
        """Return for how long the job has had the processor between two instants."""
        kernel_ns = 0
        for i in range(at, len(self.runs)):
            run = self.runs[i]
            n = run.ended_by(time_ns)
            kernel_ns += (n - (done if i == at else 0)) * self.busy_ns
            if n < run.packets:
                begins_ns = run.first_ns + n * run.every_ns - self.busy_ns
                kernel_ns += max(0, time_ns - begins_ns)
                break
        return time_ns - began_ns - kernel_ns
