"""Store of what the receiver has not written yet: here in memory, else see `spill`."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.feeds.sender.missing import Run


class Message(NamedTuple):
    """A message: its number, when it was made, and what it holds."""

    number: int
    made_ns: int
    content: bytes


@dataclass
class Begun:
    """Facts kept of a feed that continues, or begins.

    Attributes
    ----------
    stream : str
        What tells it from all others of its name.
    made, made_bytes : int
        Messages so far, the missing among them.
    tail : bytes
        What was made since: no whole message yet.
    lost, lost_bytes : int
        Messages that are missing, told and not told yet.
    missing : list of Run
        Those that the receiver may not have been told yet.
    written : int
        Before which the receiver has all.
    is_ended : bool
        Whether the source has ended.
    restarts : int
        How often a sender has gone on with it.
    unplaced : int or None
        After a loss of power: from which message on it is not known how many others, which were
        lost here, the receiver has got; None: nothing was lost.
    """

    stream: str = field(default_factory=lambda: secrets.token_hex(16))
    made: int = 0
    made_bytes: int = 0
    tail: bytes = b""
    lost: int = 0
    lost_bytes: int = 0
    missing: list[Run] = field(default_factory=list)
    written: int = 0
    is_ended: bool = False
    restarts: int = 0
    unplaced: int | None = None

    @property
    def is_new(self) -> bool:
        """Return whether nothing was made yet."""
        return not (self.made or self.tail or self.is_ended)


class Store(Protocol):
    """Keeps what was made; each call is carried out wholly, or raises StoreError.

    Attributes
    ----------
    begun : Begun
        What was there when it was opened.
    """

    begun: Begun

    @property
    def kept_bytes(self) -> int:
        """Bytes of the messages that are kept."""

    def add(self, messages: Sequence[Message], tail: bytes, *, ends: bool) -> None:
        """Keep messages, and what was made behind them; the last, where the source has ended."""

    def drop(self, run: Run, tail: bytes, *, ends: bool) -> None:
        """Note that messages are missing that come next, and what was made behind them."""

    def drop_kept(self, run: Run) -> None:
        """Let go of messages that are kept: they are missing."""

    def take_back(self, n: int, n_bytes: int) -> None:
        """Note that messages are not lost that were dropped: the receiver has them."""

    def end(self) -> None:
        """Note that the source has ended."""

    def read(self, first: int, stop: int, most_bytes: int) -> list[Message]:
        """Return messages from one on, without a gap; one at least, where it is kept."""

    def place(self, number: int) -> None:
        """Move what was made since a loss of power behind what the receiver has got."""

    def release(self, number: int) -> None:
        """Let go of all before a message: the receiver has them."""

    def close(self, *, is_done: bool) -> None:
        """Let go of the store; where the feed is done, nothing of it is kept."""


class Memory:
    """Keeps what was made in memory: what is in it is lost with its process."""

    def __init__(self) -> None:
        self.begun = Begun()
        self.kept_bytes = 0
        self._messages: dict[int, Message] = {}
        self._first = 0

    def add(self, messages: Sequence[Message], tail: bytes, *, ends: bool) -> None:
        """Keep messages."""
        for each in messages:
            self._messages[each.number] = each
            self.kept_bytes += len(each.content)

    def drop(self, run: Run, tail: bytes, *, ends: bool) -> None:
        """Nothing has to be noted."""

    def drop_kept(self, run: Run) -> None:
        """Let go of messages that are kept."""
        for number in range(run.first, run.stop):
            self._let_go(number)

    def end(self) -> None:
        """Nothing has to be noted."""

    def read(self, first: int, stop: int, most_bytes: int) -> list[Message]:
        """Return messages from one on, without a gap."""
        found: list[Message] = []
        for number in range(first, stop):
            each = self._messages.get(number)
            if each is None or (found and most_bytes < len(each.content)):
                break
            found.append(each)
            most_bytes -= len(each.content)
        return found

    def take_back(self, n: int, n_bytes: int) -> None:
        """Nothing in memory was sent by an earlier process."""

    def place(self, number: int) -> None:
        """What is in memory does not outlast a loss of power."""

    def release(self, number: int) -> None:
        """Let go of all before a message."""
        for each in range(self._first, number):
            self._let_go(each)
        self._first = max(self._first, number)

    def close(self, *, is_done: bool) -> None:
        """Nothing has to be let go of."""

    def _let_go(self, number: int) -> None:
        message = self._messages.pop(number, None)
        if message is not None:
            self.kept_bytes -= len(message.content)
