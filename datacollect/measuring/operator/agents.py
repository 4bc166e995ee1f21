"""Client of an agent for operators: its clock, its lease, tests, what has arrived there."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.errors import RefusedError, TransferError
from datacollect.files.documents import peer_json
from datacollect.measuring.agent.measure_config import COUNTERS
from datacollect.measuring.plan.host_lease import Granted, Wait
from datacollect.measuring.plan.measure_tickets import MeasureTicket, sign_measure_ticket
from datacollect.measuring.probes.pair_packets import MOST_PACKETS, PAGE, arrivals_of
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial, start_tls
from datacollect.net.http_asking import Asker
from datacollect.net.names import host_port_text
from datacollect.net.safe_text import safe_text
from datacollect.net.tls import client_context, fingerprint_of, require_fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from datacollect.measuring.plan.host_lease import LeaseAnswer
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

TIMEOUT_S = 15.0
# Tickets hold until the test, and whoever waits for leases, have had their time.
TICKET_S = 1800.0
# More than kernels have, and longer.
MOST_INTERFACES, MOST_NAME = 64, 32


class Arrived(NamedTuple):
    """Packets that have come to an agent: of each its number, and its nanosecond there."""

    packets: list[tuple[int, int]]
    clock_was_set: bool


class AskedAgent:
    """One end of a test; for one thread.

    Parameters
    ----------
    entry : AgentEntry
    key : PrivateKey
        The operator's.

    Attributes
    ----------
    is_in_pull : bool or None
        Whether its host moved other data when it gave its lease; None where it does not know.

    Raises
    ------
    TransferError
        It cannot be reached, or is another.
    """

    def __init__(self, entry: AgentEntry, key: PrivateKey) -> None:
        self.name, self.place = entry.name, host_port_text(*entry.address)
        self.fingerprint = _fingerprint_at(entry)
        self._key, self._token = key, ""
        self.is_in_pull: bool | None = None
        tls, url = client_context(entry.ca), f"https://{self.place}"
        # Of two connections one is the lease's: it ends with the other's troubles, not in them.
        self._leasing = Asker(url, tls, TIMEOUT_S, self.fingerprint, "agent")
        self._testing = Asker(url, tls, TIMEOUT_S, self.fingerprint, "agent")
        try:
            self._ahead_s = self._clock_ahead_s()
        except BaseException:
            self.close()
            raise

    def token_for(self, sender: str, receiver: str, tool: str, most_bytes: int, nonce: str) -> str:
        """Return a ticket for this agent, which `ask` and the others use from now on."""
        now_s = time.time() + self._ahead_s
        ticket = MeasureTicket(
            self._key.public,
            self.fingerprint,
            sender,
            receiver,
            (tool,),
            most_bytes,
            now_s,
            now_s + TICKET_S,
            nonce,
        )
        self._token = sign_measure_ticket(ticket, self._key)
        return self._token

    def ask_lease(self, attempt: int, seconds: float, n_tests: int = 1) -> LeaseAnswer:
        """Ask for the lease of its host, for as many tests at once."""
        body = {"attempt": attempt, "seconds": seconds, "tests": n_tests}
        found = self._asked(self._leasing, "POST", "lease", body)
        if "granted_s" in found:
            in_pull = found.get("in_pull")
            self.is_in_pull = in_pull if isinstance(in_pull, bool) else None
            return Granted(_number(self.name, found, "granted_s"))
        wait_s = _number(self.name, found, "wait_s")
        return Wait(wait_s, max(_number(self.name, found, "ask_again_s"), 0.1))

    def give_back(self, attempt: int) -> None:
        """Give the lease back, or a place in the queue; its connection's end does it as well."""
        with suppress(TransferError):
            self._asked(self._leasing, "DELETE", "lease", {"attempt": attempt})

    def run(self, tool: str, body: Mapping[str, Any], longest_s: float) -> dict[str, Any]:
        """Have it run a test, and return what it says of it."""
        self._testing.close()
        tls = client_context()
        self._testing = Asker(f"https://{self.place}", tls, longest_s, self.fingerprint, "agent")
        return self._asked(self._testing, "POST", tool, body)

    def received_bytes(self, expected_bytes: int) -> int:
        """Return how much it has counted of what came; it waits a while for what is expected."""
        found = self._asked(self._testing, "POST", "received", {"expected_bytes": expected_bytes})
        return int(_number(self.name, found, "received_bytes"))

    def counters(self) -> dict[str, Any]:
        """Return what its interfaces have carried, as `interface_counters` does.

        Its ticket has to be for that.
        """
        found = self._asked(self._testing, "POST", COUNTERS, {})
        at_s, interfaces = _number(self.name, found, "at_s"), found.get("interfaces")
        if (
            not isinstance(interfaces, dict)
            or len(interfaces) > MOST_INTERFACES
            or not all(map(_are_bytes, interfaces.values()))
        ):
            raise TransferError(f"{self.name}: its answer holds no counters")
        named = {safe_text(name)[:MOST_NAME]: counts for name, counts in interfaces.items()}
        return {"at_s": at_s, "interfaces": named}

    def arrived(self) -> Arrived:
        """Return which packets of a test have come there, and when."""
        packets: list[tuple[int, int]] = []
        while True:
            asked = {"first": len(packets), "n": PAGE, "wait_s": 0.0}
            found = self._asked(self._testing, "POST", "arrived", asked)
            page, was_set = arrivals_of(found.get("arrivals")), found.get("clock_was_set")
            if page is None or was_set is None:
                raise TransferError(f"{self.name}: malformed report on packets")
            packets += page
            if len(page) < PAGE or len(packets) > MOST_PACKETS:
                return Arrived(packets, bool(was_set))

    def close(self) -> None:
        """End the connections, and with them what was leased."""
        self._leasing.close()
        self._testing.close()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Name the host where its connection fails: messages know its address."""
        try:
            yield
        except TransferError as error:
            raise TransferError(f"{self.name}: {error}") from None

    def _clock_ahead_s(self) -> float:
        """Return how far its clock is ahead of this host's."""
        with self._naming():
            answer = self._testing.get("/measure/clock")
        found = _tree(self.name, answer.status, answer.body)
        return _number(self.name, found, "time_s") - time.time()

    def _asked(
        self, asker: Asker, method: str, path: str, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        data = json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}"}
        with self._naming():
            answer = asker.ask(method, f"/measure/{path}", headers, [data], len(data))
        tree = _tree(self.name, answer.status, answer.body)
        if answer.status != 200:
            raise RefusedError(
                f"{self.name}: refuses: {safe_text(str(tree.get('why', answer.status)))}",
                answer.status,
            )
        return tree


def _tree(name: str, status: int, body: bytes) -> dict[str, Any]:
    tree = peer_json(body)
    if isinstance(tree, dict):
        return tree
    if status in (401, 404):
        # Its core knows no such path.
        raise RefusedError(
            f"{name}: its agent's file has no [measure], so its agent tests nothing; write one, "
            "and start the agent again",
            status,
        )
    raise TransferError(f"{name}: its answer is not a JSON object; is it an agent of this version?")


def _number(name: str, tree: Mapping[str, Any], key: str) -> float:
    value = tree.get(key)
    if not isinstance(value, int | float) or value is True or not 0 <= value < 2**62:
        raise TransferError(f"{name}: its answer must say {key}, a number")
    return value


def _are_bytes(value: Any) -> bool:
    """Return whether it is what was received and what was sent."""
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and all(type(each) is int and 0 <= each < 2**63 for each in value)


def _fingerprint_at(entry: AgentEntry) -> str:
    """Return the fingerprint of an agent's certificate; of one that an authority signed, ask it."""
    if entry.fingerprint is not None:
        return entry.fingerprint
    deadline = Deadline(TIMEOUT_S)
    plain = dial([entry.address], entry.name, deadline)
    connection = start_tls(plain, client_context(entry.ca), entry.address[0], entry.name, deadline)
    with connection:
        require_fingerprint(connection, None, entry.name)
        return fingerprint_of(connection.getpeercert(binary_form=True) or b"")
