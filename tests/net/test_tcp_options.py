"""Options of TCP connections that are not seen in what passes."""

from __future__ import annotations

import socket

from datacollect.net.hop_ends import hop_end
from datacollect.net.tcp_options import loopback_pair


def test_a_pair_over_loopback_does_not_pace_whatever_the_kernel_does():
    one, other = loopback_pair()
    known = "reno" if hasattr(socket, "TCP_CONGESTION") else ""
    with one, other:
        assert hop_end(one).congestion == hop_end(other).congestion == known
