"""A wire for packets that really cross loopback: the stamps of both kernels are by a model of it.

A clock that stands still unless the sender sleeps makes its gaps exact. A packet leaves the wire
when the one before it in its pair has, and after what others and it itself take. Each packet is
received before the next one leaves, so that none is lost for want of time.
"""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

from datacollect.measuring.agent import pair_receiving, pair_sending
from datacollect.measuring.probes import pair_trains

PACKET_BYTES = 1500
# Of the sender, from one reading of its clock to the next.
STEP_NS = 1000
# For packets that never come.
PATIENCE_S = 1.0


class ModelledWire:
    """The wire of one test, and what others do to it.

    Parameters
    ----------
    monkeypatch
    capacity_bytes_per_s : float
    others : callable, optional
        From the number of a packet to the seconds for which others take the wire before it.
    is_lost : callable, optional
        From the number of a packet to whether it is.
    overslept_s : callable, optional
        Seconds by which the next sleep is too long.
    """

    def __init__(
        self,
        monkeypatch,
        capacity_bytes_per_s: float,
        *,
        others=lambda _: 0.0,
        is_lost=lambda _: False,
        overslept_s=lambda: 0.0,
    ) -> None:
        self._takes_ns = PACKET_BYTES / capacity_bytes_per_s * 1e9
        self._others, self._is_lost, self._overslept_s = others, is_lost, overslept_s
        self._now_ns = time.monotonic_ns()
        self._free_ns = 0.0
        self._sent = 0
        self.left: dict[int, int] = {}
        self._arrived: set[int] = set()
        self._number: int | None = None
        self._changed = threading.Condition()
        clock = SimpleNamespace(monotonic_ns=self._read, monotonic=time.monotonic)
        clock.sleep = self._sleep
        send, number_of = pair_sending._Packets.send, pair_receiving.number_of

        def sending(packets, data):
            self._sent = number_of(data, packets.sending.test.ticket.nonce)
            return send(packets, data)

        def reading(data, nonce):
            self._number = number_of(data, nonce)
            return self._number

        monkeypatch.setattr(pair_sending, "time", clock)
        monkeypatch.setattr(pair_sending._Packets, "send", sending)
        monkeypatch.setattr(pair_sending, "stamp_ns", lambda _: self._leave())
        monkeypatch.setattr(pair_receiving, "number_of", reading)
        monkeypatch.setattr(pair_receiving, "_stamp_ns", lambda _: self._arrive())
        monkeypatch.setattr(pair_trains, "apart_s", lambda *_: 0.0)

    def _read(self) -> int:
        self._now_ns += STEP_NS
        return self._now_ns

    def _sleep(self, seconds: float) -> None:
        self._now_ns += int((seconds + self._overslept_s()) * 1e9)

    def _leave(self) -> int:
        """Return when a packet leaves its sender, and put it on the wire."""
        with self._changed:
            number, left_ns = self._sent, self._now_ns
            # Whatever the clock says meanwhile, no pair meets the one before.
            begins_ns = max(left_ns, self._free_ns) if number % 2 else left_ns
            self._free_ns = begins_ns + self._others(number) * 1e9 + self._takes_ns
            self.left[number] = round(self._free_ns)
            self._changed.notify_all()
            self._changed.wait_for(lambda: number in self._arrived, PATIENCE_S)
            return left_ns

    def _arrive(self) -> int | None:
        """Return when the packet that was read last leaves the wire; None where it does not."""
        number = self._number
        if number is None:
            return None
        with self._changed:
            assert self._changed.wait_for(lambda: number in self.left, 10.0)
            self._arrived.add(number)
            self._changed.notify_all()
            return None if self._is_lost(number) else self.left[number]
