"""The oracle of simulated hosts: packet by packet, one event after the other.

At one instant a packet's processing ends first, then the job's work; then packets arrive, and the
job reads last.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from math import inf


def simulate(trains, kernel_ns, slots, room, job, end_ns, shared, wire_ns=None, row_ns=None):
    """Return lost packets by cause, readings and rows; with `wire_ns` a window, else UDP."""
    due = chain.from_iterable(
        range(t.first_ns, t.first_ns + t.every_ns * t.packets, t.every_ns) for t in trains
    )
    number, now, next_due, last_sent, opened = 0, 0, next(due, inf), -inf, 0
    card, kernel, user, in_service = deque(), 0, 0, inf
    left, wake, taken, is_over, readings = 0, job.period_ns, 0, job.period_ns, []
    lost = {"card": [], "kernel buffer": [], "processor": []}
    sums, rows, since, row_ns = [0] * 5, [], 0, row_ns or end_ns
    while True:
        least = -inf if wire_ns is None else last_sent + max(wire_ns, kernel_ns)
        is_closed = wire_ns is not None and len(card) + kernel >= room
        arrival = inf if is_closed or next_due == inf else max(next_due, least, opened)
        waits = shared and card  # the kernel has the processor
        work_ends = inf if not user or (waits and left) else now + left
        reading = inf if user or waits else max(wake, now)
        then = min(in_service, work_ends, arrival, reading, since + row_ns, end_ns + 1)
        works = user and not waits
        levels = (len(card), kernel, user, bool(card), bool(works))
        sums = [total + level * (then - now) for total, level in zip(sums, levels, strict=True)]
        left -= (then - now) * bool(works)
        now = then
        if now > end_ns:
            return lost, readings, rows
        if now == in_service:
            first = card.popleft()
            if kernel < room:
                kernel += 1
            else:
                is_late = now - kernel_ns * shared > is_over
                lost["processor" if is_late else "kernel buffer"].append(first)
            in_service = now + kernel_ns if card else inf
        elif now == work_ends:
            user = 0
            readings[-1] = (*readings[-1][:2], now)
        elif now == arrival:
            if len(card) < slots:
                in_service = now + kernel_ns if not card else in_service
                card.append(number)
            else:
                lost["card"].append(number)
            number, last_sent, next_due = number + 1, now, next(due, inf)
        elif now == reading:
            taken = min(kernel, job.most) if kernel >= job.least else 0
            kernel, opened, is_over = (
                kernel - taken,
                now,
                (now // job.period_ns + 1) * job.period_ns,
            )
            left, wake, user = taken * job.packet_ns, is_over, taken
            readings.append((now, taken, None))
            if not left:
                user, readings[-1] = 0, (now, taken, now)
        else:  # all of this instant has happened
            since = now
            rows.append((now, number, len(card), kernel, user, *sums))
            sums = [0] * 5
