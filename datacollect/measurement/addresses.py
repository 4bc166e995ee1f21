"""Hosts' names and addresses: which spellings are one, and names by address from a table."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes, text_of
from datacollect.files.tables import open_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

# A folder of results may hold such a file, for all that lies in the folder and below it.
NAMES_FILE = "names.csv"

_COLUMNS = ("address", "host")
_HEADER = ",".join(_COLUMNS)

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


def read_names(path: str | PathLike[str]) -> dict[str, str]:
    r"""Read a CSV with the columns ``address`` and ``host``.

    A host may have several addresses.

    Raises
    ------
    ProblemError
        A column is missing or unknown, a field is empty, or an address is that of two hosts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "names.csv")
    ...     _ = file.write_text("address,host\n10.0.0.1,lyon\n10.0.1.1,lyon\n")
    ...     read_names(file)
    {'10.0.0.1': 'lyon', '10.0.1.1': 'lyon'}
    """
    name = document_name(path)
    table = open_table(text_of(read_bytes(path), name), name, _HEADER)
    if set(table.header) != set(_COLUMNS):
        raise ProblemError(
            f"{name}, line {1 + table.skipped_lines}: must have the columns address and host, got "
            f"{', '.join(table.header)}; write a header like {_HEADER}"
        )
    found: dict[str, str] = {}
    for line, row in table.rows():
        field = dict(zip(table.header, row, strict=True))
        for column in _COLUMNS:
            if not field[column].strip():
                raise ProblemError(
                    f"{name}, line {line}: {column} must not be empty; fill it in, or remove the "
                    "line"
                )
        address, host = (field[column].strip() for column in _COLUMNS)
        if (known := host_of(address, found) or host) != host:
            raise ProblemError(
                f"{name}, line {line}: address {address!r} must be that of one host, got {host!r} "
                f"after {known!r}; keep one"
            )
        found[address] = host
    return found
