"""A world of one seed: time, a network that delays, loses and parts, and who lives in it.

Real are all cores: services, witnesses, proofs, verdicts, evidence. Simulated are time, disks (what
was not synced is lost in a crash), and the network.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TypeVar

import pytest
from instances.custody import custody_event, custody_event_bytes

from datacollect.bistro.destination import opening
from datacollect.bistro.formats.event import statements
from datacollect.bistro.formats.log import acknowledgement, checkpoints, notes
from datacollect.bistro.formats.receipt import upload_wish
from datacollect.bistro.log_service import admission
from datacollect.bistro.now import Now
from datacollect.net import keys

# So that the end of an event is soon reached.
ENDS = {"collect_until": "2027-04-16T02:00:00-04:00", "keep_until": "2027-04-16T03:00:00-04:00"}
EVENT_FILE = custody_event_bytes(**ENDS)
EVENT = custody_event(**ENDS)

# By the world's clock: when the deadline is, when all faults end, when it is looked back.
DEADLINE_S, HEALED_S, END_S = 6.0, 10.0, 40.0
EPOCH_S = EVENT.deadline_s - DEADLINE_S

MOST_DELAY_S = 0.15

# All that call `is_signed`.
VERIFYING = (
    *(keys, notes, checkpoints, acknowledgement),
    *(statements, upload_wish, admission, opening),
)

T = TypeVar("T")


@contextmanager
def cheap_signatures() -> Iterator[None]:
    """Sign by hashing: 500 schedules make 200 000 signatures.

    Nobody can forge these either: nobody in this world computes with another one's key.
    """
    seeds: dict[str, bytes] = {}

    def sign(key: keys.PrivateKey, message: bytes) -> bytes:
        seeds[key.public] = key.seed
        return hashlib.sha512(key.seed + message).digest()

    def is_signed(message: bytes, signature: bytes, public_key: str) -> bool:
        seed = seeds.get(public_key)
        return seed is not None and hashlib.sha512(seed + message).digest() == signature

    with _signing(sign, is_signed):
        yield


@contextmanager
def remembered_signatures() -> Iterator[None]:
    """Sign as always, and remember what was signed: only what is not known is verified."""
    known: set[tuple[bytes, bytes, str]] = set()
    really_sign, really_signed = keys.PrivateKey.sign, keys.is_signed

    def sign(key: keys.PrivateKey, message: bytes) -> bytes:
        signature = really_sign(key, message)
        known.add((message, signature, key.public))
        return signature

    def is_signed(message: bytes, signature: bytes, public_key: str) -> bool:
        is_known = (message, signature, public_key) in known
        return is_known or really_signed(message, signature, public_key)

    with _signing(sign, is_signed):
        yield


@contextmanager
def _signing(sign: Callable, is_signed: Callable) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys.PrivateKey, "sign", sign)
        for module in VERIFYING:
            patch.setattr(module, "is_signed", is_signed)
        yield


class World:
    """Time and the network; `random` decides everything.

    Parameters
    ----------
    seed : int
    healed_s : float
        When all faults end.
    may_duplicate : bool
        Whether messages may arrive twice.
    has_faults : bool, optional
        Whether messages are lost, and power; by default the seed says so.
    """

    def __init__(
        self,
        seed: int,
        healed_s: float = HEALED_S,
        *,
        may_duplicate: bool = False,
        has_faults: bool | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.healed_s = healed_s
        self.at_s = 0.0
        # Of bistros, in bytes: one of these each.
        self.rooms: tuple[int, ...] = (10**9, 10**9, 3000)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.n_lost = 0
        self.has_faults = self.random.random() < 0.8 if has_faults is None else has_faults
        self.loss = self.random.choice((0.0, 0.02, 0.2)) if self.has_faults else 0.0
        self.duplication = self.loss if may_duplicate else 0.0
        self._parted: dict[tuple[str, str], tuple[float, float]] = {}

    def now(self, moved_s: float = 0.0, *, is_synchronised: bool = True) -> Now:
        """Return the instant as a host sees it whose clock is wrong by so much."""
        return Now(self.at_s, EPOCH_S + self.at_s + moved_s, is_synchronised)

    def after(self, delay_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.at_s + delay_s, next(self._order), do))

    def run(self, until_s: float = END_S) -> None:
        self.wait(lambda: False, until_s - self.at_s)

    def wait(self, is_over: Callable[[], bool], patience_s: float) -> bool:
        """Let time pass until something is so, or patience ends; others go on meanwhile."""
        until_s = self.at_s + patience_s
        while not is_over():
            if not self._agenda or self._agenda[0][0] > until_s:
                self.at_s = until_s
                return False
            self.at_s, _, do = heapq.heappop(self._agenda)
            do()
        return True

    def skip(self, until_s: float) -> None:
        """Let everybody sleep until then: nothing happens, and nothing is due any sooner."""
        slept_s = until_s - self.at_s
        self.at_s = until_s
        self._agenda = [(at_s + slept_s, order, do) for at_s, order, do in self._agenda]

    def part(self, one: str, other: str) -> None:
        """Cut two hosts off from each other for a while."""
        self.isolate(one, [other], self.healed_s)

    def isolate(self, one: str, others: Iterable[str], latest_s: float) -> None:
        """Cut a host off from several others for the same while, which ends by then."""
        start_s = self.random.uniform(0, latest_s)
        stop_s = self.random.uniform(0, latest_s)
        for other in others:
            self._parted[min(one, other), max(one, other)] = (start_s, stop_s)

    def send(self, sender: str, receiver: str, deliver: Callable[[], None]) -> None:
        """Deliver a message some time later, or never."""
        start_s, stop_s = self._parted.get(
            (min(sender, receiver), max(sender, receiver)), (1.0, 0.0)
        )
        is_parted = start_s <= self.at_s < stop_s
        if is_parted or (self.at_s < self.healed_s and self.random.random() < self.loss):
            self.n_lost += 1
            return
        self.after(self.random.uniform(0.001, MOST_DELAY_S), deliver)
        if self.duplication and self.random.random() < self.duplication:
            self.after(self.random.uniform(0.001, 10 * MOST_DELAY_S), deliver)

    def ask(
        self,
        asker: str,
        host: str,
        asked: Callable[[Callable[[T], None]], None],
        answered: Callable[[T | None], None],
        patience_s: float,
    ) -> None:
        """Send a question; its first answer is told, or None after some time without any.

        Parameters
        ----------
        asker, host : str
        asked : function
            Called where the question arrives, with what to tell the answer to.
        answered : function
        patience_s : float
        """
        is_told = False

        def tell(answer: T | None) -> None:
            nonlocal is_told
            if not is_told:
                is_told = True
                answered(answer)

        def reply(answer: T) -> None:
            self.send(host, asker, lambda: tell(answer))

        self.send(asker, host, lambda: asked(reply))
        self.after(patience_s, lambda: tell(None))
