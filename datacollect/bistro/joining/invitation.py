"""Invitations: one line that lets one host join an event, and says whose event it is."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import Url
from datacollect.errors import ProblemError
from datacollect.net.kinds import PublicKey

if TYPE_CHECKING:
    from collections.abc import Mapping

BEGINS = "datacollect-join:"
SECRET_BYTES, NUMBER_BYTES, SUM_BYTES = 16, 8, 6
_REMEDY = "it was changed or cut: copy the whole line again"


@dataclass(frozen=True)
class Invitation:
    """An invitation, for one host and for some days.

    Attributes
    ----------
    url : str
        Where the organiser listens.
    organiser : str
        The public key of whoever signs what comes back.
    number : str
        Hexadecimal digits.
    secret : bytes
    expires_s : int
        Seconds since 1970.
    """

    url: str
    organiser: str
    number: str
    secret: bytes = field(repr=False)
    expires_s: int

    @property
    def text(self) -> str:
        """The line."""
        tree = {
            "url": self.url,
            "organiser": self.organiser,
            "number": self.number,
            "secret": self.secret.hex(),
            "expires_s": self.expires_s,
        }
        data = json.dumps(tree, separators=(",", ":")).encode()
        whole = data + hashlib.sha256(data).digest()[:SUM_BYTES]
        return BEGINS + base64.urlsafe_b64encode(whole).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Read the line.

        Raises
        ------
        ProblemError
            It is none, or was changed; the message shows nothing of it, for it is a secret.
        """
        line = text.strip()
        if not line.startswith(BEGINS):
            raise ProblemError(f"the invitation must begin with {BEGINS}; {_REMEDY}")
        found = _parsed(line.removeprefix(BEGINS))
        # One line for one invitation: there is no other way to write it.
        if found is None or found.text != line:
            raise ProblemError(f"the invitation is damaged; {_REMEDY}")
        return found

    def mac(self, message: bytes) -> str:
        """Return by what the organiser knows that a message is of who was invited."""
        return mac_of(self.secret, message)


def _parsed(coded: str) -> Invitation | None:
    try:
        whole = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4))
        data = whole[:-SUM_BYTES]
        if hashlib.sha256(data).digest()[:SUM_BYTES] != whole[-SUM_BYTES:]:
            return None
        tree = json.loads(data)
        return Invitation(
            Url().read(tree["url"], "the invitation's url"),
            PublicKey().read(tree["organiser"], "the invitation's organiser"),
            bytes.fromhex(tree["number"]).hex(),
            bytes.fromhex(tree["secret"]),
            int(tree["expires_s"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def expired_text() -> str:
    """Say that an invitation is good for nothing any more."""
    return (
        "the invitation has expired; have the organiser make another by `datacollect event invite`"
    )


def mac_of(secret: bytes, message: bytes) -> str:
    """Return the HMAC of a message, hexadecimal digits."""
    return hmac.new(secret, message, hashlib.sha256).hexdigest()


def fingerprint_of_half(half: Mapping[str, object]) -> str:
    """Return what two people compare over the telephone: of all that a host has told of itself.

    >>> fingerprint_of_half({"role": "witness"})
    '8fe5 6713 ea18 5b7d'
    """
    text = json.dumps(half, sort_keys=True, separators=(",", ":"))
    digits = hashlib.sha256(text.encode()).hexdigest()[:16]
    return " ".join(digits[i : i + 4] for i in range(0, 16, 4))
