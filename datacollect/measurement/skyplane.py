"""Skyplane's grids of cloud regions.

Tables (Jain et al., Skyplane, NSDI 2023) with ``src``, ``dst`` and ``received_bps``, or
``src_region``, ``dst_region`` and ``throughput_recieved`` (spelt so) or ``throughput_received``, in
bits per second; no times. Rows say in which network tier, and between which machines, they were
measured, and whether the test succeeded.
"""

from __future__ import annotations

from datacollect.measurement.readers import Reader, TableKind

_COUNTS = {"iperf3_connections": "streams"}

SKYPLANE = Reader(
    name="Skyplane",
    text="Skyplane's CSV",
    tables=(
        TableKind(
            "Skyplane",
            {"src": "from", "dst": "to", "received_bps": "bandwidth_bit_per_s", **_COUNTS},
            timeless=True,
            unlike=("src_instance", "dst_instance", "iperf3_connections"),
            optional=tuple(_COUNTS),
        ),
        *(
            TableKind(
                "Skyplane",
                {
                    "src_region": "from",
                    "dst_region": "to",
                    spelling: "bandwidth_bit_per_s",
                    **_COUNTS,
                },
                timeless=True,
                unlike=(
                    *("src_tier", "dst_tier", "src_instance_class", "dst_instance_class"),
                    "iperf3_connections",
                ),
                optional=tuple(_COUNTS),
                success="success",
            )
            for spelling in ("throughput_recieved", "throughput_received")
        ),
    ),
)
