"""UDP between hosts that know each other: ports, places, greetings."""

from __future__ import annotations

import socket

import pytest

from datacollect.errors import RefusedError, TransferError
from datacollect.net import udp
from datacollect.net.udp import bound_udp, connected_udp, greeting_number, none_has_arrived


def test_a_port_that_is_taken_is_waited_for_and_then_refused(monkeypatch):
    monkeypatch.setattr(udp, "PORT_FREE_S", 0.0)
    with bound_udp(("127.0.0.1", 0), "feed", lambda _: None) as first:
        port = first.getsockname()[1]
        with pytest.raises(
            RefusedError, match=rf"UDP port {port} .* udp_port into \[feed\]"
        ) as got:
            bound_udp(("127.0.0.1", port), "feed", lambda _: None)
        assert got.value.status == 503


def test_what_prepares_a_socket_may_fail_and_leaves_none_open():
    opened: list[socket.socket] = []

    def fail(made: socket.socket) -> None:
        opened.append(made)
        raise OSError(1, "Operation not permitted")

    with pytest.raises(RefusedError, match="Operation not permitted"):
        bound_udp(("127.0.0.1", 0), "feed", fail)
    assert [made.fileno() for made in opened] == [-1]


def test_packets_go_to_one_place():
    with (
        bound_udp(("127.0.0.1", 0), "feed", lambda _: None) as there,
        connected_udp(there.getsockname(), "D") as here,
    ):
        here.send(b"x" * 1000)
        assert there.recv(2000) == b"x" * 1000
    with pytest.raises(TransferError, match="D: UDP packets cannot be sent to this agent"):
        connected_udp(("255.255.255.255", 9), "D")


def test_greetings_are_seldom_the_same():
    numbers = {greeting_number(2**62) for _ in range(100)}
    assert len(numbers) == 100
    assert all(2**62 <= number < 2**63 for number in numbers)
    assert "D: none of 3 UDP packets to port 9 has arrived (no route)" in str(
        none_has_arrived("D", 3, 9, "no route")
    )
