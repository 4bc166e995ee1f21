"""Polls counters of interfaces every two seconds: of this host, and of agents."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.measuring.agent.measure_config import COUNTERS
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.probes.interface_counters import interface_counters
from datacollect.net.fan_out import start_thread
from datacollect.net.tickets import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

EVERY_S, SHOWN_S = 2.0, 120.0
# Who does not answer is asked again after so long.
AGAIN_S = 10.0
OWN_HOST = "this host"
# A ticket names two ends; of counters the other one is nobody's host.
OPERATOR = "the operator"


class CounterPolls:
    """Readings of interfaces, as long as its block lasts.

    Parameters
    ----------
    agents : iterable of AgentEntry
    key : PrivateKey or None
        The operator's; needed where there are agents.
    """

    def __init__(self, agents: Iterable[AgentEntry], key: PrivateKey | None) -> None:
        self._over, self._lock = threading.Event(), threading.Lock()
        self._readings: dict[str, deque[Mapping[str, Any]]] = {}
        self._why: dict[str, str] = {}
        self._threads = [self._thread(OWN_HOST, lambda: self._poll(OWN_HOST, interface_counters))]
        for entry in agents:
            assert key is not None
            self._threads.append(self._thread(entry.name, self._asking(entry, key)))

    def __enter__(self) -> CounterPolls:
        """Begin."""
        for thread in self._threads:
            start_thread(thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End; a question that is under way ends by itself."""
        self._over.set()

    def known(self) -> dict[str, tuple[Sequence[Mapping[str, Any]], str]]:
        """Return by host its readings of the last two minutes, and why there are none."""
        with self._lock:
            return {name: ([*rows], self._why[name]) for name, rows in self._readings.items()}

    def _thread(self, name: str, poll: Callable[[], None]) -> threading.Thread:
        self._readings[name] = deque(maxlen=int(SHOWN_S / EVERY_S) + 1)
        self._why[name] = ""
        return threading.Thread(target=poll, name=f"counters of {name}", daemon=True)

    def _asking(self, entry: AgentEntry, key: PrivateKey) -> Callable[[], None]:
        def poll() -> None:
            while not self._over.is_set():
                try:
                    with closing(AskedAgent(entry, key)) as agent:
                        self._poll(entry.name, lambda: _counters_of(agent))
                except RefusedError as error:
                    # It will not change its mind, and its log shall not fill.
                    self._say(entry.name, str(error))
                    return
                except (TransferError, ProblemError) as error:
                    self._say(entry.name, str(error))
                    self._over.wait(AGAIN_S)

        return poll

    def _poll(self, name: str, read: Callable[[], Mapping[str, Any]]) -> None:
        while not self._over.is_set():
            reading = read()
            with self._lock:
                self._readings[name].append(reading)
                self._why[name] = "" if reading["interfaces"] else "no interfaces are shown there"
            self._over.wait(EVERY_S)

    def _say(self, name: str, why: str) -> None:
        with self._lock:
            self._why[name] = why


def _counters_of(agent: AskedAgent) -> Mapping[str, Any]:
    agent.token_for(agent.fingerprint, OPERATOR, COUNTERS, 0, new_nonce())
    return agent.counters()
