"""Addresses to which names may resolve, and those that must be written as such."""

from __future__ import annotations

import socket

import pytest

from datacollect.errors import TransferError
from datacollect.net.addresses import addresses_of, is_outside, origin_of

INSIDE = [
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "224.0.0.1",
    "239.255.255.255",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%lo",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.1.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
]
OUTSIDE = [
    "192.0.2.1",
    "10.0.0.1",
    "8.8.8.8",
    "2001:4860::1",
    "::ffff:8.8.8.8",
    "fd00::1",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("text", INSIDE)
def test_names_may_not_lead_there_but_addresses_do(monkeypatch, text):
    assert not is_outside(text)
    rows = [(0, 0, 0, "", (text, 7443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    with pytest.raises(TransferError, match="in this host or its own network"):
        addresses_of("s2.example", 7443)
    assert addresses_of(text, 7443)[0][1] == 7443


@pytest.mark.parametrize("text", OUTSIDE)
def test_others_are_allowed(text):
    assert is_outside(text)


def test_of_many_addresses_only_those_outside_are_tried(monkeypatch):
    found = ("127.0.0.1", "192.0.2.1", "::1", "2001:db8:1::2")
    rows = [(0, 0, 0, "", (text, 1)) for text in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    monkeypatch.setattr("datacollect.net.addresses.is_outside", lambda t: "1::2" in t or "192" in t)
    assert addresses_of("s2.example", 1) == [("192.0.2.1", 1), ("2001:db8:1::2", 1)]


def test_this_hosts_own_name_is_refused():
    with pytest.raises(TransferError, match="'localhost' resolves to"):
        addresses_of("localhost", 7443)


def test_a_name_that_leads_nowhere(monkeypatch):
    def fails(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(TransferError, match="cannot be resolved: Name or service not known"):
        addresses_of("s2.example", 7443)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("no address", "no address"),
    ],
)
def test_connections_are_counted_for_an_ipv4_address_or_a_64(address, origin):
    assert origin_of(address) == origin
