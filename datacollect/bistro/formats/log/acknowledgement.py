"""Acknowledgement of an entry by a service: where in its log, and when by its own clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.net.keys import is_signed

if TYPE_CHECKING:
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.net.keys import PrivateKey

# No checkpoint begins so: an origin has a host before its slash.
LABEL = "datacollect-acknowledgement/1"


@dataclass(frozen=True)
class Acknowledgement:
    """Promise of a service: the entry will stand at that index of its log.

    Attributes
    ----------
    log : str
        Origin of the log.
    index : int
    time_s : int
        The service's own clock, whole seconds since 1970; proves nothing.
    signature : bytes
        By the log's key.

    Examples
    --------
    >>> from datacollect.bistro.formats.log.checkpoints import log_key
    >>> from datacollect.net.keys import PrivateKey
    >>> key = PrivateKey(bytes(32))
    >>> word = acknowledge("log.example/7", bytes(32), 3, 1_800_000_000, key)
    >>> word.is_by(log_key("log.example/7", key.public), bytes(32))
    True
    """

    log: str
    index: int
    time_s: int
    signature: bytes

    def is_by(self, log: VerifierKey, entry: bytes) -> bool:
        """Return whether that log has given it, for that entry."""
        message = _message(self.log, entry, self.index, self.time_s)
        return self.log == log.name and is_signed(message, self.signature, log.key)


def acknowledge(
    log: str, entry: bytes, index: int, time_s: int, key: PrivateKey
) -> Acknowledgement:
    """Return the word of a log that it holds an entry."""
    signature = key.sign(_message(log, entry, index, time_s))
    return Acknowledgement(log, index, time_s, signature)


def _message(log: str, entry: bytes, index: int, time_s: int) -> bytes:
    return f"{LABEL}\n{log}\n{entry.hex()}\n{index}\n{time_s}\n".encode()
