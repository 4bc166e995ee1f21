"""Entries of agents in files: where they listen, and how to recognise them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Text, join, wrong
from datacollect.net.names import PORT_STOP, host_and_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")

AGENT = Table(
    "the agent",
    "A host that runs `datacollect agent`.",
    (
        Field(
            "url",
            Text(),
            "Where the agent listens: https://host:port, as the agent prints it when ready.",
            required=True,
        ),
        Field(
            "fingerprint",
            Text(),
            "Fingerprint of the agent's certificate: sha256: and 64 hexadecimal digits, as the "
            "agent prints it when ready.",
        ),
        Field(
            "ca",
            Text(),
            "Instead of fingerprint: file of the authority that signed the agent's certificate.",
        ),
    ),
)


@dataclass(frozen=True)
class AgentEntry:
    """Address of an agent, and how to know that it is the one.

    Attributes
    ----------
    name : str
    address : (str, int)
    fingerprint : str or None
        ``sha256:`` and hexadecimal digits.
    ca : Path or None
    """

    name: str
    address: tuple[str, int]
    fingerprint: str | None = None
    ca: Path | None = None


def agent_of(name: str, entry: Mapping[str, Any], base: Path, tables: str = "agents") -> AgentEntry:
    """Return what the table of an agent, one of `tables`, says.

    Raises
    ------
    ProblemError
    """
    place = join(tables, name)
    address = agent_address(entry["url"], f"{place}.url")
    fingerprint, ca = entry["fingerprint"], entry["ca"]
    if (fingerprint is None) == (ca is None):
        given = "neither" if ca is None else "both"
        raise ProblemError(
            f"{place}: must have either fingerprint or ca, got {given}; the agent prints its "
            "fingerprint when it is ready"
        )
    require_fingerprint_text(fingerprint, place, "copy what the agent prints when it is ready")
    return AgentEntry(name, address, fingerprint, None if ca is None else base / ca)


def require_fingerprint_text(fingerprint: str | None, place: str, remedy: str) -> None:
    """Raise `ProblemError` unless a fingerprint is written as one."""
    if fingerprint is not None and not FINGERPRINT.fullmatch(fingerprint):
        raise wrong(
            f"{place}.fingerprint",
            "must be sha256: and 64 lowercase hexadecimal digits",
            fingerprint,
            remedy,
        )


def agent_address(url: str, place: str) -> tuple[str, int]:
    """Return host and port of an agent by its URL.

    >>> agent_address("https://S1.example:7443", "url")
    ('s1.example', 7443)
    """
    rule, remedy = (
        f"must be https://HOST:PORT, with a port of 1 to {PORT_STOP - 1}",
        "copy what the agent prints when it is ready",
    )
    scheme, _, address = url.partition("://")
    try:
        host, port = host_and_port(address.removesuffix("/"), default_port=443)
    except ProblemError:
        raise wrong(place, rule, url, remedy) from None
    if scheme.lower() != "https":
        raise wrong(place, rule, url, remedy)
    return host.lower(), port
