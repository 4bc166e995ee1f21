"""The columns of a sweep's results: what they are called, and what is in them."""

from __future__ import annotations

TEXT, WHOLE, REAL, FLAG = "str", "int64", "float64", "bool"

# Throughput of background traffic: of which kind, and when, seen from the collection.
BACKGROUND = {
    f"{kind}_{phase}_bytes_per_s": (kind, phase)
    for kind in ("tcp", "udp")
    for phase in ("before", "during", "after")
}

# Columns of the results besides the axes', and what is in them. Real where a number can be missing.
COLUMNS = {
    "key": TEXT,
    "seed": WHOLE,
    "engine": TEXT,
    "method": TEXT,
    "complete": FLAG,
    "makespan_s": REAL,
    "predicted_s": REAL,
    "lower_bound_s": REAL,
    "reference_s": REAL,
    "predicted_low_s": REAL,
    "predicted_high_s": REAL,
    "connections": WHOLE,
    "collected_bytes": WHOLE,
    "storage_mean": REAL,
    "storage_max": REAL,
    "storage_bytes": REAL,
    "peering_bytes": TEXT,
    "planned_peering_bytes": TEXT,
    **dict.fromkeys(BACKGROUND, REAL),
    "tcp_loss": REAL,
    "tcp_lost_bytes": REAL,
    "dropped_packets": REAL,
    "retransmissions": REAL,
    "stalls": REAL,
    "busiest_wire": TEXT,
    "events": WHOLE,
    "plan_time_s": REAL,
    "cpu_s": REAL,
    "probes_cpu_s": REAL,
    "finished_at": TEXT,
}

# Columns that a precision can be asked of, and that the report can draw.
MEASURES = (
    "makespan_s",
    "predicted_s",
    "storage_mean",
    "storage_max",
    "storage_bytes",
    *BACKGROUND,
    "tcp_loss",
    "tcp_lost_bytes",
)

# Columns that differ when the same run is made again.
TIMES = ("plan_time_s", "cpu_s", "probes_cpu_s", "finished_at")
