"""HTTP front end: reads requests within limits and writes responses."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.tickets import Admitted
from datacollect.bistro.http.clocks import now
from datacollect.bistro.http.exchange import Asked, Keeper, Reply, Together, messages
from datacollect.bistro.http.signals import saying
from datacollect.bistro.http.web import (
    TooLongError,
    WebServer,
    address_of,
    body_of,
    refused_body,
)
from datacollect.bistro.log_service.admission import Admission
from datacollect.bistro.log_service.core import log_of, refusal
from datacollect.bistro.log_service.requests import POSTS, post_of
from datacollect.errors import ProblemError, RefusedError
from datacollect.net.buckets import bucket_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from aiohttp.web import BaseRequest

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.http.config import ServiceConfig
    from datacollect.bistro.http.connections import CountingListener
    from datacollect.net.buckets import Bucket

# Who keeps the log answers in less, or is stuck.
ANSWER_S = 30.0
LONGEST_PATH = 200
# What an address may read: a campus has one, and all there ask for their proofs in one minute.
GETS_PER_S, GETS_AT_ONCE = 200.0, 20_000.0


class Front:
    """Answers requests over HTTP.

    Parameters
    ----------
    config : ServiceConfig
    keeper : Keeper
    """

    def __init__(self, config: ServiceConfig, keeper: Keeper) -> None:
        self._behind = config.behind
        self._keeper = keeper
        self._gets: dict[str, Bucket] = {}

    async def handle(self, request: BaseRequest) -> Reply:
        """Return the answer to a request."""
        path = request.path
        address = address_of(request, self._behind)
        if request.method == "GET":
            if not self._may_ask(address):
                return _too_many()
            if len(path) > LONGEST_PATH:
                return Reply.words(404, "there is nothing at this address")
            return await self._keeper.ask(Asked("get", path=path))
        post = POSTS.get(path)
        if post is None:
            return Reply.words(404, "there is nothing at this address")
        if request.method != "POST":
            return Reply.words(405, f"{path} takes POST")
        if post.n_counts and not self._may_ask(address, post.n_counts):
            return _too_many()
        try:
            body = await body_of(request, post.most_bytes)
        except (TooLongError, TimeoutError) as error:
            return refused_body(error)
        try:
            asked = post.read(path, address, body)
        except ProblemError as error:
            return Reply.words(400, str(error))
        return await self._keeper.ask(asked)

    def _may_ask(self, address: str, n: int = 1) -> bool:
        """Return whether an address may ask now for what counts as so many requests.

        If so, they count.
        """
        bucket = bucket_of(self._gets, address, GETS_PER_S, GETS_AT_ONCE)
        return bucket.take(now().monotonic_s, n)


def _too_many() -> Reply:
    return Reply.words(429, "too many requests from this address; try again later", 1)


class Remote:
    """Leads to who keeps the log, in another process, which is spared the signatures of tickets.

    Parameters
    ----------
    event : Event
        Without amendments: who keeps the log knows which tickets are revoked.
    log_key : str
        The public key of the log.
    writer : asyncio.StreamWriter
    """

    def __init__(self, event: Event, log_key: str, writer: asyncio.StreamWriter) -> None:
        self._admission = Admission(event, log_key)
        self._together = Together(writer)
        self._n_requests = 0
        self._waiting: dict[int, asyncio.Future[Reply]] = {}

    async def ask(self, asked: Asked) -> Reply:
        """Return the answer to a request, in every case."""
        self._n_requests += 1
        number = self._n_requests
        post = post_of(asked)
        signed_for = None if post is None else post.signed_for
        if signed_for is not None and self._admission.event.admission == "tickets":
            try:
                asked = self._verified(asked, signed_for(asked))
            except RefusedError as error:
                refused = refusal(number, error)
                return Reply.refusing(refused.status, refused.text, refused.retry_after_s)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._together.send([number, *asked.head], asked.body)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await future
        except TimeoutError:
            return Reply.words(503, "the service does not respond; try again, or ask another", 30)
        finally:
            self._waiting.pop(number, None)

    def _verified(self, asked: Asked, entries: Sequence[bytes]) -> Asked:
        """Return a request with what is in its ticket; raise `RefusedError` where none signed."""
        assert not isinstance(asked.ticket, Admitted)
        instant = now()
        found = self._admission.verified(
            asked.ticket, entries, asked.address, instant.monotonic_s, instant.unix_s
        )
        return replace(asked, ticket=found)

    def answered(self, head: list[Any], body: bytes) -> None:
        """Take an answer."""
        number, status, content_type, retry_after_s = head
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(Reply(status, body, content_type, retry_after_s))


async def _serve(
    config: ServiceConfig,
    bound: CountingListener,
    channel: socket.socket,
    report: Callable[[str], None],
) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=channel)
    remote = Remote(config.event, log_of(config.event, config.key).key, writer)
    server = WebServer(config.listening, Front(config, remote).handle, config.behind)
    await server.start(bound)
    stopping: asyncio.Task[None] | None = None
    async for head, body in messages(reader):
        if head == ["stop"]:
            # Answers to what is under way still come.
            stopping = asyncio.create_task(_stop(server, writer))
        elif head == ["reread"]:
            saying(server.reread_certificate, report)
        else:
            remote.answered(head, body)
    if stopping is not None:
        await stopping


async def _stop(server: WebServer, writer: asyncio.StreamWriter) -> None:
    await server.stop()
    writer.close()


def run_front(
    config: ServiceConfig,
    bound: CountingListener,
    channel: socket.socket,
    report: Callable[[str], None],
) -> None:
    """Serve people in a process of its own, until who keeps the log says so, or is gone.

    Parameters
    ----------
    config : ServiceConfig
    bound : socket
        Where to listen.
    channel : socket
        Leads to who keeps the log.
    report : function
        Takes each line of the log, in words.
    """
    # Signals are for who keeps the log.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    asyncio.run(_serve(config, bound, channel, report))
