"""A wire with a queue, pairs of packets and others' packets: when the pairs arrive, exactly."""

from __future__ import annotations

import numpy as np

PACKET_BYTES = 1500


def arrival_gaps(capacity, load, sent_gap_s, seed, apart_s=0.02):
    """Return the gaps with which pairs leave a wire that others use at random (Poisson).

    Packet k leaves at max over j <= k of (its arrival + all work from j to k): Lindley, unrolled.
    """
    random = np.random.default_rng(seed)
    n = len(sent_gap_s)
    first = np.cumsum(random.exponential(apart_s, n) + 4 * PACKET_BYTES / capacity)
    end = first[-1] + 1
    n_others = random.poisson(load * capacity * end / PACKET_BYTES)
    at = np.concatenate([first, first + sent_gap_s, random.uniform(0, end, n_others)])
    order = np.argsort(at, kind="stable")
    work = np.cumsum(np.full(len(at), PACKET_BYTES / capacity))
    leaves = np.empty(len(at))
    leaves[order] = work + np.maximum.accumulate(at[order] - work + PACKET_BYTES / capacity)
    return leaves[n : 2 * n] - leaves[:n]
