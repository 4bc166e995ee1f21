"""Packet pairs between agents over real sockets: what they tell, and to whom nothing is sent."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager

import pytest
from instances.measuring import OPERATOR, entry_of, measuring

from datacollect.measurement.asking.packet_pairs import PairsSettings
from datacollect.measurement.asking.pair_tests import measure_pair


def free_udp_port() -> int:
    with socket.socket(type=socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def pair(folder, sender=None, receiver=None):
    """S sends to D; keywords for their tables [measure]."""
    receiver = {"udp_port": free_udp_port(), **(receiver or {})}
    with (
        measuring(folder, "D", **receiver) as to,
        measuring(folder, "S", {"D": to.place}, **(sender or {})) as by,
    ):
        yield by, to


def measured(by, to, **settings):
    return measure_pair(entry_of(by), entry_of(to), OPERATOR, PairsSettings(**settings))


def test_x(tmp_path):
    with pair(tmp_path) as (by, to):
        row = measured(by, to)
        print(row)
        assert 0
