"""A world of one seed: time, a network that delays, loses and parts, and who lives in it.

Real are all cores: services, witnesses, proofs, verdicts, evidence. Simulated are time, disks (what
was not synced is lost in a crash), the network, and signatures, which cost nothing here but cannot
be forged either: nobody in this world computes with another one's key.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from instances.events import event_bytes, event_of

from datacollect.bistro.log import acknowledgement, checkpoints, notes
from datacollect.bistro.now import Now
from datacollect.net import keys

EVENT_FILE = event_bytes()
EVENT = event_of()

# By the world's clock: when the deadline is, when all faults end, when it is looked back.
DEADLINE_S, HEALED_S, END_S = 6.0, 10.0, 40.0
EPOCH_S = EVENT.deadline_s - DEADLINE_S

MOST_DELAY_S = 0.15


@contextmanager
def cheap_signatures() -> Iterator[None]:
    """Sign by hashing: 500 schedules make 200 000 signatures."""
    seeds: dict[str, bytes] = {}

    def sign(key: keys.PrivateKey, message: bytes) -> bytes:
        seeds[key.public] = key.seed
        return hashlib.sha512(key.seed + message).digest()

    def is_signed(message: bytes, signature: bytes, public_key: str) -> bool:
        seed = seeds.get(public_key)
        return seed is not None and hashlib.sha512(seed + message).digest() == signature

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys.PrivateKey, "sign", sign)
        for module in (keys, notes, checkpoints, acknowledgement):
            patch.setattr(module, "is_signed", is_signed)
        yield


class World:
    """Time and the network; `random` decides everything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.at_s = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.n_lost = 0
        self.has_faults = self.random.random() < 0.8
        self.loss = self.random.choice((0.0, 0.02, 0.2)) if self.has_faults else 0.0
        self._parted: dict[tuple[str, str], tuple[float, float]] = {}

    def now(self, moved_s: float = 0.0, *, is_synchronised: bool = True) -> Now:
        """Return the instant as a host sees it whose clock is wrong by so much."""
        return Now(self.at_s, EPOCH_S + self.at_s + moved_s, is_synchronised)

    def after(self, delay_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.at_s + delay_s, next(self._order), do))

    def run(self) -> None:
        while self._agenda and self._agenda[0][0] <= END_S:
            self.at_s, _, do = heapq.heappop(self._agenda)
            do()

    def part(self, one: str, other: str) -> None:
        """Cut two hosts off from each other for a while."""
        start_s = self.random.uniform(0, HEALED_S)
        self._parted[min(one, other), max(one, other)] = (start_s, self.random.uniform(0, HEALED_S))

    def send(self, sender: str, receiver: str, deliver: Callable[[], None]) -> None:
        """Deliver a message some time later, or never."""
        start_s, stop_s = self._parted.get(
            (min(sender, receiver), max(sender, receiver)), (1.0, 0.0)
        )
        is_parted = start_s <= self.at_s < stop_s
        if is_parted or (self.at_s < HEALED_S and self.random.random() < self.loss):
            self.n_lost += 1
            return
        self.after(self.random.uniform(0.001, MOST_DELAY_S), deliver)
