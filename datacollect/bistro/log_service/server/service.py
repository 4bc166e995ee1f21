"""Runs a service from its file to its end: a log owner, and front ends if it has any."""

from __future__ import annotations

import asyncio
import os
import socket
from asyncio import FIRST_COMPLETED
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from datacollect.bistro.http.connections import few_connections_text
from datacollect.bistro.http.exchange import Asked, Together, messages
from datacollect.bistro.http.signals import Told, given_back
from datacollect.bistro.http.web import WebServer, bound_socket, tls_context, url_of
from datacollect.bistro.log_service.core import log_of
from datacollect.bistro.log_service.server.front import Front, run_front
from datacollect.bistro.log_service.server.sequencer import Sequencer
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.log_service.witness_client import WitnessClient
from datacollect.errors import TransferError
from datacollect.files.held_folder import Held

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.bistro.http.config import ServiceConfig
    from datacollect.bistro.http.connections import CountingListener

# How long fronts may take to end.
ENDS_WITHIN_S = 10.0


def run_service(
    config: ServiceConfig, ready: Callable[[str], None], report: Callable[[str], None]
) -> None:
    """Run a service in the main thread until SIGTERM or SIGINT; SIGHUP rereads its certificate.

    Parameters
    ----------
    config : ServiceConfig
    ready : function
        Told its URL when it takes requests.
    report : function
        Takes each line of the log, in words.

    Raises
    ------
    ProblemError
        It cannot be carried out: the port is taken, the folder is another's, and so on.
    StoreError
        The disk is full, or fails.
    TransferError
        A process in front has ended.
    """
    log = log_of(config.event, config.key)
    tls_context(config.listening)
    with ExitStack() as closing:
        if few := few_connections_text():
            report(few)
        if config.workers:
            # Who shares a port is not told that another service shares it, too.
            bound_socket(config.listening).close()
        # Who starts at the same moment, and has the folder, serves alone from the first request.
        held = Held(config.folder)
        closing.callback(held.close)
        bound = bound_socket(config.listening, is_shared=config.workers > 0)
        closing.callback(bound.close)
        # Before the store and the loop are there: a copy of the process must have neither.
        channels = _fork_fronts(config, bound, held, report)
        for channel in channels:
            closing.callback(channel.close)

        store = LogStore(held, log.text)
        closing.callback(store.close)
        with given_back():
            asyncio.run(_serve(config, store, bound, channels, ready, report))


def _fork_fronts(
    config: ServiceConfig, bound: CountingListener, held: Held, report: Callable[[str], None]
) -> list[socket.socket]:
    """Make the processes in front; each has a socket of its own at the same place."""
    import aiohttp.web  # noqa: F401 - once, for all copies

    channels: list[socket.socket] = []
    place = replace(config.listening, address=bound.getsockname()[:2])
    for _ in range(config.workers):
        own = bound_socket(place, is_shared=True)
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            held.close()
            for other in (ours, bound, *channels):
                other.close()
            _be_front(config, own, theirs, report)
        own.close()
        theirs.close()
        channels.append(ours)
    return channels


def _be_front(
    config: ServiceConfig,
    own: CountingListener,
    channel: socket.socket,
    report: Callable[[str], None],
) -> NoReturn:
    code = 1
    try:
        run_front(config, own, channel, report)
        code = 0
    finally:
        # Nothing of what the parent has begun is this one's to end.
        os._exit(code)


async def _serve(
    config: ServiceConfig,
    store: LogStore,
    bound: CountingListener,
    channels: list[socket.socket],
    ready: Callable[[str], None],
    report: Callable[[str], None],
) -> None:
    async with WitnessClient() as client:
        sequencer = Sequencer(config, store, client.ask, report)
        server: WebServer | _Fronts
        if channels:
            server = _Fronts(channels, sequencer)
        else:
            front = Front(config, sequencer)
            server = WebServer(config.listening, front.handle, config.behind)
        told = Told(server.reread_certificate, report)
        sequencer.start()
        await server.start(bound)
        ready(url_of(config.listening, bound))
        ends: list[asyncio.Future[Any]] = [
            asyncio.create_task(told.to_end.wait()),
            sequencer.broken,
            *([server.lost] if isinstance(server, _Fronts) else []),
        ]
        done, _ = await asyncio.wait(ends, return_when=FIRST_COMPLETED)
        await server.stop()
        await sequencer.stop()
        for each in done:
            each.result()


class _Fronts:
    """The processes in front, as who keeps the log sees them."""

    def __init__(self, channels: list[socket.socket], sequencer: Sequencer) -> None:
        self._channels, self._sequencer = channels, sequencer
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._together: list[Together] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._answering: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    async def start(self, _: CountingListener) -> None:
        """Hear them; each listens by itself."""
        for channel in self._channels:
            reader, writer = await asyncio.open_unix_connection(sock=channel)
            together = Together(writer)
            self._together.append(together)
            self._tasks.append(asyncio.create_task(self._hear(reader, together)))

    def reread_certificate(self) -> None:
        """Have each take its certificate anew."""
        for together in self._together:
            together.send(["reread"])

    async def stop(self) -> None:
        """Have them end after what is under way."""
        self._is_stopping = True
        for together in self._together:
            together.send(["stop"])
        _, late = await asyncio.wait(self._tasks, timeout=ENDS_WITHIN_S)
        for task in late:
            task.cancel()

    async def _hear(self, reader: asyncio.StreamReader, together: Together) -> None:
        async for head, body in messages(reader):
            task = asyncio.create_task(self._answer(head, body, together))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        if not self._is_stopping and not self.lost.done():
            why = "a process of the service stopped unexpectedly; restart it"
            self.lost.set_exception(TransferError(why))

    async def _answer(self, head: list[Any], body: bytes, together: Together) -> None:
        number, *rest = head
        reply = await self._sequencer.ask(Asked.of(rest, body))
        together.send([number, reply.status, reply.content_type, reply.retry_after_s], reply.body)
