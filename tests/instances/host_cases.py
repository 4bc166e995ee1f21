"""Random simulated hosts, small and at their edges; where simulator and oracle differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from judges.packet_by_packet import simulate

from datacollect.simulation.hosts.data_path import Arrivals, CardMeter, Train, Window, through_card
from datacollect.simulation.hosts.job import Job, Reader

# Whole numbers between two bounds, both of them included.
Whole = Callable[[int, int], int]


@dataclass(frozen=True)
class HostCase:
    """A host, what is sent to it, and when to look."""

    trains: tuple[Train, ...]
    kernel_ns: int
    slots: int
    room: int
    job: Job
    end_ns: int
    row_ns: int
    shared: bool
    wire_ns: int | None  # None: UDP


def host_case(whole: Whole) -> HostCase:
    """Return a case: one number decides how large others are, so that edges meet."""

    def up_to(*bounds: int) -> int:
        return whole(1, bounds[whole(0, len(bounds) - 1)])

    trains, time_ns = [], 0
    for _ in range(up_to(1, 2, 9)):
        train = Train(time_ns + whole(0, 1) * whole(0, 200), up_to(3, 30), up_to(3, 40, 200))
        time_ns = (
            train.first_ns + (train.packets - 1) * train.every_ns + whole(0, 1) * train.every_ns
        )
        trains.append(train)
    room, end_ns = up_to(1, 2, 60), whole(1, time_ns + 300)
    job = Job(up_to(1, 300), whole(0, 1) * up_to(60), up_to(1, 40, 10**6), up_to(1, room))
    return HostCase(
        tuple(trains),
        kernel_ns=up_to(3, 30),
        slots=up_to(1, 3, 50),
        room=room,
        job=job,
        end_ns=end_ns,
        row_ns=up_to(end_ns, max(1, end_ns // 7)),
        shared=bool(whole(0, 2)),
        wire_ns=None if whole(0, 2) else up_to(20),
    )


def differences(case: HostCase) -> dict[str, Any]:
    """Return what the simulator says and the oracle does not, both, by what it is."""
    window = case.wire_ns and Window(case.trains, case.kernel_ns, case.wire_ns, case.room)
    runs, card = (
        (window.runs, []) if window else through_card(case.trains, case.kernel_ns, case.slots)
    )
    opens = window.opens if window else None
    busy_ns = case.kernel_ns if case.shared else 0
    reader = Reader(runs, case.job, case.room, busy_ns, opens, readings=[])
    instants = range(case.row_ns, case.end_ns + 1, case.row_ns)
    meter, arrivals = CardMeter(runs, case.kernel_ns), Arrivals(case.trains)
    totals, cards = [], []
    for time_ns in instants:
        totals.append(reader.go_to(time_ns))
        card_now = meter.go_to(time_ns)
        arrived = card_now.accepted if window else arrivals.go_to(time_ns)
        held = card_now.accepted - card_now.taken
        cards.append((arrived, held, card_now.card_ns, card_now.busy_ns))
    reader.go_to(case.end_ns)
    lost, readings, rows = simulate(
        case.trains, case.kernel_ns, case.slots, case.room, case.job, case.end_ns, case.shared,
        case.wire_ns, case.row_ns,
    )  # fmt: skip
    sent = sum(len([i for i in range(t.packets) if t.first_ns + i * t.every_ns <= case.end_ns])
               for t in case.trains)  # fmt: skip
    told = {
        "card": sorted(n for loss in card for n in loss.numbers() if n < sent),
        "counts": [loss.packets for loss in card],
        "ends": [(loss.number + loss.first, loss.number + loss.last) for loss in card],
        "kernel buffer": [n for each in reader.losses if not each.is_late for n in each.numbers()],
        "processor": [n for each in reader.losses if each.is_late for n in each.numbers()],
        "readings": [(t, n, e if e <= case.end_ns else None) for t, n, e in reader.readings or ()],
        "rows": [
            (t.time_ns, t.stored - t.read, t.read - t.freed, t.kernel_ns, t.user_ns, t.worked_ns)
            for t in totals
        ],
        "cards": cards,
    }
    numbers = [list(loss.numbers()) for loss in card]
    held, kernel, user, busy, works = (
        list(accumulate(row[i] for row in rows)) for i in range(5, 10)
    )
    asked = {
        "card": lost["card"],
        "counts": [len(each) for each in numbers],
        "ends": [(min(each), max(each)) for each in numbers],
        "kernel buffer": lost["kernel buffer"],
        "processor": lost["processor"],
        "readings": readings,
        "rows": [
            (row[0], row[3], row[4], *sums)
            for row, *sums in zip(rows, kernel, user, works, strict=True)
        ],
        "cards": [(*row[1:3], *sums) for row, *sums in zip(rows, held, busy, strict=True)],
    }
    return {what: (told[what], asked[what]) for what in told if told[what] != asked[what]}
