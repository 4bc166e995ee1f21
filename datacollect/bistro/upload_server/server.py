"""A bistro from its agent's file to its end: one core, one store, one thread that commits groups.

Whoever is answered waits until the group with its request is on the disk. While one group is
synced, the next one gathers: many small uploads share a sync.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.formats.receipt.upload_wish import Admission, LateError
from datacollect.bistro.upload_server import messages
from datacollect.bistro.upload_server.amending import Amending
from datacollect.bistro.upload_server.core import CHECKSUM, NO_ROOM, Accepting
from datacollect.bistro.upload_server.limits import PostLimits
from datacollect.bistro.upload_server.messages import Append, Cut, Refuse, Tell
from datacollect.bistro.upload_server.running_hash import RunningHash
from datacollect.bistro.upload_server.store import UploadStore
from datacollect.errors import ProblemError, RefusedError, StoreError, TransferError
from datacollect.files.documents import document_name, read_bytes
from datacollect.files.held_folder import Held
from datacollect.net.keys import read_private_key

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from datacollect.bistro.formats.event.event import Bistro as EventBistro
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.upload_wish import Wish
    from datacollect.bistro.upload_server.messages import Event as Told
    from datacollect.bistro.upload_server.messages import Upload
    from datacollect.bistro.upload_server.requests import BistroPost
    from datacollect.bistro.upload_server.table import AcceptConfig
    from datacollect.transfer.agent.shell.handling import Exchange

TICK_S = 0.5
# After the disk has failed it is tried again so much later.
AGAIN_S = 2.0
# How long a note may take to come.
NOTE_S = 20.0
# So long waits each push of an entry of which some was spoilt: others are served meanwhile.
PAUSE_S = 2.0
UNSURE = 503


class Bistro:
    """Takes uploads for an event; its methods may be called from any thread.

    Parameters
    ----------
    config : AcceptConfig
    log : callable
        Takes each line of the log, a JSON object.
    tls : ssl.SSLContext, optional
        How the event's services are verified; by default as usual.

    Attributes
    ----------
    name : str
        In the event.
    event : Event
        As far as its services have said that it was amended.

    Raises
    ------
    ProblemError
        The event does not name it, or the folder is another's.
    StoreError
        The disk is full, or fails.
    TransferError
        This host has no more threads.
    """

    def __init__(
        self,
        config: AcceptConfig,
        log: Callable[[str], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        event = read_event(read_bytes(config.event), document_name(config.event))
        require_current(event, document_name(config.event))
        self._key = read_private_key(config.receipt_key)
        with ExitStack() as undo:
            held = undo.enter_context(closing(Held(config.folder)))
            self._amending = Amending(event, config, tls)
            self.event = self._amending.event
            own = self._own() or self._added(document_name(config.event))
            undo.pop_all()
        self.name = own.name
        self.most_bytes = config.most_bytes
        self.admission = Admission(self.event, self._key.public, config.most_bytes)
        self.limits = PostLimits()
        self._expire_s, self._keep_s = config.expire_s, config.keep_s
        self._log = log
        self._store = UploadStore(held, self.event, own, self._key)
        self._lock = threading.Lock()
        self._work, self._kept = threading.Condition(self._lock), threading.Condition(self._lock)
        self._exchanges: dict[int, Exchange] = {}
        # Of uploads that were pushed since the start, and are not whole on the disk.
        self._hashes: dict[str, RunningHash] = {}
        self._n_requests = self._n_added = self._n_kept = 0
        # Grows each time the disk has failed: what was under way before is lost.
        self._era = 0
        self._group_s = 0.0
        self._is_ended = False
        self._ending = threading.Event()
        self._core: Accepting | None = None
        self._thread = threading.Thread(target=self._run, name="bistro", daemon=True)
        try:
            self._begin()
            self._amending.begin(self._amend, lambda why: self._note("services", why))
            self._thread.start()
        except BaseException as error:
            self._amending.close()
            self._store.close()
            if isinstance(error, RuntimeError):  # no more threads to be had
                raise TransferError(
                    f"accept: {error}; allow this agent more threads, and start it again"
                ) from None
            raise

    def _own(self) -> EventBistro | None:
        """Return what the event says of this bistro."""
        return next((each for each in self.event.bistros if each.key == self._key.public), None)

    def _added(self, event_file: str) -> EventBistro:
        """Return the same where an amendment has added this bistro since."""
        self.event, _ = self._amending.ask()
        own = self._own()
        if own is None:
            raise ProblemError(
                f"accept: {event_file} must name a bistro with the key {self._key.public}, which "
                "belongs to receipt_key, but neither that file nor an amendment does; use the key "
                "whose public half the organiser has"
            )
        return own

    def _amend(self, event: Event) -> None:
        """Go by the event as it is now."""
        with self._lock:
            self.event = event
            self.admission = Admission(event, self._key.public, self.most_bytes)
            if self._core is not None:
                self._core.amend(event)
        self._note("amended", f"the deadline is {event.clock_text(event.deadline_s)}")

    def _begin(self) -> None:
        kept = self._store.kept(time.time())
        self._core = Accepting(
            self.event,
            self.name,
            self.most_bytes,
            self._expire_s,
            kept,
            self._store,
            self._keep_s,
        )

    def close(self) -> None:
        """Have all that was taken on the disk, and let others have the folder."""
        self._amending.close()
        self._ending.set()
        with self._lock:
            self._is_ended = True
            self._work.notify()
        self._thread.join()
        self._store.close()

    # What handlers ask ------------------------------------------------------------------------

    def enter(self, exchange: Exchange) -> int:
        """Return a number for a request."""
        with self._lock:
            self._n_requests += 1
            self._exchanges[self._n_requests] = exchange
            return self._n_requests

    def leave(self, request: int) -> None:
        """Forget a request, which is answered or has ended."""
        with self._lock:
            self._exchanges.pop(request, None)

    def wish_of(self, metadata: str, size: int, now_s: float, address: str) -> Wish:
        """Return what may begin: see `Admission.wish_of`; it counts for a ticket, or an address.

        Nobody is too late before the services were asked once more whether the deadline was moved.

        Raises
        ------
        RefusedError
            It may not; 429 where there were too many, 503 where services do not let themselves be
            asked now.
        """
        try:
            signed = self.admission.signed_wish(metadata, size, now_s)
        except RefusedError:
            self.limits.count_address(address, time.monotonic())
            raise
        if self.event.admission == "tickets":
            self.limits.count_ticket(signed.wish.ticket, time.monotonic())
        else:
            self.limits.count_address(address, time.monotonic())
        try:
            self.admission.require_in_time(signed)
        except LateError:
            if not self._amending.look():
                text = "services have not said yet whether the deadline was moved; try again"
                raise RefusedError(text, UNSURE) from None
            self.admission.require_in_time(signed)
        return signed.wish

    def free_bytes(self) -> int:
        """Return how much the disk has left.

        Raises
        ------
        RefusedError
            It cannot be asked.
        """
        try:
            return self._store.free_bytes()
        except StoreError:
            raise RefusedError(
                "this bistro's disk fails; continue at another bistro", NO_ROOM
            ) from None

    def ask(self, event: Told, data: bytes | bytearray = b"") -> Tell | None:
        """Tell the core; return what it answers, once all that the answer promises is kept.

        Raises
        ------
        RefusedError
            It refuses; 507 where the disk has failed.
        """
        with self._lock:
            answer, n_added, era = self._told(event, data)
            self._wait(n_added, era)
        if isinstance(answer, Refuse):
            raise RefusedError(answer.text, answer.status)
        return answer

    def _wait(self, n_added: int, era: int) -> None:
        """Wait until so much is on the disk."""
        while self._n_kept < n_added and era == self._era:
            self._kept.wait()
        if era != self._era:
            raise RefusedError(
                "this bistro's disk has failed; continue, here or at another bistro", NO_ROOM
            )

    def _told(self, event: Told, data: bytes | bytearray) -> tuple[Refuse | Tell | None, int, int]:
        if self._core is None or self._is_ended:
            raise RefusedError("this bistro's disk has failed; continue at another bistro", NO_ROOM)
        answer: Refuse | Tell | None = None
        try:
            for action in self._core.handle(event):
                if isinstance(action, Refuse | Tell):
                    answer = action
                elif isinstance(action, Cut):
                    # It may have left already, by an error of its own.
                    stale = self._exchanges.get(action.request)
                    if stale is not None:
                        stale.cut("its upload continues over another connection")
                else:
                    self._store.add(action, data if isinstance(action, Append) else b"")
                    if isinstance(action, messages.Forget):
                        self._hashes.pop(action.upload, None)
                    self._n_added += 1
        except StoreError as error:
            self._failed(error)
            raise RefusedError(
                "this bistro's disk is full or failing; continue at another bistro", NO_ROOM
            ) from None
        self._work.notify()
        return answer, self._n_added, self._era

    def tell(self, event: Told, data: bytes | bytearray = b"") -> Tell | None:
        """Tell the core; return what it answers, whether anything is kept yet or not.

        Raises
        ------
        RefusedError
        """
        with self._lock:
            answer, _, _ = self._told(event, data)
        if isinstance(answer, Refuse):
            raise RefusedError(answer.text, answer.status)
        return answer

    def has_spoilt(self, upload: str) -> bool:
        """Return whether some of the entry of an upload under way was sent wrong, or given up."""
        with self._lock:
            return self._core is not None and self._core.has_spoilt(upload)

    def pause(self) -> None:
        """Wait before the next bytes of who has spoilt some; no longer than there is a bistro."""
        self._ending.wait(PAUSE_S)

    def begin_push(self, request: int, upload: str, offset: int, n_bytes: int) -> Push:
        """Let a request push bytes from an offset on.

        Raises
        ------
        RefusedError
        """
        with self._lock:
            answer, _, _ = self._told(messages.WriteAsked(request, upload, offset, n_bytes), b"")
            if isinstance(answer, Refuse):
                raise RefusedError(answer.text, answer.status)
            assert self._core is not None
            size = self._core.size_of(upload)
            hash_ = self._hashes.setdefault(upload, RunningHash())
        return Push(self, request, upload, offset, size, hash_)

    def hash_rest(self, upload: str, hash_: RunningHash) -> None:
        """Read back what is not hashed of an upload that has come; who calls has the hash's lock.

        Raises
        ------
        RefusedError
            It cannot be read.
        """
        with self._lock:
            self._wait(self._n_added, self._era)
        try:
            hash_.catch_up(self._store.bytes_of(upload, hash_.n_bytes))
        except StoreError as error:
            raise RefusedError(
                f"what has arrived of the upload cannot be read: {error}", 500
            ) from None

    def receipt_of(self, upload: Upload) -> str:
        """Return the token that says what is held."""
        assert upload.sha256 is not None
        assert upload.batch is not None
        assert upload.time_s is not None
        wish = upload.wish
        return BistroReceipt(
            self.event.id,
            self.name,
            wish.commitment.entry,
            wish.size,
            upload.sha256,
            wish.sealed_anew,
            upload.batch,
            upload.time_s,
        ).signed(self._key)

    # The thread that commits ------------------------------------------------------------------

    def _run(self) -> None:
        """Commit groups until the end; whatever ends it, nobody waits for ever."""
        try:
            self._commit_groups()
        except BaseException as error:  # noqa: BLE001 - noted, whatever it is
            with self._lock:
                self._is_ended = True
                self._failed(error)

    def _commit_groups(self) -> None:
        next_s = time.monotonic()
        while True:
            with self._lock:
                if self._n_kept == self._n_added and not self._is_ended:
                    self._work.wait(max(next_s - time.monotonic(), 0.0))
                if self._is_ended and (self._n_kept == self._n_added or self._core is None):
                    return
                if time.monotonic() >= next_s:
                    next_s = time.monotonic() + (TICK_S if self._core else AGAIN_S)
                    self._tick()
                group, n_added = self._store.take(), self._n_added
            if group:
                self._commit(group, n_added)

    def _tick(self) -> None:
        try:
            if self._core is None:
                self._begin()
            disk_bytes = None
            with suppress(StoreError):
                disk_bytes = self._store.free_bytes()
            self._told(messages.Ticked(time.time(), disk_bytes), b"")
        except StoreError as error:
            self._note("failed", str(error))
        except RefusedError:
            pass  # it has been noted

    def _commit(self, group: list[tuple[Any, Any]], n_added: int) -> None:
        began_s = time.monotonic()
        try:
            whole = self._store.commit(group)
        except StoreError as error:
            with self._lock:
                self._failed(error)
            return
        with self._lock:
            self._group_s = 0.8 * self._group_s + 0.2 * (time.monotonic() - began_s)
            self._n_kept = n_added
            for upload in whole:
                self._hashes.pop(upload, None)
            if self._core is not None and whole:
                self._core.handle(messages.Settled(whole))
            self._kept.notify_all()

    def _failed(self, error: BaseException) -> None:
        """Go back to what is on the disk: what was not answered is lost, and asked for again."""
        self._note("failed", str(error) or type(error).__name__)
        self._era += 1
        self._n_kept = self._n_added
        self._store.take()
        self._hashes.clear()
        self._core = None
        self._kept.notify_all()

    def _note(self, what: str, why: str) -> None:
        self._log(json.dumps({"time_s": round(time.time(), 3), "what": what, "why": why}))

    # The destination and whoever asks how it is -----------------------------------------------

    def answer_posted(self, post: BistroPost, exchange: Exchange) -> None:
        """Answer a note that is posted."""
        request = self.enter(exchange)
        try:
            if exchange.method != "POST" or exchange.body_bytes > post.most_bytes:
                raise RefusedError("use POST to send a signed note", 405)
            self.limits.count_address(exchange.address, time.monotonic())
            # Anybody may promise a note, and send a byte of it now and then.
            exchange.hold_place(False)
            data, end_s = b"", time.monotonic() + NOTE_S
            while part := exchange.read():
                data += part
                if time.monotonic() > end_s:
                    raise RefusedError("the note arrives too slowly", 408)
            exchange.hold_place(True)
            self.ask(post.read(request, time.time(), data, self.event))
            exchange.answer(200)
        except ProblemError as error:
            exchange.answer(403, (), f"{error}\n".encode())
        except RefusedError as error:
            exchange.answer(error.status, (), f"{error}\n".encode())
        finally:
            self.leave(request)

    def answer_facts(self, exchange: Exchange) -> None:
        """Answer ``GET /bistro``."""
        facts: dict[str, Any] = {"bistro": self.name, "event": self.event.id.hex()}
        with self._lock, suppress(StoreError):
            if self._core is not None:
                facts |= {
                    "free_bytes": self._core.free_bytes(self._store.free_bytes()),
                    "stored_bytes": self._core.stored_bytes,
                    "reserved_bytes": self._core.reserved_bytes,
                    "wait_s": round(self._group_s, 4),
                    "oldest_s": self._core.oldest_s,
                    "last_contact_s": self._core.last_contact_s,
                }
        status = 200 if "free_bytes" in facts else 503
        body = json.dumps(facts).encode()
        exchange.answer(status, [("Content-Type", "application/json")], body)


class Push:
    """The bytes of one request, on their way to the core and into a segment; for one thread."""

    def __init__(
        self,
        bistro: Bistro,
        request: int,
        upload: str,
        offset: int,
        size: int,
        hash_: RunningHash,
    ) -> None:
        self._bistro, self._request, self._upload = bistro, request, upload
        self._offset, self._size, self._hash = offset, size, hash_
        self._before: RunningHash | None = None

    def add(self, block: bytes | bytearray) -> None:
        """Take the next bytes.

        Raises
        ------
        RefusedError
            Somebody goes on with the upload elsewhere, or the disk fails.
        """
        if not block:
            return
        with self._hash.lock:
            self._bistro.tell(messages.Arrived(self._request, time.time(), len(block)), block)
            if self._before is None:
                self._before = self._hash.copy()
            self._hash.follow(self._offset, block)
        self._offset += len(block)

    def end(self, *, is_wrong: bool) -> Tell:
        """Say that no more comes; return the upload, once all of it is kept.

        Raises
        ------
        RefusedError
            These are other bytes than those that were promised.
        """
        with self._hash.lock:
            sha256 = None
            if self._offset == self._size and not is_wrong:
                if self._hash.n_bytes < self._size:
                    self._bistro.hash_rest(self._upload, self._hash)
                # Where the disk has lost some of it, these are other bytes than were promised.
                sha256 = self._hash.digest()
            ended = messages.WriteEnded(self._request, time.time(), sha256, is_wrong=is_wrong)
            try:
                found = self._bistro.ask(ended)
            except RefusedError as error:
                if error.status == CHECKSUM and self._before is not None:
                    self._hash.back_to(self._before)
                raise
        assert found is not None
        return found
