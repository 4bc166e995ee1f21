"""The core paper's base scenario: what a run's name need not say, because it is so here.

``experiments/base.toml`` with every default written out; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TRANSIT_STUB_BYTES_PER_S, _PEERING_BYTES_PER_S, _TRANSIT_BYTES_PER_S = 312_500, 625_000, 1_250_000


def _wire(rate_bytes_per_s: float, delay_s: float, queue_packets: int = 50) -> dict[str, Any]:
    return {
        "rate_bytes_per_s": rate_bytes_per_s,
        "delay_s": delay_s,
        "queue_packets": queue_packets,
    }


BASE: Mapping[str, Mapping[str, Any]] = {
    "topology": {
        "kind": "paper-152",
        "seed": 1,
        "peering": _wire(_PEERING_BYTES_PER_S, 0.02),
        "transit": _wire(_TRANSIT_BYTES_PER_S, 0.01),
        "transit_stub_wires": _wire(_TRANSIT_STUB_BYTES_PER_S, 0.005),
        "stub": _wire(_TRANSIT_STUB_BYTES_PER_S, 0.001),
    },
    "hosts": {
        "access": _wire(1_250_000, 0.001),
        "destination": {
            "name": "D",
            "domain": "A",
            "among": "transit",
            "access": _wire(12_500_000, 0.001, 100),
        },
        "sources": [
            {"count": 2, "domain": "A", "among": "transit"},
            {"count": 5, "domain": "B", "among": "transit"},
        ],
        "relays": [],
    },
    "backlog": {
        "least_bytes": 25_000_000,
        "most_bytes": 75_000_000,
        "total_bytes": 350_000_000,
    },
    "background": {
        "flows": 60,
        "from": "B",
        "to": "A",
        "among": "stub",
        "over": ["B0-A0", "B1-A1"],
        "split": [1, 1],
        "tcp_probability": 0.75,
        "udp_share": 0.05,
        "least_mean_s": 0.2,
        "most_mean_s": 3.0,
        "latest_start_s": 2.0,
        "pairs": [],
    },
    "transport": {
        "variant": "NewReno",
        "segment_bytes": 1448,
        "buffer_bytes": 1_048_576,
        "initial_window_segments": 10,
        "delayed_ack_segments": 2,
        "syn_timeout_s": 1.0,
        "syn_retries": 20,
        "data_retries": 20,
        "header_bytes": 54,
    },
    "routing": {"kind": "shortest", "weight": "hops"},
    "estimates": {
        "kind": "measured",
        "probe_bytes": 5_000_000,
        "repeats": 3,
        "give_up_s": 1000.0,
        "how": "mean",
        "a": 0.9,
        "quantile": 0.25,
        "know_access": False,
        "perturbations": [],
    },
    "method": {
        "name": "coordinated",
        "solver": "auto",
        "timing": "asap",
        "lanes": 1,
        "shared_connections": False,
        "open_ahead_s": 1.0,
        "pace": False,
        "streams": 1,
        "streams_shared": "by-data",
        "stall_patience_s": 0.0,
        "retry_s": 1.0,
        "most_retries": 10,
    },
    "run": {
        "seed": 1,
        "time_limit_s": 100_000.0,
        "stall_s": 30.0,
        "warm_up_s": 20.0,
        "udp_on_off": False,
    },
}
