"""Variants of TCP after one loss of a source of constant rate, in ns-3, beside the report.

    python experiments/evlbi.py [--variants NewReno Htcp …] [--rate-mbit 51.2] [--table FILE.md]

The EXPReS "Protocols Performance Report" (2009, section 2.6) brings 512 Mbit/s over 95 ms by six
variants of TCP, and loses a packet. Here it is a tenth of the rate, and of the link: ns-3 does not
end with the windows of the whole. Times are compared as multiples of NewReno's, and of what the
report's own equations give for the rate.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datacollect.measurement.feed_models import bdp_bytes, deficit_bytes, regain_s
from datacollect.scenario.setting import network_of
from datacollect.simulation.network import Transport
from datacollect.simulation.ns3.network_text import scenario_text
from datacollect.simulation.ns3.worker import load_ns3
from datacollect.topologies import Node, Topology, Wire

HEADER = Path(__file__).with_suffix(".h")
BYTES_PER_MBIT = 125_000
RTT_S, MESSAGE_BYTES, SEGMENT_BYTES = 0.095, 4096, 1448
# As the report's 1 Gbit/s to its 512 Mbit/s.
LINK_RATIO = 1000 / 512
QUEUE_PACKETS = 1000
# The window begins as what the source needs, and a little; ns-3 lets it grow unused, and what has
# grown makes the loss a small one: so it comes soon.
FIRST_WINDOW, LOSE_S = 1.02, 1.5
LATE_S, OVER_S, STEP_S, LONGEST_S = 0.02, 3.0, 5.0, 200.0

# Seconds until all is timely again, and the buffer that held the rest, where the text has them.
REPORT: dict[str, tuple[float | None, float | None]] = {
    "NewReno": (820.0, 6.4e9),
    "Htcp": (14.0, 40e6),
    "HighSpeed": (None, None),
    "Bic": (None, None),
    "Cubic": (None, None),
    "Scalable": (None, None),
}


@dataclass(frozen=True)
class AfterLoss:
    """What one loss did.

    Attributes
    ----------
    window_ratio : float
        The window at the loss ÷ what the source needs.
    timely_after_s : float or None
        From the loss until the last late message is there; None: not within the time.
    worst_delay_s : float
    late_bytes : float
        Made, and not there in time, at most.
    """

    variant: str
    window_ratio: float
    timely_after_s: float | None
    worst_delay_s: float
    late_bytes: float


def judged(
    variant: str, rate: float, made_s: Any, there_s: Any, lost_s: float, window: float
) -> AfterLoss:
    """Return what a loss did, of when each message was made and there.

    >>> made_s = np.arange(10.0)
    >>> there_s = made_s + [0.1, 0.1, 0.1, 0.9, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    >>> found = judged("NewReno", 1e6, made_s, there_s, 3.05, 2e5)
    >>> round(found.timely_after_s, 9), round(found.worst_delay_s, 9), round(found.late_bytes)
    (1.45, 0.9, 800000)
    """
    delay_s = there_s - made_s
    after = there_s >= lost_s
    least_s = float(delay_s.min())
    late = np.flatnonzero(after & (delay_s > least_s + LATE_S))
    worst_s = float(delay_s[after].max())
    timely = None
    if not len(late):
        timely = 0.0
    elif there_s[-1] > there_s[late[-1]] + OVER_S:
        timely = float(there_s[late[-1]]) - lost_s
    return AfterLoss(
        variant, window / bdp_bytes(rate, RTT_S), timely, worst_s, (worst_s - least_s) * rate
    )


def text_of(variant: str, rate: float) -> str:
    """Return the scenario: two hosts and a cable."""
    wire = Wire("S", "D", rate * LINK_RATIO, RTT_S / 2, QUEUE_PACKETS)
    topology = Topology.from_wires([wire], [Node("S"), Node("D")])
    # Four round trips of the link: no buffer binds.
    room = round(4 * rate * LINK_RATIO * RTT_S)
    window = math.ceil(FIRST_WINDOW * bdp_bytes(rate, RTT_S) / SEGMENT_BYTES)
    transport = Transport(
        variant=variant,
        segment_bytes=SEGMENT_BYTES,
        buffer_bytes=room,
        initial_window_segments=window,
    )
    routes = topology.shortest_routes().next_wire
    network = network_of(topology, {"S": "S", "D": "D"}, routes, transport)
    text = scenario_text(
        network,
        {},
        None,
        seed=1,
        warm_up_s=0.0,
        time_limit_s=LONGEST_S,
        stall_s=LONGEST_S,
        relay_buffer_bytes=None,
    )
    # What is set last counts: slow start is over.
    head, rest = text.split("seed ", 1)
    threshold = window * SEGMENT_BYTES
    return f"{head}default ns3::TcpSocket::InitialSlowStartThreshold {threshold}\nseed {rest}"


def simulated(variant: str, rate: float) -> AfterLoss:
    """Simulate until all is timely again; needs a process of its own."""
    import cppyy  # type: ignore[import-not-found, unused-ignore]

    load_ns3()
    cppyy.include(str(HEADER))
    each_ns = round(MESSAGE_BYTES / rate * 1e9)
    feed = cppyy.gbl.evlbi.Feed(text_of(variant, rate), MESSAGE_BYTES, each_ns, LOSE_S)
    now_s = LOSE_S
    while True:
        now_s += STEP_S
        feed.RunUntil(now_s)
        there_s = np.array(feed.There())
        made_s = feed.MadeFrom() + each_ns * 1e-9 * np.arange(1, len(there_s) + 1)
        found = judged(variant, rate, made_s, there_s, feed.Lost(), feed.WindowAtLoss())
        if found.timely_after_s is not None or now_s >= LONGEST_S:
            feed.__destruct__()
            return found


def in_a_process(variant: str, rate_mbit: float) -> AfterLoss:
    """Simulate in a process of its own."""
    words = [sys.executable, __file__, "--one", variant, "--rate-mbit", str(rate_mbit)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{variant}: {done.stderr}")
    return AfterLoss(**json.loads(done.stdout))


HEAD = (
    "| variant | window before ÷ needed | timely after, s | worst delay, s | late, MB "
    "| times faster than NewReno | report: s, MB | report: times faster |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|\n"
)


def table(found: list[AfterLoss]) -> str:
    """Return a table in Markdown."""
    times = {one.variant: one.timely_after_s for one in found}
    reno_s, lines = times.get("NewReno"), []
    for one in found:
        after_s = one.timely_after_s
        took = "not yet" if after_s is None else f"{after_s:.2f}"
        faster = "–" if not (reno_s and after_s) else f"{reno_s / after_s:.1f}"
        said_s, said_bytes = REPORT[one.variant]
        said = "–" if said_s is None or said_bytes is None else f"{said_s:g}, {said_bytes / 1e6:g}"
        theirs = "14 to 255"
        if said_s is not None:
            theirs = f"{820 / said_s:.0f}"
        lines.append(
            f"| {one.variant} | {one.window_ratio:.2f} | {took} | {one.worst_delay_s:.2f} | "
            f"{one.late_bytes / 1e6:.2f} | {faster} | {said} | {theirs} |\n"
        )
    return HEAD + "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--variants", nargs="+", choices=REPORT, default=list(REPORT))
    parser.add_argument("--rate-mbit", type=float, default=51.2)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--table", type=Path, help="write the table there, too")
    parser.add_argument("--one", choices=REPORT, help="this one, in this process, as JSON")
    asked = parser.parse_args()
    rate = asked.rate_mbit * BYTES_PER_MBIT
    if asked.one:
        print(json.dumps(asdict(simulated(asked.one, rate))))
        return
    with ThreadPoolExecutor(asked.at_once) as pool:
        found = list(pool.map(lambda one: in_a_process(one, asked.rate_mbit), asked.variants))
    text = table(found)
    print(text, end="")
    model_s = regain_s(rate, RTT_S, link_ratio=LINK_RATIO, delayed_acks=True)
    late_mb = deficit_bytes(rate, RTT_S, delayed_acks=True) / 1e6
    print(f"equations, NewReno: timely after {model_s:.1f} s, {late_mb:.1f} MB late")
    assert math.isfinite(model_s)
    if asked.table:
        asked.table.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
