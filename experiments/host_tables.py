"""Tables of Bresnahan, Raicu and Margaryan (2004) beside ours: by arithmetic and by simulation.

    python experiments/host_tables.py

Writes docs/tables/host_*.md, which docs/host_tables.md includes. Takes a few seconds; every run
writes the same.
"""

from __future__ import annotations

import argparse
from math import log
from typing import TYPE_CHECKING

from shown_tables import show
from timed_calls import markdown

from datacollect.machine.parts import GIB, Cost, Parts, Rate
from datacollect.machine.profile import HostProfile
from datacollect.simulation.hosts.run import run_host
from datacollect.simulation.hosts.setting import HostSimulation
from datacollect.simulation.hosts.tables import (
    GROWTH,
    HEADER_BYTES,
    MACHINES,
    MEBI,
    PAYLOAD_BYTES,
    TCP,
    UDP,
    VIDEOS,
    Machine,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROTOCOLS = (TCP, UDP)
# As printed: overhead (Table 1); use of memory at the measured rate and at the theory's (Table 8).
OVERHEAD_PERCENT = {TCP: 3.70, UDP: 2.85}
MEMORY_PERCENT = {
    "e55": {TCP: (33.12, 40.52), UDP: (37.82, 50.87)},
    "stealth": {TCP: (34.35, 50.40), UDP: (35.77, 63.06)},
    "diablo": {TCP: (63.52, 89.09), UDP: (63.52, 115.35)},
}
# Table 7: MB/s of copies, cycles and nanoseconds of latency, of L1, L2 and main memory; the use of
# what the memory's clock promises, in percent (section 4.1.2), and that in MB/s (Table 6).
MEMORY = {
    "e55": ((1167, 521, 117), (3, 11, 89), (6.4, 23.6, 189.6), 22, 533),
    "stealth": ((3936, 1286, 246), (3, 20, 223), (2.3, 15.4, 171.1), 23, 1064),
    "diablo": ((6452, 2207, 429), (3, 21, 276), (1.4, 9.7, 127.4), 16, 2654),
}
# How far the paper's simulator was from what it measured (section 4.3), without a sign.
PAPERS_ERROR_PERCENT = {"e55": 6, "stealth": 18, "diablo": 20}
PACKETS = (64, 256, 512, 1024, 1472)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for name, table in TABLES.items():
        show(f"host_{name}", table())


def frames() -> str:
    """Table 1."""
    rows = [
        (
            protocol.upper(),
            str(PAYLOAD_BYTES[protocol]),
            str(HEADER_BYTES[protocol]),
            str(PAYLOAD_BYTES[protocol] + HEADER_BYTES[protocol]),
            f"{OVERHEAD_PERCENT[protocol]:.2f} %",
            f"{100 * HEADER_BYTES[protocol] / PAYLOAD_BYTES[protocol]:.2f} %",
            f"{100 * HEADER_BYTES[protocol] / 1514:.2f} %",
        )
        for protocol in PROTOCOLS
    ]
    head = ("", "payload", "headers", "frame", "overhead", "headers ÷ payload", "headers ÷ frame")
    return markdown(head, rows)


def memory() -> str:
    """Table 7, and what Figure 12 says of it."""
    rows = []
    for name, (copies, cycles, ns, percent, promised) in MEMORY.items():
        mhz = MACHINES[name].clock_mhz
        rows.append(
            (
                name,
                " / ".join(map(str, copies)),
                " / ".join(map(str, cycles)),
                " / ".join(map(str, ns)),
                " / ".join(f"{1000 * each / mhz:.1f}" for each in cycles),
                f"{percent} %",
                f"{100 * copies[2] / promised:.1f} %",
            )
        )
    head = (
        *("machine", "copies, MB/s: L1, L2, main", "latency, cycles", "latency, ns"),
        *("cycles ÷ MHz, ns", "of what is promised", "copies ÷ promised"),
    )
    return markdown(head, rows)


def each_protocol() -> Iterator[tuple[str, Machine, str]]:
    for name, machine in MACHINES.items():
        for protocol in PROTOCOLS:
            yield name, machine, protocol


def protocols() -> str:
    """Table 8."""
    rows = []
    for name, machine, protocol in each_protocol():
        cycles = machine.clock_mhz / (machine.packets_per_s[protocol] * HEADER_BYTES[protocol])
        limit = machine.limit_mibit_per_s(protocol)
        rows.append(
            (
                f"{name}, {protocol.upper()}",
                str(machine.packets_per_s[protocol]),
                f"{machine.cycles_per_header_byte[protocol]}",
                f"{cycles * MEBI:.1f}",
                f"{cycles * 1e6:.1f}",
                f"{machine.theory[protocol]}",
                f"{limit:.1f}",
                f"{limit * MEBI / 1e6:.1f}",
            )
        )
    head = (
        *("", "packets/s", "cycles per byte of headers", "ours, 2^20", "ours, 10^6"),
        *("theory, Mb/s", "ours, 2^20", "ours, 10^6"),
    )
    return markdown(head, rows)


def memory_use() -> str:
    """Use of memory in Table 8: rate divided by the copy's rate."""
    rows = []
    for name, machine, protocol in each_protocol():
        copy = 8 * machine.copy_mib_per_s
        printed = MEMORY_PERCENT[name][protocol]
        rates = (machine.measured[protocol], machine.limit_mibit_per_s(protocol))
        rows.append(
            (
                f"{name}, {protocol.upper()}",
                f"{machine.measured[protocol]}",
                f"{printed[0]:.2f} %",
                f"{100 * rates[0] / copy:.2f} %",
                f"{printed[1]:.2f} %",
                f"{100 * rates[1] / copy:.2f} %",
            )
        )
    head = ("", "measured, Mb/s", "of memory", "ours", "of memory, at the theory's rate", "ours")
    return markdown(head, rows)


def videos() -> str:
    """Tables 9 and 10: rates, compression, and three ways to the bytes of a video."""
    rows = []
    for name, video in VIDEOS.items():
        raw = video.raw_bits_per_s
        by_rate = video.mbit_per_s * video.length_s / 8
        by_frames = sum(video.frames[kind] * video.frame_kb[kind] for kind in "IPB") / 1000
        machine = MACHINES["e55"]
        decoded = machine.decode_s[name] * machine.clock_mhz / machine.cycles_per_byte[name]
        part = video.mbit_per_s * MEBI / raw
        rows.append(
            (
                name,
                f"{raw / 1e6:.1f}",
                f"{video.compression_percent:.2f} %, {video.compression_ratio}:1",
                f"{100 * video.mbit_per_s * 1e6 / raw:.2f} %, {raw / video.mbit_per_s / 1e6:.0f}:1",
                f"{100 * part:.2f} %, {1 / part:.0f}:1",
                f"{by_rate:.2f}",
                f"{by_frames:.2f}",
                f"{decoded:.2f}",
            )
        )
    head = (
        *("", "raw, Mbit/s", "compression", "ours, 10^6", "ours, 2^20"),
        *("rate × length, MB", "frames × sizes, MB", "decoded bytes, MB"),
    )
    return markdown(head, rows)


def decoding() -> str:
    """Table 10: seconds of decoding, cycles per byte, bytes that follow."""
    rows = []
    for name in VIDEOS:
        for machine_name, machine in MACHINES.items():
            hz, seconds = machine.clock_mhz * 1e6, machine.decode_s[name]
            n_bytes = seconds * hz / machine.cycles_per_byte[name]
            rows.append(
                (
                    f"{name}, {machine_name}",
                    f"{machine.cycles_per_byte[name]}",
                    f"{seconds:.4f}",
                    f"{n_bytes / 1e6:.2f}",
                    f"{n_bytes / MEBI * 1.048576**2:.2f}",
                    f"{8 * n_bytes / seconds / 1e6:.1f}",
                )
            )
    head = (
        *("", "cycles per byte", "seconds", "bytes, MB, with 10^6"),
        *("bytes, MB, with MHz of 2^20", "decoded at most, Mbit/s"),
    )
    return markdown(head, rows)


def loads() -> str:
    """Loads of the four videos: the paper's seconds over the length, and the simulator's."""
    rows = []
    for name, video in VIDEOS.items():
        for machine_name, machine in MACHINES.items():
            run = run_host(
                HostSimulation.from_dict(
                    {
                        "format": "datacollect-host-simulation/1",
                        "machine": machine_name,
                        "time_s": min(60.0, video.length_s),
                        "kernel": {"buffer_bytes": "1 MB"},
                        "stream": {"video": name},
                    }
                )
            )
            rate = run.host.packet_bytes * run.total("due_packets") * 8 / run.host.end_ns * 1e3
            rows.append(
                (
                    f"{name}, {machine_name}",
                    f"{100 * machine.decode_s[name] / video.length_s:.2f} %",
                    f"{100 * run.mean('job_mean_load'):.2f} %",
                    f"{100 * run.mean('kernel_mean_load'):.2f} %",
                    f"{video.mbit_per_s}",
                    f"{rate:.2f}",
                    str(sum(run.lost.values())),
                )
            )
    head = (
        *("", "decoding ÷ length", "job, simulated", "kernel, simulated"),
        *("rate, Mb/s", "sent, Mbit/s", "lost"),
    )
    return markdown(head, rows)


def lossless_mibit_per_s(name: str, copies: int) -> float:
    """Return the most that the simulator takes in without a loss, by halving intervals."""
    low, high = 1.0, 2 * MACHINES[name].limit_mibit_per_s(UDP)
    while high - low > 0.05:
        rate = (low + high) / 2
        host = HostSimulation.from_dict(
            {
                "format": "datacollect-host-simulation/1",
                "machine": name,
                "time_s": 0.5,
                "nic": {"rate_bytes_per_s": "100 Gbit/s"},
                "kernel": {"buffer_bytes": "256 KiB"},
                "memory": {"copies": copies},
                "stream": {"rate_bytes_per_s": rate * MEBI / 8},
                "job": {"period_s": "0.1 ms"},
            }
        )
        if sum(run_host(host).lost.values()):
            high = rate
        else:
            low = rate
    return low


def validation() -> str:
    """Figure 19."""
    rows = []
    for name, machine in MACHINES.items():
        measured = machine.measured[UDP]
        theory, copy = machine.limit_mibit_per_s(UDP), 8 * machine.copy_mib_per_s

        def beside(rate: float, measured: int = measured) -> str:
            return f"{rate:.0f} ({100 * (rate / measured - 1):+.0f} %)"

        rows.append(
            (
                name,
                str(measured),
                f"± {PAPERS_ERROR_PERCENT[name]} %",
                beside(1 / (1 / theory + 1 / copy)),
                beside(lossless_mibit_per_s(name, 1)),
                beside(lossless_mibit_per_s(name, 2)),
                beside(min(theory, copy / 2)),
                f"{theory:.0f}",
                str(copy),
            )
        )
    head = (
        *("", "measured", "paper's simulator", "1/(1/theory + 1/copy)", "simulated, 1 copy"),
        *("simulated, 2 copies", "min(theory, copy/2)", "theory", "copy"),
    )
    return markdown(head, rows)


def profile_of(name: str, machine: Machine, copies: int) -> HostProfile:
    """Return a profile with the paper's numbers: packets per second and copies."""
    copy = float(machine.copy_bytes_per_s)
    per_gib = copies * GIB / copy
    packet_us = 1e6 / machine.packets_per_s[UDP]
    cost = Cost(UDP, "receives", "loopback", *(3 * (per_gib,)), us_per_unit=packet_us)
    rates = (Rate("memory", copy, copy, copy),)
    return HostProfile(name, Parts(1, (cost,), rates), f"{machine.year}-07-01T00:00:00Z")


def packet_sizes() -> str:
    """Figures 13 and 14, by packet size, predicted from a profile."""
    rows = []
    for name, machine in MACHINES.items():
        profile = profile_of(name, machine, copies=1)
        found = [profile.receives(packet_bytes=size) for size in PACKETS]
        rows.append((name, *(f"{each.bytes_per_s * 8 / MEBI:.0f}, {each.binds}" for each in found)))
    return markdown(("predicted, Mb/s", *(f"{size} B" for size in PACKETS)), rows)


def card_loads() -> str:
    """Figures 15 and 16: loads where a card's rate comes in at 95 %, predicted and simulated."""
    rows = []
    for name, machine in MACHINES.items():
        limit = profile_of(name, machine, copies=1).receives(packet_bytes=1472).limits
        processor = next(each.bytes_per_s for each in limit if each.part == "processor")
        cells = []
        for mbit_per_s in (10, 100, 1000):
            rate = 0.95 * mbit_per_s * 1e6 / 8
            load = rate / processor
            if load > 1:
                cells.append(f"{100 * load:.0f} %, too much")
                continue
            run = run_host(
                HostSimulation.from_dict(
                    {
                        "format": "datacollect-host-simulation/1",
                        "machine": name,
                        "time_s": 2.0,
                        "nic": {"rate_bytes_per_s": mbit_per_s * 1e6 / 8},
                        "kernel": {"buffer_bytes": "256 KiB"},
                        "memory": {"copies": 1},
                        "stream": {"rate_bytes_per_s": rate},
                        "job": {"period_s": "1 ms"},
                    }
                )
            )
            lost = ", loses" if sum(run.lost.values()) else ""
            cells.append(f"{100 * load:.1f} %, {100 * run.mean('mean_load'):.1f} %{lost}")
        rows.append((name, *cells))
    head = ("load, predicted and simulated", "10 Mbit/s", "100 Mbit/s", "1 Gbit/s")
    return markdown(head, rows)


def video_rates() -> str:
    """Figure 18: what each kind of frame of video 1 needs while it is sent."""
    video = VIDEOS["video1"]
    rows = [
        (
            kind,
            str(video.frame_kb[kind]),
            f"{video.frame_kb[kind] * 8 * video.frames_per_s / 1000:.1f}",
            f"{video.frames[kind]}",
            f"{video.frames[kind] / video.frames['I']:.2f}",
        )
        for kind in "IPB"
    ]
    return markdown(("frame", "kB", "Mbit/s while it is sent", "frames", "frames for each I"), rows)


def growth() -> str:
    """Figures 3, 4 and 20: when one part overtakes another, from the numbers of 2003."""
    machine = MACHINES["diablo"]
    processor, copy = machine.limit_mibit_per_s(UDP), 8.0 * machine.copy_mib_per_s
    rows = [
        ("network of 1 Gbit/s overtakes the processor", "1995", crossing(1e9 / MEBI, processor)),
        ("network of 10 Gbit/s overtakes the processor", "1995", crossing(1e10 / MEBI, processor)),
        ("processor overtakes memory, one copy", "2007", overtaking(processor, copy)),
        ("processor overtakes memory, two copies", "2007", overtaking(processor, copy / 2)),
    ]
    return markdown(("", "the paper", "from its numbers of 2003"), rows)


def crossing(network: float, processor: float) -> str:
    """Return the year in which the network is as fast as the processor."""
    return year(network, processor, GROWTH["network"], GROWTH["processor"])


def overtaking(processor: float, memory: float) -> str:
    """Return the year in which the processor is as fast as memory."""
    return year(processor, memory, GROWTH["processor"], GROWTH["memory bandwidth"])


def year(faster: float, slower: float, growth: float, other: float) -> str:
    """Return when the one that grows by more catches up with the other; rates are of 2003."""
    return f"{2003 + log(slower / faster) / log((1 + growth) / (1 + other)):.1f}"


def grown() -> str:
    """Growth a year: of the three machines beside the paper's."""
    first, last = MACHINES["e55"], MACHINES["diablo"]
    years = last.year - first.year

    def a_year(after: float, before: float) -> str:
        return f"{100 * ((after / before) ** (1 / years) - 1):.0f} %"

    seen: Sequence[tuple[str, str]] = (
        ("network", "–"),
        ("processor", a_year(last.packets_per_s[UDP], first.packets_per_s[UDP])),
        ("memory bandwidth", a_year(last.copy_mib_per_s, first.copy_mib_per_s)),
        ("memory latency", a_year(189.6, 127.4)),
    )
    rows = [(part, f"{100 * GROWTH[part]:.0f} %", found) for part, found in seen]
    return markdown(("growth a year", "the paper", "e55 (1999) to diablo (2003)"), rows)


TABLES = {
    "frames": frames,
    "memory": memory,
    "protocols": protocols,
    "memory_use": memory_use,
    "videos": videos,
    "decoding": decoding,
    "loads": loads,
    "validation": validation,
    "packet_sizes": packet_sizes,
    "card_loads": card_loads,
    "video_rates": video_rates,
    "growth": growth,
    "grown": grown,
}

if __name__ == "__main__":
    main()
