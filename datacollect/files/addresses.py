"""IP addresses as texts: which spellings are one address."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Of IPv6 in brackets, or of what holds no other colon.
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):\d{1,5}", re.ASCII)


@lru_cache(maxsize=4096)
def address_of(name: str) -> str:
    """Return an IP address in one spelling (RFC 5952), however it is written; ``""`` where none is.

    IPv4 within IPv6 (RFC 4291, 2.5.5.2) is IPv4: programs that listen on both write it so.

    >>> address_of("[2001:DB8:0::1]"), address_of("::ffff:10.0.0.1"), address_of("lyon")
    ('2001:db8::1', '10.0.0.1', '')
    """
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        found = ip_address(bare)
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def bare_name(name: str) -> str:
    """Return what names have in common that differ by case, a final dot or a port.

    >>> bare_name("Lyon.example."), bare_name("lyon.example:5201"), bare_name("[::1]:5201")
    ('lyon.example', 'lyon.example', '::1')
    """
    found = _WITH_PORT.fullmatch(name)
    bare = found[1] if found and found[1] else name
    return address_of(bare) or bare.removesuffix(".").casefold() or name


def host_of(address: str, names: Mapping[str, str]) -> str | None:
    """Return the host that has an address, whichever way either is written; None where none has.

    >>> host_of("::ffff:10.0.0.1", {"10.0.0.1": "lyon"})
    'lyon'
    """
    if address in names or not address_of(address):
        return names.get(address)
    same = (host for other, host in names.items() if address_of(other) == address_of(address))
    return next(same, None)
