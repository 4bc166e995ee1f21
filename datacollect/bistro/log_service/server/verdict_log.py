"""Log of verdicts in a thread of its own: a destination writes into it, people read it."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.log.commit import MOST_ENTRIES
from datacollect.bistro.http.clocks import now
from datacollect.bistro.http.signals import saying
from datacollect.bistro.http.web import WebServer, bound_socket, tls_context, url_of
from datacollect.bistro.log_service.core import log_of
from datacollect.bistro.log_service.server.front import Front
from datacollect.bistro.log_service.server.sequencer import Sequencer
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.log_service.witness_client import WitnessClient
from datacollect.errors import StoreError, TransferError
from datacollect.files.held_folder import Held
from datacollect.net.fan_out import start_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from datacollect.bistro.http.config import ServiceConfig
    from datacollect.bistro.http.connections import CountingListener

# How long witnesses may take to sign before it is said that they have not.
PUBLISHED_WITHIN_S = 30.0
LOOK_S, WAKES_S = 0.05, 1.0


class VerdictLog:
    """Keeps the log of verdicts of an event: ``with VerdictLog(config, say) as log``.

    Parameters
    ----------
    config : ServiceConfig
        Whose key is that of the event's log of verdicts.
    report : function
        Takes each line of the log, in words; from another thread.
    is_served : bool
        Whether people may read it where the config listens.

    Attributes
    ----------
    url : str or None
        Where it is read.

    Raises
    ------
    ProblemError
        The folder is another log's, another process is at work in it, or the port is taken.
    StoreError
        The disk is full, or fails.
    TransferError
        When it begins: there is no thread is available.
    """

    def __init__(
        self, config: ServiceConfig, report: Callable[[str], None], *, is_served: bool = False
    ) -> None:
        self._config, self._report = config, report
        log = log_of(config.event, config.key)
        self._bound: CountingListener | None = None
        self._server: WebServer | None = None
        self.url: str | None = None
        self._store = LogStore(Held(config.folder), log.text)
        if is_served:
            try:
                tls_context(config.listening)
                self._bound = bound_socket(config.listening)
            except BaseException:
                self._store.close()
                raise
            self.url = url_of(config.listening, self._bound)
        self._started = threading.Event()
        # Nobody is let in any more once this is set: what comes to a loop that ends is never done.
        self._lock, self._is_over = threading.Lock(), False
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), name="the log of verdicts", daemon=True
        )
        self._error: BaseException | None = None

    def __enter__(self) -> VerdictLog:
        """Begin."""
        try:
            start_thread(self._thread)
        except TransferError:
            self._close()
            raise
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            self._close()
            raise self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End; what was recorded is kept."""
        with self._lock:
            if not self._is_over:
                self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._close()

    def _close(self) -> None:
        self._store.close()
        if self._bound is not None:
            self._bound.close()

    def reread_certificate(self) -> None:
        """Take the certificate anew, from any thread; the log says where that cannot be."""
        server = self._server
        with self._lock:
            if server is not None and not self._is_over:
                self._loop.call_soon_threadsafe(saying, server.reread_certificate, self._report)

    def record(self, entries: Sequence[bytes], within_s: float = PUBLISHED_WITHIN_S) -> int | None:
        """Have entries logged; return the size of a published log that holds them.

        Parameters
        ----------
        entries : sequence of bytes
            At most `MOST_ENTRIES`; those that are there already stay where they are.
        within_s : float
            How long witnesses may take.

        Returns
        -------
        int or None
            None: not enough witnesses have signed yet; hand them in again later.

        Raises
        ------
        StoreError
            The log cannot go on.
        """
        assert 0 < len(entries) <= MOST_ENTRIES
        with self._lock:
            recorded = None
            if not self._is_over:
                work = self._record(entries, now().monotonic_s + within_s)
                recorded = asyncio.run_coroutine_threadsafe(work, self._loop)
        with suppress(CancelledError):
            if recorded is not None:
                size = recorded.result()
                if self._error is None:
                    return size
        raise StoreError(f"the log of verdicts has ended: {self._error}") from self._error

    @property
    def published_size(self) -> int:
        """Of the largest log that enough witnesses have signed; -1: none yet."""
        return self._sequencer.published_size

    @property
    def lacks(self) -> str:
        """Return what its folder lacks of what witnesses have signed, in words; empty: nothing."""
        return self._sequencer.missing

    async def _run(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with WitnessClient() as client:
                self._sequencer = Sequencer(self._config, self._store, client.ask, self._report)
                self._sequencer.start()
                if self._bound is not None:
                    front = Front(self._config, self._sequencer)
                    server = WebServer(self._config.listening, front.handle, self._config.behind)
                    await server.start(self._bound)
                    self._server = server
                self._started.set()
                ends: list[asyncio.Future[Any]] = [
                    asyncio.create_task(self._end.wait()),
                    self._sequencer.broken,
                ]
                is_ended = False
                while not is_ended:
                    # Who hands something in wakes this; where the kernel fails to, time does.
                    done, _ = await asyncio.wait(
                        ends, timeout=WAKES_S, return_when=asyncio.FIRST_COMPLETED
                    )
                    is_ended = bool(done)
                if self._sequencer.broken.done():
                    self._error = self._sequencer.broken.exception()
                with self._lock:
                    self._is_over = True
                if self._server is not None:
                    await self._server.stop()
                await self._sequencer.stop()
                # Those who were let in before become tasks, which end with the loop.
                await asyncio.sleep(0)
        except BaseException as error:  # noqa: BLE001 - raised where the log is begun, or written
            self._error, self._is_over = error, True
        finally:
            self._started.set()

    async def _record(self, entries: Sequence[bytes], until_s: float) -> int | None:
        stop = None
        while now().monotonic_s < until_s:
            if stop is None:
                reply = await self._sequencer.record(entries)
                if reply.status == 200:
                    stop = 1 + max(row["index"] for row in json.loads(reply.body))
            if self._sequencer.broken.done():
                self._error = self._sequencer.broken.exception()
                return None
            if stop is not None and self._sequencer.published_size >= stop:
                return self._sequencer.published_size
            await asyncio.sleep(LOOK_S)
        return None
