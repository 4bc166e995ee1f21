"""Whom requests are counted for, and where servers listen."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from datacollect.bistro.http.config import Listening
from datacollect.bistro.http.web import address_of, bound_socket
from datacollect.errors import ProblemError

PROXIES = tuple(ipaddress.ip_network(text) for text in ("10.0.0.0/8", "2001:db8::7"))


class Headers(dict):
    def getall(self, name, default):
        return self.get(name, default)


class Request:
    def __init__(self, remote: str | None, *forwarded: str) -> None:
        self.remote = remote
        self.headers = Headers({"X-Forwarded-For": list(forwarded)} if forwarded else {})


@pytest.mark.parametrize(
    ("remote", "forwarded", "behind", "address"),
    [
        ("192.0.2.1", (), (), "192.0.2.1"),
        ("192.0.2.1", ("198.51.100.1",), (), "192.0.2.1"),
        ("192.0.2.1", ("198.51.100.1",), PROXIES, "192.0.2.1"),
        ("10.0.0.1", (), PROXIES, "10.0.0.1"),
        ("10.0.0.1", ("198.51.100.1",), PROXIES, "198.51.100.1"),
        ("::ffff:10.0.0.1", ("198.51.100.1",), PROXIES, "198.51.100.1"),
        ("2001:db8::7", ("2001:db8:1::1",), PROXIES, "2001:db8:1::/64"),
        # Some write the port.
        ("10.0.0.1", ("198.51.100.1:4711",), PROXIES, "198.51.100.1"),
        ("10.0.0.1", ("198.51.100.1, 10.0.0.2:80",), PROXIES, "198.51.100.1"),
        ("10.0.0.1", ("[2001:db8:1::1]:4711",), PROXIES, "2001:db8:1::/64"),
        ("10.0.0.1", ("[2001:db8:1::1]",), PROXIES, "2001:db8:1::/64"),
        # Before the last that is no proxy anybody could have written anything.
        ("10.0.0.1", ("203.0.113.9, 198.51.100.1",), PROXIES, "198.51.100.1"),
        ("10.0.0.1", ("203.0.113.9, 198.51.100.1, 10.0.0.2",), PROXIES, "198.51.100.1"),
        ("10.0.0.1", ("203.0.113.9", "198.51.100.1"), PROXIES, "198.51.100.1"),
        ("10.0.0.1", ("noise",), PROXIES, "noise"),
        ("10.0.0.1", ("",), PROXIES, "10.0.0.1"),
        (None, ("198.51.100.1",), PROXIES, ""),
    ],
)
def test_forwarded_address_counts_only_behind_known_proxies(remote, forwarded, behind, address):
    assert address_of(Request(remote, *forwarded), behind) == address


def test_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ProblemError, match=f"listen: 127.0.0.1:{port}: Address already in use"):
            bound_socket(Listening(("127.0.0.1", port), None))
