"""Addresses: where an agent may connect to, and from whom connections come."""

from __future__ import annotations

import ipaddress
import socket

from datacollect.errors import TransferError
from datacollect.files.kinds import shown


def addresses_of(host: str, port: int) -> list[tuple[str, int]]:
    """Return the addresses to try, in order; they are connected to as they are returned.

    An address counts as written: whoever writes 127.0.0.1 means it. What a name leads to, others
    decide: it is refused where that is this host itself, a neighbour's link-local address or many
    at once. This may wait for the name service.

    Raises
    ------
    TransferError
        The name leads nowhere, or only where it must not.

    Examples
    --------
    >>> addresses_of("127.0.0.1", 7443)
    [('127.0.0.1', 7443)]
    """
    try:
        return [(str(ipaddress.ip_address(host)), port)]
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TransferError(f"the name {shown(host)} cannot be resolved: {reason}") from None
    texts = dict.fromkeys(str(row[4][0]) for row in found)
    allowed = [(text, port) for text in texts if is_outside(text)]
    if not allowed:
        raise TransferError(
            f"the name {shown(host)} resolves to {', '.join(texts)}, in this host or its own "
            "network; write the address itself if it is meant"
        )
    return allowed


def is_outside(text: str) -> bool:
    """Return whether an address is neither this host, nor link-local, multicast or none at all.

    >>> is_outside("192.0.2.1"), is_outside("::ffff:127.0.0.1"), is_outside("fe80::1%eth0")
    (True, False, False)
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        # IPv4 in IPv6's clothes: mapped, 6to4, Teredo's client, NAT64.
        inner = [address.ipv4_mapped, address.sixtofour]
        inner += [address.teredo[1]] if address.teredo else []
        if address in ipaddress.ip_network("64:ff9b::/96"):
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if not all(is_outside(str(one)) for one in inner if one is not None):
            return False
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or (address.version == 4 and address.is_reserved)
        or address in ipaddress.ip_network("0.0.0.0/8")
    )


def origin_of(address: str) -> str:
    """Return whom a connection is counted for: an IPv4 address, or the /64 of an IPv6 address.

    Whoever has one IPv6 address has 2^64 of them.

    >>> origin_of("192.0.2.1"), origin_of("::ffff:192.0.2.1"), origin_of("fe80::1%eth0")
    ('192.0.2.1', '192.0.2.1', 'fe80::/64')
    >>> origin_of("2001:db8:1:2:3::4") == origin_of("2001:db8:1:2::9")
    True
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    prefix = int(found) >> 64 << 64
    return f"{ipaddress.IPv6Address(prefix)}/64"
