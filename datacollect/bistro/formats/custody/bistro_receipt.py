"""Signed statement of a bistro that it holds sealed bytes: a person's token, also in a batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.log.checkpoints import TIME_STOP
from datacollect.bistro.formats.log.entry import SIZE_STOP
from datacollect.errors import TicketError
from datacollect.files.kinds import Flag, Text, Whole
from datacollect.net.keys import sign_token, unverified_payload, verify_token
from datacollect.net.tickets import read_values

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event
    from datacollect.files.kinds import Kind
    from datacollect.net.keys import PrivateKey

ASSERTION = "datacollect-bistro-receipt/1"
_KINDS: dict[str, Kind] = {
    "event": Hex(),
    "bistro": Text(),
    "entry": Hex(),
    "size": Whole("bytes", stop=SIZE_STOP),
    "sha256": Hex(),
    "sealed_anew": Flag(),
    "batch": Whole(stop=SIZE_STOP),
    "time_s": Whole("seconds", stop=TIME_STOP),
}


@dataclass(frozen=True)
class BistroReceipt:
    """Promise of a bistro: it holds those bytes, on its disk, and the destination will know.

    Attributes
    ----------
    event : bytes
        The event's id.
    bistro : str
        Its name in the event.
    entry : bytes
        Of the commitment.
    size : int
        In bytes, of what it holds.
    sha256 : bytes
        Of what it holds.
    sealed_anew : bool
        Whether that is another ciphertext than the one committed to.
    batch : int
        The number of the batch that has a row of it.
    time_s : int
        The bistro's own clock, whole seconds since 1970; proves nothing.
    """

    event: bytes
    bistro: str
    entry: bytes
    size: int
    sha256: bytes
    sealed_anew: bool
    batch: int
    time_s: int

    def signed(self, key: PrivateKey) -> str:
        """Return the token that says so, by the bistro's key."""
        claims = {
            name: value.hex() if isinstance(value, bytes) else value
            for name, value in ((name, getattr(self, name)) for name in _KINDS)
        }
        payload = json.dumps({"v": 1, **claims}, separators=(",", ":")).encode()
        return sign_token(key, payload, ASSERTION)


def read_bistro_receipt(token: str, event: Event) -> BistroReceipt:
    """Return what a bistro of an event has signed.

    Parameters
    ----------
    token : str
    event : Event
        With the amendments that are known: they may have added the bistro.

    Raises
    ------
    TicketError
        It is no such token, is of another event, or not by the key of the bistro it names.
    """
    found = _claims(unverified_payload(token))
    if found.event != event.id:
        raise TicketError(f"the bistro's receipt is for another event, {found.event.hex()[:16]}…")
    bistro = next((each for each in event.bistros if each.name == found.bistro), None)
    if bistro is None:
        raise TicketError("the bistro's receipt is by a bistro that the event does not name")
    verify_token(token, bistro.key, ASSERTION)
    return found


def _claims(payload: bytes) -> BistroReceipt:
    return BistroReceipt(**read_values(payload, _KINDS, "bistro's receipt"))
