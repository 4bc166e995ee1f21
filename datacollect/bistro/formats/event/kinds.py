"""Kinds of values that event files, amendments, tickets and receipts have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from datacollect.bistro.formats.event.certificates import read_certificates
from datacollect.bistro.formats.log.notes import OF_NOTE, OF_WITNESS, VerifierKey
from datacollect.errors import ProblemError
from datacollect.files.kinds import Schema, Text, wrong
from datacollect.net.names import host_and_port

PEM = re.compile(
    r"(?:-----BEGIN CERTIFICATE-----\n(?:[A-Za-z0-9+/=]{1,76}\n)+-----END CERTIFICATE-----\n)+"
)
_URL = re.compile(r"(?P<scheme>https?)://(?P<host>[^/?#@\s]+)(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?")
_RECIPIENT = re.compile(r"age1[0-9a-z]{20,4096}")
_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Hex:
    """Bytes in lowercase hexadecimal digits."""

    n_bytes: int = 32

    def read(self, value: Any, place: str) -> bytes:
        """Return the bytes."""
        text = Text().read(value, place)
        if not re.fullmatch(r"[0-9a-f]+", text) or len(text) != 2 * self.n_bytes:
            rule = f"must be {2 * self.n_bytes} lowercase hexadecimal digits"
            raise wrong(place, rule, text, "copy it again")
        return bytes.fromhex(text)

    def schema(self) -> Schema:
        """Return the JSON Schema of such digits."""
        return {"type": "string", "pattern": f"^[0-9a-f]{{{2 * self.n_bytes}}}$"}


@dataclass(frozen=True)
class SecretHex(Hex):
    """Bytes in lowercase hexadecimal digits, of which no message shows any."""

    def read(self, value: Any, place: str) -> bytes:
        """Return the bytes."""
        try:
            return super().read(value, place)
        except ProblemError:
            raise ProblemError(
                f"{place} must be {2 * self.n_bytes} lowercase hexadecimal digits (a secret, not "
                "shown here); copy it again"
            ) from None


@dataclass(frozen=True)
class LogKey:
    """The verifier key of a log."""

    kind: int = OF_NOTE

    def read(self, value: Any, place: str) -> VerifierKey:
        """Return the key."""
        return VerifierKey.parse(Text().read(value, place), self.kind, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of such keys."""
        return {"type": "string", "pattern": r"^[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$"}


WITNESS_KEY = LogKey(OF_WITNESS)


@dataclass(frozen=True)
class Pattern:
    """Text of a form."""

    pattern: re.Pattern[str]
    rule: str
    remedy: str

    def read(self, value: Any, place: str) -> str:
        """Return the text."""
        text = Text().read(value, place)
        if not self.pattern.fullmatch(text):
            raise wrong(place, self.rule, text, self.remedy)
        return text

    def schema(self) -> Schema:
        """Return the JSON Schema of such texts."""
        return {"type": "string", "pattern": f"^(?:{self.pattern.pattern})$"}


@dataclass(frozen=True)
class Certificates(Pattern):
    """Certificates, PEM, that can be read."""

    def read(self, value: Any, place: str) -> str:
        """Return the text."""
        text = super().read(value, place)
        read_certificates(text, place)
        return text


CERTIFICATES = Certificates(
    PEM,
    "must be certificates, PEM, with a newline at the end of each line",
    "put the whole text between three quotes, or name its file in the draft of `event new`",
)
FINGERPRINT = Pattern(
    _FINGERPRINT, "must be sha256: and 64 lowercase hexadecimal digits", "the agent tells it"
)


@dataclass(frozen=True)
class Url:
    """Address of a service: https (or http, in a test bed), a host, and the beginning of paths."""

    def read(self, value: Any, place: str) -> str:
        """Return the URL, without a slash at its end."""
        text = Text().read(value, place)
        found = _URL.fullmatch(text)
        if not found:
            raise wrong(place, "must be a URL of https or http", text, "as https://log.example/a")
        try:
            host_and_port(found["host"], default_port=443)
        except ProblemError as error:
            raise ProblemError(f"{place}: its host {error}") from None
        return text.removesuffix("/")

    def schema(self) -> Schema:
        """Return the JSON Schema of such URLs."""
        return {"type": "string", "pattern": "^https?://"}


@dataclass(frozen=True)
class Recipient:
    """Recipient of age for whom files are sealed: ``age1…``."""

    def read(self, value: Any, place: str) -> str:
        """Return the recipient as it is written."""
        text = Text().read(value, place)
        if text.upper().startswith("AGE-SECRET-KEY-"):
            # Not the value received: it is a secret.
            raise ProblemError(
                f"{place} must be a recipient, got an identity, which is a secret; take back what "
                "you published of it, make another with `age-keygen`, and write its public half"
            )
        if not _RECIPIENT.fullmatch(text) or not _is_recipient(text):
            rule = "must be a recipient of age, age1…"
            raise wrong(place, rule, text, "`age-keygen -y` prints it")
        return text

    def schema(self) -> Schema:
        """Return the JSON Schema of such recipients."""
        return {"type": "string", "pattern": "^age1[0-9a-z]{20,}$"}


_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def _is_recipient(text: str) -> bool:
    """Say whether the checksum of a Bech32 text fits (BIP 173, longer than 90 characters, too)."""
    prefix, _, data = text.rpartition("1")
    values = [_BECH32.find(letter) for letter in data]
    if min(values, default=-1) < 0:
        return False
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    checksum = 1
    for value in expanded + values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for i, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            checksum ^= generator if top >> i & 1 else 0
    return checksum == 1
