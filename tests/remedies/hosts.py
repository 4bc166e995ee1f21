"""Remedies about simulated hosts."""

from __future__ import annotations

from typing import Any

from instances.simulated_hosts import simulated_host
from remedies.trying import Example

VIDEO = {"frames_per_s": 25, "i_frame_bytes": 9000, "ratio": [1, 0, 0]}
PICTURES = {"width": 100, "height": 100, "frames_per_s": 25}


def host(**tables: Any):
    return lambda: simulated_host(**tables)


def job(**values: Any):
    return host(job={"period_s": 0.01} | values)


def kernel(**values: Any):
    return host(kernel={"packet_s": 1e-6} | values)


EXAMPLES = [
    Example("time_s must be at most {}, got {}; simulate", host(time_s=1e7), host(time_s=1.0)),
    Example("{}.{} is missing; add it, {}", host(memory={"copies": 1}), host(memory={"copies": 0})),
    Example(
        "kernel.packet_s and kernel.cycles_per_header_byte cannot be combined",
        kernel(cycles_per_header_byte=9),
        kernel(),
    ),
    Example(
        "job.packet_s and job.cycles_per_byte cannot be combined",
        job(packet_s=1e-6, cycles_per_byte=3),
        job(packet_s=1e-6),
    ),
    Example(
        "{}.buffer_bytes must be at least the {} of one packet, got {}; make it larger",
        kernel(buffer_bytes=1),
        kernel(buffer_bytes=1472),
    ),
    Example(
        "{} must be at least the {} of one packet, got {}; make it larger",
        job(most_bytes=1471),
        host(protocol={"packet_bytes": 1471}, job={"period_s": 1, "most_bytes": 1471}),
    ),
    Example(
        "the job never reads: it waits for job.least_bytes",
        job(least_bytes=70_000),
        host(
            kernel={"packet_s": 1e-6, "buffer_bytes": 80_000},
            job={"period_s": 0.01, "least_bytes": 70_000},
        ),
    ),
    Example(
        "job.period_s: {} readings are more than {}, the most of one simulation",
        host(job={"period_s": 1e-9}, time_s=5),
        host(job={"period_s": 1e-9}, time_s=1),
    ),
    Example(
        "stream must have either rate_bytes_per_s, or width",
        host(stream=PICTURES | {"bits_per_pixel": 8, "rate_bytes_per_s": 1e6}),
        host(stream=PICTURES | {"bits_per_pixel": 8}),
    ),
    Example(
        "stream.ratio must begin with 1 or more I frames",
        host(stream=VIDEO | {"ratio": [0, 4, 10]}),
        host(stream=VIDEO | {"p_frame_bytes": 1, "b_frame_bytes": 1, "ratio": [1, 4, 10]}),
    ),
    Example(
        "{}: {} is a packet each {} ns, more than the card's rate carries",
        host(stream={"rate_bytes_per_s": "200 Mbit/s"}),
        host(stream={"rate_bytes_per_s": "200 Mbit/s"}, nic={"rate_bytes_per_s": "1 Gbit/s"}),
    ),
    Example(
        "time_s: {} frames are more than {}, the most of one simulation",
        host(stream=VIDEO, time_s=100_000),
        host(stream=VIDEO, time_s=1),
    ),
]
