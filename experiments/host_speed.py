"""Speed of simulated hosts: packets per second of processor time, beside packet by packet.

    python experiments/host_speed.py [--repeats 3]

Prints a table in Markdown, and the load of this machine meanwhile. Packet by packet is a short loop
that can do no more than these cases; both lose as many packets, which is checked.
"""

from __future__ import annotations

import argparse
import os

from timed_calls import markdown, timed

from datacollect.simulation.hosts.data_path import Train, through_card
from datacollect.simulation.hosts.job import Job, Reader

NS_PER_S = 10**9
SLOTS = 43
# Nanoseconds between packets of 1472 B, of the kernel's work on each, room for packets, the job;
# what is to be reached, in 10^6 packets per second.
CASES = {
    "25 readings/s of 100 Mbit/s": (117_760, 3000, 2000, Job(40_000_000, 2700, 10**9), 100),
    "1 ms readings of 940 Mbit/s": (12_530, 3000, 400, Job(1_000_000, 4700, 10**9), 50),
    "8 packets a reading": (12_530, 3000, 400, Job(100_000, 4700, 10**9), 5),
    "1 ms readings, job too slow": (12_530, 3000, 400, Job(1_000_000, 9700, 200), None),
    "1 ms readings, buffer too small": (12_530, 3000, 40, Job(1_000_000, 4700, 200), None),
}


def by_readings(every_ns: int, kernel_ns: int, room: int, job: Job, end_ns: int) -> Reader:
    """Simulate as `datacollect host simulate` does, each second a row."""
    runs, _ = through_card([Train(every_ns, every_ns, end_ns // every_ns)], kernel_ns, SLOTS)
    reader = Reader(runs, job, room, kernel_ns)
    for time_ns in range(NS_PER_S, end_ns + 1, NS_PER_S):
        reader.go_to(time_ns)
    return reader


def by_packets(every_ns: int, kernel_ns: int, room: int, job: Job, end_ns: int) -> int:
    """Simulate packet by packet, in a loop for this alone; return how many are lost."""
    lost = used = work_ns = now_ns = 0
    wake_ns = job.period_ns
    for arrival_ns in range(every_ns, end_ns + 1 - kernel_ns, every_ns):
        while now_ns < arrival_ns:  # the job, until the packet comes
            if work_ns:
                for_ns = min(work_ns, arrival_ns - now_ns)
                work_ns, now_ns = work_ns - for_ns, now_ns + for_ns
                continue
            if wake_ns >= arrival_ns:
                break
            now_ns = max(now_ns, wake_ns)
            taken = min(used, job.most) if used >= job.least else 0
            used, work_ns = used - taken, taken * job.packet_ns
            wake_ns = (now_ns // job.period_ns + 1) * job.period_ns
        now_ns = arrival_ns + kernel_ns
        if used < room:
            used += 1
        else:
            lost += 1
    return lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    for what, (every_ns, kernel_ns, room, job, least) in CASES.items():
        given = (every_ns, kernel_ns, room, job)
        best = min(timed(by_readings, *given, 60 * NS_PER_S)[0] for _ in range(arguments.repeats))
        slow_s, lost = timed(by_packets, *given, NS_PER_S)
        assert by_readings(*given, NS_PER_S).lost == lost, what
        fast = 60 * NS_PER_S / every_ns / best / 1e6
        slow = NS_PER_S / every_ns / slow_s / 1e6
        target = "" if least is None else f"{least}"
        rows.append((what, f"{fast:.1f}", target, f"{slow:.2f}", f"{fast / slow:.0f}"))
    head = ("10^6 packets/s", "by readings", "at least", "packet by packet", "ratio")
    print(markdown(head, rows))
    print(f"\nLoad meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.")


if __name__ == "__main__":
    main()
