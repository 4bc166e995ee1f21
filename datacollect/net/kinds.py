"""Kinds of values in files that hosts are reached and told apart by: names, addresses, keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datacollect.errors import ProblemError
from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Schema, Text, join, wrong
from datacollect.net.keys import public_key_bytes
from datacollect.net.names import HOST_NAME, HOST_PORT, host_and_port, require_host_name


@dataclass(frozen=True)
class HostName:
    """The name of a host, as it stands in requests to connect."""

    def read(self, value: Any, place: str) -> str:
        """Return the name."""
        name = Text().read(value, place)
        require_host_name(name, place)
        return name

    def schema(self) -> Schema:
        """Return the JSON Schema of such names."""
        return {"type": "string", "pattern": f"^{HOST_NAME.pattern}$"}


@dataclass(frozen=True)
class Address:
    """``host:port``, with IPv6 addresses in brackets."""

    port_0: bool = False

    def read(self, value: Any, place: str) -> tuple[str, int]:
        """Return host and port."""
        text = Text().read(value, place)
        try:
            return host_and_port(text, least_port=0 if self.port_0 else 1)
        except ProblemError as error:
            raise ProblemError(f"{place} {error}") from None

    def schema(self) -> Schema:
        """Return the JSON Schema of such addresses."""
        return {"type": "string", "pattern": f"^(?:{HOST_PORT.pattern})$"}


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key, ``ed25519:BASE64``."""

    def read(self, value: Any, place: str) -> str:
        """Return the key as it is written."""
        key = Text().read(value, place)
        public_key_bytes(key, place)
        return key

    def schema(self) -> Schema:
        """Return the JSON Schema of such keys."""
        return {"type": "string", "pattern": "^ed25519:[A-Za-z0-9+/]{43}=$"}


@dataclass(frozen=True)
class Addresses:
    """Addresses by the names of hosts, or of services; at least so many."""

    shortest: int = 0

    def read(self, value: Any, place: str) -> dict[str, tuple[str, int]]:
        """Return host and port by name."""
        if not isinstance(value, Mapping):
            remedy = f'write {place} = {{ S2 = "s2.example:7443" }}'
            raise wrong(place, "must hold an address for each name", value, remedy)
        if len(value) < self.shortest:
            remedy = f'write {place} = {{ ssh = "127.0.0.1:22" }}'
            raise wrong(place, "must name something", dict(value), remedy)
        return {
            HostName().read(name, f"a name in {place}"): Address().read(item, join(place, name))
            for name, item in value.items()
        }

    def schema(self) -> Schema:
        """Return the JSON Schema of such tables."""
        return {
            "type": "object",
            "propertyNames": HostName().schema(),
            "additionalProperties": Address().schema(),
            **({"minProperties": self.shortest} if self.shortest else {}),
        }


TLS = Table(
    "the table tls",
    "A certificate of your own.",
    (
        Field(
            "certificate",
            Text(),
            "PEM file of the certificate, with its chain, if there is one.",
            required=True,
        ),
        Field(
            "key",
            Text(),
            "PEM file of the certificate's private key, without a password.",
            required=True,
        ),
    ),
)
