"""Guests of an event: invitations that were given out, and what hosts have posted by them."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.log.one_meaning import hex_bytes, json_file, peer_json
from datacollect.bistro.joining.halves import host_of, key_of, read_half
from datacollect.bistro.joining.invitation import (
    NUMBER_BYTES,
    SECRET_BYTES,
    Invitation,
    expired_text,
    mac_of,
)
from datacollect.errors import ProblemError, RefusedError
from datacollect.files.documents import document_name, not_made, read_bytes, written_durably
from datacollect.net.keys import is_signed

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".json"
DAY_S = 86_400
# What a mac is over, by what it is for.
JOIN, OPENED = b"datacollect join\n", b"datacollect opened\n"


@dataclass(frozen=True)
class Guest:
    """An invitation that was given out; `half`: what the host has told, None: none has come."""

    number: str
    secret: bytes
    expires_s: int
    half: dict[str, str] | None = None

    @property
    def data(self) -> bytes:
        """Its file."""
        tree = {"number": self.number, "secret": self.secret.hex(), "expires_s": self.expires_s}
        return json.dumps({**tree, "half": self.half}, indent=1).encode() + b"\n"


class Guests:
    """All guests of an event, in a folder; a file each.

    Parameters
    ----------
    folder : Path
        Made where it is absent, for its owner's eyes alone.
    own_host : str
        The organiser's.

    Raises
    ------
    ProblemError
        A file is none.
    NotWrittenError
        The folder cannot be made.
    """

    def __init__(self, folder: Path, own_host: str) -> None:
        self._folder, self._own_host = folder, own_host.lower()
        self._lock = threading.Lock()
        self._is_settled = False
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise not_made(folder, error) from None
        found = [_read(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
        self._guests = {each.number: each for each in found}

    def invite(self, url: str, organiser: str, days: float) -> Invitation:
        """Return a new invitation, which is kept."""
        number, secret = secrets.token_hex(NUMBER_BYTES), secrets.token_bytes(SECRET_BYTES)
        guest = Guest(number, secret, int(time.time() + days * DAY_S))
        self._keep(guest)
        return Invitation(url, organiser, number, secret, guest.expires_s)

    @property
    def all(self) -> list[Guest]:
        """Those that were invited."""
        with self._lock:
            return [*self._guests.values()]

    @property
    def joined(self) -> list[Guest]:
        """Those that have come."""
        return [each for each in self.all if each.half is not None]

    def settled(self) -> list[Guest]:
        """Return those that have come; nobody else can any more.

        The organiser is asked about these: who came later, with a line that was stolen or left
        over, would be part of the event, or told of it, without being looked at.
        """
        with self._lock:
            self._is_settled = True
            return [each for each in self._guests.values() if each.half is not None]

    def join(self, number: str, text: str, mac: str, now_s: float) -> Guest:
        """Take what a host tells of itself; the same again changes nothing.

        Raises
        ------
        RefusedError
            The invitation is none, has expired or was used, or the host has joined before.
        """
        guest = self._known(number, JOIN + text.encode(), mac)
        try:
            half = read_half(peer_json(text))
        except ProblemError as error:
            why = f"what the joining host says of itself is not understood: {error}"
            raise RefusedError(why, 400) from None
        with self._lock:
            guest = self._guests[number]
            if guest.half == half:
                return guest
            if guest.half is not None:
                raise RefusedError(
                    f"the invitation was used by {guest.half['url']}, and is for one host; have "
                    "the organiser make another by `datacollect event invite`",
                    409,
                )
            if self._is_settled:
                raise RefusedError(
                    "this event has all its hosts, and accepts no more; ask the organiser whether "
                    "there is another to join",
                    409,
                )
            if now_s > guest.expires_s:
                raise RefusedError(expired_text(), 410)
            self._require_new_host(half)
            guest = replace(guest, half=half)
            self._keep(guest)
            return guest

    def _require_new_host(self, half: dict[str, str]) -> None:
        host = host_of(half)
        if host == self._own_host:
            raise RefusedError(
                f"{host} is the organiser's own host: its signature would add nothing; join from "
                "another host, or hold the event on one by `datacollect event quickstart`",
                409,
            )
        for other in self._guests.values():
            if other.half is not None and host_of(other.half) == host:
                raise RefusedError(
                    f"{host} has joined as {other.half['role']}: a host with two roles can lie in "
                    "both; join from another host",
                    409,
                )

    def require_joined(self, number: str, mac: str, signature: bytes) -> Guest:
        """Return a guest that has come, and asks whether the event is open.

        It signs by its key: what it is told may be for it alone, and others may have seen the line.

        Raises
        ------
        RefusedError
            It has not come, or is another.
        """
        asked = OPENED + number.encode()
        guest = self._known(number, asked, mac)
        if guest.half is None:
            raise RefusedError("this host has not joined yet", 409)
        if not is_signed(asked, signature, key_of(guest.half)):
            raise RefusedError(
                "the request is not signed by the key of this host that has joined; join in the "
                "folder that has that key, or have the organiser make another invitation by "
                "`datacollect event invite`",
                403,
            )
        return guest

    def _known(self, number: str, message: bytes, mac: str) -> Guest:
        with self._lock:
            path = self._folder / f"{number}{SUFFIX}"
            # Invited since this has begun to listen.
            if number not in self._guests and number.isalnum() and path.exists():
                self._guests[number] = _read(path)
            guest = self._guests.get(number)
        # As bytes: of texts only those in ASCII are compared.
        if guest is None or not hmac.compare_digest(
            mac_of(guest.secret, message).encode(), mac.encode()
        ):
            raise RefusedError(
                "the invitation is not for this event; copy the whole line again, or have the "
                "organiser make another by `datacollect event invite`",
                403,
            )
        return guest

    def _keep(self, guest: Guest) -> None:
        with written_durably(self._folder / f"{guest.number}{SUFFIX}") as beside:
            beside.write_bytes(guest.data)
            beside.chmod(0o600)
        self._guests[guest.number] = guest


def _read(path: Path) -> Guest:
    name = document_name(path)
    tree: dict[str, Any] = json_file(read_bytes(path), name)
    secret = hex_bytes(tree.get("secret"), SECRET_BYTES) if isinstance(tree, dict) else None
    if secret is None or not isinstance(tree.get("expires_s"), int) or "half" not in tree:
        raise ProblemError(
            f"{name}: must be an invitation as `datacollect event invite` has written it; remove "
            "it, and make another"
        )
    half = None if tree["half"] is None else read_half(tree["half"])
    return Guest(str(tree.get("number")), secret, tree["expires_s"], half)
