"""Runs a log: passes events to its core and carries out the actions it returns.

What cannot be written is tried again each second, and meanwhile all who ask for something to be
kept are told so, with a time: nothing is acknowledged that is not on the disk, and nobody waits
without a word. Where the disk cannot even be read, the service ends: all that counts is on it, and
whoever watches it starts it again.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.assignment.loads import LOADS_PATH, MOST_AGE_S, read_loads
from datacollect.bistro.formats.custody.verdicts import COLLECTED, Verdict, beginning_of
from datacollect.bistro.formats.log.checkpoints import SIZE_STOP
from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.formats.log.sizes import STRETCH, sizes_data
from datacollect.bistro.formats.log.tiles import Tile
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, amendments_data
from datacollect.bistro.http.clocks import now
from datacollect.bistro.http.exchange import BYTES_TYPE, JSON_TYPE, TEXT_TYPE, Asked, Reply
from datacollect.bistro.log_service import messages
from datacollect.bistro.log_service.core import ServiceCore
from datacollect.bistro.log_service.proving import proof_of
from datacollect.bistro.log_service.requests import OF_OWNER, acknowledged, post_of
from datacollect.bistro.log_service.server.mirroring import Mirroring
from datacollect.errors import ProblemError, StoreError
from datacollect.files.held_folder import NoRoomError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from datacollect.bistro.formats.assignment.loads import Loads
    from datacollect.bistro.http.config import ServiceConfig
    from datacollect.bistro.log_service.messages import (
        Action,
        Answer,
        AskWitness,
        Publish,
        Store,
        StoreHead,
    )
    from datacollect.bistro.log_service.store import LogStore

# When what could not be written is tried again.
RETRY_S = 1.0
# How long what is under way may take in the end.
ENDS_WITHIN_S = 0.5
# When to ask for a proof again: a checkpoint comes each second, witnesses take a moment.
PROOF_AGAIN_S = 1
MIRRORED_PATH = "/mirrored"
# Each size has one address.
_SIZE = re.compile(r"0|[1-9][0-9]{0,17}")
# A core that wants to be told at once is told after this.
LEAST_WAIT_S = 0.001


class Sequencer:
    """The keeper of a log, in an event loop.

    Parameters
    ----------
    config : ServiceConfig
    store : LogStore
    ask_url : coroutine function
        Sends a body to a witness's URL; returns status and body, status None: no answer.
    report : function
        Takes each line of the log, in words.

    Raises
    ------
    ProblemError
        The key is of none of the event's logs, or the folder's log is damaged.
    """

    def __init__(
        self,
        config: ServiceConfig,
        store: LogStore,
        ask_url: Callable[[str, bytes], Awaitable[tuple[int | None, bytes]]],
        report: Callable[[str], None],
    ) -> None:
        self._event_data, self._store = config.event_data, store
        self._ask_url, self._report = ask_url, report
        self._core = ServiceCore(config.event, config.key, store.kept(), store)
        # Of the destination: what is asked for by an entry is the word that it was collected.
        self._is_verdicts = self._core.log == config.event.verdicts
        # The newest table of loads, and as it was signed: it is worth nothing after a minute.
        self._loads: tuple[Loads, bytes] | None = None
        self._mirroring = Mirroring(
            config.mirrors,
            self._core.log,
            config.event,
            store.tile,
            store.published_after,
            report,
        )
        self._n_requests = 0
        self._waiting: dict[int, tuple[asyncio.Future[Reply], Callable[[Answer], Reply]]] = {}
        # What cannot be written now, by what was to be done.
        self._troubles: dict[str, StoreError] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wake_s = math.inf
        self.broken: asyncio.Future[None]

    def start(self) -> None:
        """Begin, in the running loop; `broken` has an exception once it cannot go on."""
        self.broken = asyncio.get_running_loop().create_future()
        self._mirroring.start()
        self._tell(messages.Ticked(now()))

    async def stop(self) -> None:
        """End; who still waits is told to come again."""
        if self._timer is not None:
            self._timer.cancel()
        if self._tasks:
            # Connections that are cancelled while they are made may be left open.
            await asyncio.wait(self._tasks, timeout=ENDS_WITHIN_S)
        for task in self._tasks:
            task.cancel()
        if not self.broken.cancel() and not self.broken.cancelled():
            self.broken.exception()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._mirroring.close()
        self._answer_all(Reply.words(503, "the service is stopping; try again", 1))

    @property
    def log(self) -> str:
        """The log's verifier key."""
        return self._core.log.text

    @property
    def published_size(self) -> int:
        """Entries of the largest published checkpoint; -1: there is none."""
        return self._core.published_size

    @property
    def missing(self) -> str:
        """Return what the folder lacks of what witnesses have signed, in words; empty: nothing."""
        return self._core.missing

    async def ask(self, asked: Asked) -> Reply:
        """Return the answer to a request, in every case."""
        try:
            if asked.kind == "get":
                return self._got(asked.path)
            if asked.kind == "loads":
                return self._take_loads(asked.body)
            post = post_of(asked)
            assert post is not None
            event, reply = post.event, post.reply
            assert event is not None
            return await self._kept(
                lambda n: event(now(), n, asked), lambda answer: reply(answer, asked)
            )
        except StoreError as error:
            return _trouble_reply(error)
        except ProblemError as error:
            # A tile is missing: whoever runs it must know.
            self._report(str(error))
            return Reply.words(503, "the log's folder is damaged; ask another service", 60)

    async def record(self, entries: Sequence[bytes]) -> Reply:
        """Keep entries of the log's owner; return the answer once they are on the disk, or not."""
        rows = tuple(entries)
        return await self._kept(
            lambda n: messages.RecordAsked(now(), n, rows),
            lambda answer: acknowledged(answer, OF_OWNER),
        )

    # What is to be kept -----------------------------------------------------------------------

    async def _kept(
        self, event_of: Callable[[int], messages.Event], reply: Callable[[Answer], Reply]
    ) -> Reply:
        if self._troubles:
            return _trouble_reply(next(iter(self._troubles.values())))
        self._n_requests += 1
        number = self._n_requests
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future, reply
        try:
            self._tell(event_of(number))
            return await future
        finally:
            self._waiting.pop(number, None)

    def _tell(self, event: messages.Event) -> None:
        try:
            actions = self._core.handle(event)
        except (StoreError, ProblemError) as error:
            self._break(error)
            return
        for action in actions:
            self._do(action)
        self._wait(self._core.wake_s)

    def _wait(self, wake_s: float | None) -> None:
        """Have the core told that time has passed, at the latest at an instant."""
        # A timer that comes too early asks for another: most events need none of their own.
        if wake_s is None or wake_s >= self._wake_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wake_s = wake_s
        wait_s = max(wake_s - now().monotonic_s, LEAST_WAIT_S)
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._tick)

    def _tick(self) -> None:
        self._wake_s = math.inf
        self._tell(messages.Ticked(now()))

    def _break(self, error: BaseException) -> None:
        if not self.broken.done():
            self.broken.set_exception(error)
        self._answer_all(Reply.words(503, "the service has failed; try again, or ask another", 30))

    def _do(self, action: Action) -> None:
        match action:
            case messages.Answer(request):
                if request in self._waiting:
                    self._answer(request, self._waiting[request][1](action))
            case messages.Refuse(request, status, text, again_s):
                self._answer(request, Reply.refusing(status, text, again_s))
            case messages.Warn(text):
                self._report(text)
            case messages.AskWitness():
                self._begin(self._ask_witness(action))
            case messages.Store():
                self._begin(self._store_entries(action))
            case messages.StoreHead():
                self._begin(self._store_head(action))
            case messages.Publish():
                self._begin(self._publish(action))

    def _answer(self, request: int, reply: Reply) -> None:
        # Who was told to come again meanwhile is not there any more.
        future, _ = self._waiting.get(request, (None, None))
        if future is not None and not future.done():
            future.set_result(reply)

    def _answer_all(self, reply: Reply) -> None:
        for request in [*self._waiting]:
            self._answer(request, reply)

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._break(error)

    async def _ask_witness(self, action: AskWitness) -> None:
        await self._mirroring.hold(action.body)
        status, body = await self._ask_url(action.url, action.body)
        self._tell(messages.WitnessAnswered(now(), action.witness, status, body))

    async def _store_entries(self, action: Store) -> None:
        await self._durably("entries", lambda: self._store.store(action))
        self._tell(messages.Stored(now(), action.first + len(action.rows)))

    async def _store_head(self, action: StoreHead) -> None:
        def write_tiles() -> Awaitable[None]:
            # Many files: others are answered meanwhile.
            return asyncio.to_thread(self._store.store_tiles, action)

        await self._durably("tiles", write_tiles)
        await self._durably("a checkpoint", lambda: self._store.store_head(action))
        self._tell(messages.HeadStored(now(), action.size))

    async def _publish(self, action: Publish) -> None:
        await self._mirroring.keep(action.note)
        await self._durably("cosignatures", lambda: self._store.publish(action))
        self._tell(messages.Published(now(), action.size))

    async def _durably(self, what: str, write: Callable[[], Awaitable[None] | None]) -> None:
        """Have something written, again and again until that is done; say what is the matter."""
        while True:
            try:
                writing = write()
                if writing is not None:
                    await writing
            except StoreError as error:
                if what not in self._troubles:
                    self._report(f"{what} cannot be kept, and nothing is accepted: {error}")
                self._troubles[what] = error
                self._answer_all(_trouble_reply(error))
                await asyncio.sleep(RETRY_S)
            else:
                if self._troubles.pop(what, None) is not None and not self._troubles:
                    self._report("the disk works again; the service continues")
                return

    # What is published ------------------------------------------------------------------------

    def _got(self, path: str) -> Reply:
        name, _, rest = path.removeprefix("/").partition("/")
        if name == "proof":
            return self._proof(rest)
        if name == "verdict" and self._is_verdicts:
            return self._verdict(rest)
        if name == "checkpoint" and not rest:
            return _or_absent(self._store.published(), TEXT_TYPE)
        if name == "checkpoints" and _SIZE.fullmatch(rest):
            return _or_absent(self._store.published(int(rest)), TEXT_TYPE)
        if name == "sizes" and _SIZE.fullmatch(rest):
            return self._sizes(int(rest))
        if name == "tile":
            return self._tile(path.removeprefix("/"))
        if path == MIRRORED_PATH:
            status = self._mirroring.status()
            return _or_absent(None if status is None else json.dumps(status).encode(), JSON_TYPE)
        if path == "/amendments" and not self._is_verdicts:
            return self._amendments()
        if path == LOADS_PATH:
            is_fresh = self._loads is not None and self._loads[0].is_fresh(now().unix_s)
            return _or_absent(self._loads[1] if self._loads and is_fresh else None, TEXT_TYPE)
        if path == "/event":
            return Reply(200, self._event_data, TEXT_TYPE)
        return _or_absent(None, TEXT_TYPE)

    def _take_loads(self, body: bytes) -> Reply:
        """Take a table of loads, to pass it on; an older one changes nothing."""
        try:
            loads = read_loads(body, self._core.event)
        except ProblemError as error:
            return Reply.words(403, str(error))
        if not loads.is_fresh(now().unix_s):
            what = (
                f"the table's time must lie within the last {MOST_AGE_S} s by this clock; "
                "sign another"
            )
            return Reply.words(409, what)
        if self._loads is None or self._loads[0].number < loads.number:
            self._loads = loads, body
        return Reply(200, b"")

    def _proof(self, digits: str) -> Reply:
        entry = _entry_of(digits)
        if entry is None:
            return _no_entry()
        if self._is_verdicts:
            entry = Verdict(self._core.event.id, entry, COLLECTED).data
        index = self._store.index_of(entry)
        if index is None:
            what = "it was not collected" if self._is_verdicts else "hand it in"
            return Reply.words(404, f"this log does not hold that entry; {what}")
        proof = proof_of(index, self._store)
        if proof is None:
            what = "the entry is kept; witnesses have not signed yet"
            return Reply.words(202, what, PROOF_AGAIN_S)
        return Reply(200, proof.data)

    def _verdict(self, digits: str) -> Reply:
        """Tell what became of an entry by the last word on it, and prove that it is logged."""
        entry = _entry_of(digits)
        if entry is None:
            return _no_entry()
        last = self._store.last_beginning(beginning_of(self._core.event.id, entry))
        if last is None:
            return Reply.words(404, "there is no verdict on that entry yet; try again later")
        index, verdict = last
        proof = proof_of(index, self._store)
        tree = {
            "verdict": verdict.decode(),
            "proof": None if proof is None else proof.data.decode(),
        }
        return Reply(200, json.dumps(tree).encode(), JSON_TYPE)

    def _sizes(self, stretch: int) -> Reply:
        # SQLite counts no further.
        start = min(stretch * STRETCH, SIZE_STOP - STRETCH)
        sizes = self._store.published_sizes(start, start + STRETCH)
        return _or_absent(sizes_data(sizes) or None, TEXT_TYPE)

    def _tile(self, path: str) -> Reply:
        try:
            tile = Tile.parse(path)
        except ProblemError as error:
            return Reply.words(404, str(error))
        return _or_absent(self._store.published_tile(tile), BYTES_TYPE)

    def _amendments(self) -> Reply:
        found = []
        for index, note in self._store.amendments():
            proof = proof_of(index, self._store)
            found.append(PublishedAmendment(note, () if proof is None else (proof,)))
        return Reply(200, amendments_data(self._core.event.id, found), JSON_TYPE)


def _entry_of(digits: str) -> bytes | None:
    try:
        entry = bytes.fromhex(digits)
    except ValueError:
        return None
    return entry if len(entry) == ENTRY_BYTES and entry.hex() == digits else None


def _no_entry() -> Reply:
    return Reply.words(400, f"an entry is {2 * ENTRY_BYTES} lowercase hexadecimal digits")


def _trouble_reply(error: StoreError) -> Reply:
    if isinstance(error, NoRoomError):
        return Reply.words(507, "the service's disk is full; try again, or ask another", 30)
    return Reply.words(503, "the service's disk fails; try again, or ask another", 30)


def _or_absent(data: bytes | None, content_type: str) -> Reply:
    if data is None:
        return Reply.words(404, "there is nothing at this address")
    return Reply(200, data, content_type)
