"""Spool of a relay: fetches sealed pieces as collectors order, keeps them, gives them back."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError, RefusedError
from datacollect.files.held_folder import Held
from datacollect.net.fan_out import start_thread
from datacollect.net.safe_text import safe_text
from datacollect.net.tickets import SPOOL
from datacollect.transfer.agent.asked import JSON, OCTETS, by_ticket
from datacollect.transfer.spool import messages
from datacollect.transfer.spool.conversation import Conversation
from datacollect.transfer.spool.drops import take_drops
from datacollect.transfer.spool.store import DROPPED, GONE, NO_ROOM, SpoolStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from datacollect.net.tickets import Ticket
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.shell.handling import Exchange, Handler
    from datacollect.transfer.spool.messages import AskedPiece, Order
    from datacollect.transfer.spool.store import Added

TICK_S = 1.0
# How many pieces a source is asked for before the first has come.
AHEAD = 4
# So long an order may take: whoever asked waits no longer either.
ORDER_S = 120.0
# A connection to a source is used again within this time.
QUIET_S = 15.0


class Spooling:
    """Keeps sealed pieces for collectors.

    Parameters
    ----------
    config : AgentConfig
    collectors : callable
        Returns whose tickets count now.
    log : callable
        Takes each line of the log, a JSON object.

    Raises
    ------
    ProblemError
        The folder is another agent's, or another process has it.
    StoreError
        The disk is full, or fails.
    """

    def __init__(
        self,
        config: AgentConfig,
        collectors: Callable[[], Collection[str]],
        log: Callable[[str], None],
    ) -> None:
        assert config.spool is not None
        self._name, self._connect_to = config.name, config.connect_to
        self._timeout_s = config.limits.connect_s + config.limits.head_s
        self._folder, self._log = config.spool.folder, log
        self._store = SpoolStore(Held(self._folder), config.name, config.spool.most_bytes)
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, str], list[tuple[float, Conversation]]] = {}
        answers = {
            messages.KEEP: self._keep,
            messages.LIST: self._list,
            messages.FETCH: self._fetch,
            messages.FORGET: self._forget,
            messages.END: self._end,
        }
        self.handlers: dict[str, Handler] = {
            path: by_ticket(SPOOL, self._name, collectors, answer)
            for path, answer in answers.items()
        }
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        try:
            start_thread(self._thread)
        except BaseException:
            self._store.close()
            raise

    def close(self) -> None:
        """Let others have the folder."""
        self._is_over.set()
        self._thread.join()
        with self._lock:
            idle, self._idle = self._idle, {}
        for each in idle.values():
            for _, conversation in each:
                conversation.close()
        self._store.close()

    def _run(self) -> None:
        """Drop what is too old, and what the operator wants dropped."""
        while not self._is_over.wait(TICK_S):
            try:
                for number in self._store.expire(time.time()):
                    self._note("spool expired", number)
                for name in take_drops(self._folder):
                    for each in self._store.numbers_of(name):
                        self._store.drop(each, DROPPED)
                        self._note("spool dropped", each)
            except (DatacollectError, OSError) as error:
                self._say("failed", why=f"spool: {error}")

    def _note(self, what: str, number: int) -> None:
        found = self._store.collection(number)
        if found is not None:
            lost = {"expired": list(found.expired), "dropped": list(found.dropped)}
            self._say(what, collection=found.name, **lost)

    def _say(self, what: str, **facts: object) -> None:
        shown = {k: safe_text(v) if isinstance(v, str) else v for k, v in facts.items()}
        self._log(json.dumps({"time_s": round(time.time(), 3), "what": what, **shown}))

    # Answers --------------------------------------------------------------------------------------

    def _number(self, ticket: Ticket) -> int:
        number = self._store.number_of(ticket.issuer, ticket.collection)
        if number is None:
            raise RefusedError("this agent keeps nothing of this collection", GONE)
        return number

    def _list(self, _: Exchange, ticket: Ticket, body: bytes) -> tuple[str, bytes]:
        after = messages.parse_list(body)
        number = self._store.number_of(ticket.issuer, ticket.collection)
        if number is None:
            return JSON, messages.page_body((), None, is_last=True)
        pieces = self._store.pieces(number, after, messages.MOST_LISTED)
        is_last = len(pieces) < messages.MOST_LISTED
        found = self._store.collection(number) if is_last else None
        return JSON, messages.page_body(pieces, found, is_last=is_last)

    def _fetch(self, _: Exchange, ticket: Ticket, body: bytes) -> tuple[str, bytes]:
        piece, number = messages.parse_fetch(body), self._number(ticket)
        return OCTETS, self._store.fetch(number, piece.source, piece.index, piece.root)

    def _forget(self, _: Exchange, ticket: Ticket, body: bytes) -> tuple[str, bytes]:
        self._store.forget(self._number(ticket), messages.parse_forget(body))
        return JSON, b"{}"

    def _end(self, _: Exchange, ticket: Ticket, body: bytes) -> tuple[str, bytes]:
        number = self._store.number_of(ticket.issuer, ticket.collection)
        if number is not None:
            self._store.end(number)
            self._say("spool ended", collection=ticket.collection)
        return JSON, b"{}"

    # Orders ---------------------------------------------------------------------------------------

    def _keep(self, exchange: Exchange, ticket: Ticket, body: bytes) -> tuple[str, bytes]:
        order = messages.parse_order(body)
        if order.source not in self._connect_to:
            raise RefusedError(
                "this agent may not connect to the source of the pieces; write the source into "
                "`connect_to` of the agent's file, and restart the agent",
                403,
            )
        now_s = time.time()
        if order.until_s <= now_s:
            raise RefusedError("the order to keep pieces has expired", 400)
        number = self._store.order(ticket.issuer, ticket.collection, order.until_s, now_s)
        keeping = _Keeping(self._store, number, order, exchange)
        conversation = None
        try:
            conversation = self._conversation(order)
            # A source that sends a byte a second would hold it for ever.
            limit = threading.Timer(ORDER_S, conversation.abort)
            limit.daemon = True
            start_thread(limit)
            try:
                keeping.run(conversation)
            finally:
                limit.cancel()
        except DatacollectError as error:
            if conversation is not None:
                conversation.close()
            keeping.break_off(str(error))
        else:
            self._set_idle(order, conversation)
        outcome = keeping.outcome()
        if not outcome.kept and keeping.status == NO_ROOM:
            raise RefusedError(outcome.refused[0][1], NO_ROOM)
        return JSON, messages.outcome_body(outcome)

    def _conversation(self, order: Order) -> Conversation:
        """Return a connection to a source: one that is there, or a new one."""
        now_s = time.monotonic()
        with self._lock:
            waiting = self._idle.get((order.source, order.fingerprint), [])
            while waiting:
                since_s, found = waiting.pop()
                if now_s - since_s < QUIET_S and found.is_quiet:
                    return found
                found.close()
        address = self._connect_to[order.source]
        return Conversation(order.source, address, order.fingerprint, timeout_s=self._timeout_s)

    def _set_idle(self, order: Order, conversation: Conversation) -> None:
        with self._lock:
            waiting = self._idle.setdefault((order.source, order.fingerprint), [])
            waiting.append((time.monotonic(), conversation))


class _Keeping:
    """Carries one order out.

    Attributes
    ----------
    status : int
        By which the last piece was refused.
    """

    def __init__(self, store: SpoolStore, number: int, order: Order, exchange: Exchange) -> None:
        self._store, self._number, self._order = store, number, order
        self._throttle = exchange.throttle
        self.status = 0
        self._added: list[tuple[int, Added]] = []
        self._refused: dict[int, str] = {}

    def run(self, conversation: Conversation) -> None:
        """Fetch the pieces, in their order; room for each is reserved before it is asked for."""
        asked: deque[AskedPiece] = deque()
        try:
            for piece in self._order.pieces:
                if not self._reserve(piece):
                    continue
                asked.append(piece)
                body = messages.asked_body(piece)
                conversation.send(messages.SEALED, self._order.ticket, body)
                if len(asked) >= AHEAD:
                    self._take(conversation, asked)
            while asked:
                self._take(conversation, asked)
        finally:
            for piece in asked:
                self._store.let_go(self._sealed_bytes(piece))

    def _reserve(self, piece: AskedPiece) -> bool:
        if self.status == NO_ROOM:
            why = next(reversed(self._refused.values()))
        else:
            try:
                self._store.reserve(self._sealed_bytes(piece))
            except RefusedError as error:
                self.status, why = error.status, str(error)
            else:
                return True
        self._refused[piece.index] = why
        return False

    def _sealed_bytes(self, piece: AskedPiece) -> int:
        return piece.sealed_of(self._order.source).sealed_bytes

    def _take(self, conversation: Conversation, asked: deque[AskedPiece]) -> None:
        piece = asked[0].sealed_of(self._order.source)
        try:
            sealed = conversation.receive(piece.sealed_bytes)
        except RefusedError as error:  # by the source: the connection goes on
            asked.popleft()
            self._store.let_go(piece.sealed_bytes)
            self._refused[piece.index] = str(error)
            return
        asked.popleft()
        if self._throttle is not None:
            time.sleep(self._throttle.owe(len(sealed)))
        if len(sealed) != piece.sealed_bytes:
            self._store.let_go(piece.sealed_bytes)
            self._refused[piece.index] = f"{conversation.name}: sent another length"
            return
        try:
            self._added.append((piece.index, self._store.add(self._number, piece, sealed)))
        except RefusedError as error:
            self._store.let_go(piece.sealed_bytes)
            self.status = error.status
            self._refused[piece.index] = str(error)

    def break_off(self, why: str) -> None:
        """Nothing more comes of it."""
        settled = self._refused.keys() | {index for index, _ in self._added}
        self._refused |= {p.index: why for p in self._order.pieces if p.index not in settled}

    def outcome(self) -> messages.Outcome:
        """Return what is kept, once it is on the disk."""
        kept = []
        for index, added in self._added:
            try:
                self._store.wait(added, time.time())
            except RefusedError as error:
                self.status = error.status
                self._refused[index] = str(error)
            else:
                kept.append(index)
        return messages.Outcome(tuple(kept), tuple(self._refused.items()))
