"""Runs a witness from its file to its end."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.formats.log.witnessing import ADD_CHECKPOINT, MOST_REQUEST_BYTES
from datacollect.bistro.http.clocks import now
from datacollect.bistro.http.exchange import Reply
from datacollect.bistro.http.signals import Told, given_back
from datacollect.bistro.http.web import (
    TooLongError,
    WebServer,
    body_of,
    bound_socket,
    refused_body,
)
from datacollect.bistro.witness.core import Cosigned, WitnessCore
from datacollect.bistro.witness.store import WitnessStore
from datacollect.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.web import BaseRequest

    from datacollect.bistro.http.config import WitnessConfig
    from datacollect.bistro.http.connections import CountingListener


class WitnessServer:
    """Answers requests to sign.

    Parameters
    ----------
    config : WitnessConfig
    store : WitnessStore
    report : function
        Takes each line of the log, in words.
    """

    def __init__(
        self, config: WitnessConfig, store: WitnessStore, report: Callable[[str], None]
    ) -> None:
        self._store, self._report = store, report
        # What is on the disk of the latest decisions, by origin.
        self._kept: dict[str, Cosigned] = {}
        self._now = partial(now, is_trusted=config.is_trusted)
        self._core = WitnessCore(
            config.name, config.key, config.logs, store.seen(), store.last_s(), self._now()
        )

    def clock_fault(self) -> str:
        """Say why no time can be signed now; nothing where one can."""
        return self._core.clock_fault(self._now())

    async def handle(self, request: BaseRequest) -> Reply:
        """Return the answer to a request."""
        if request.path != ADD_CHECKPOINT:
            return Reply.words(404, f"a witness answers only {ADD_CHECKPOINT}")
        if request.method != "POST":
            return Reply.words(405, f"{ADD_CHECKPOINT} takes POST")
        try:
            body = await body_of(request, MOST_REQUEST_BYTES)
        except (TooLongError, TimeoutError) as error:
            return refused_body(error)
        return self._decided(body)

    def _decided(self, body: bytes) -> Reply:
        decision = self._core.add_checkpoint(body, self._now())
        try:
            if isinstance(decision, Cosigned):
                if self._kept.get(decision.origin) is not decision:
                    self._store.keep(decision)
                    self._kept[decision.origin] = decision
                return Reply(200, decision.answer)
            if decision.is_evidence:
                self._report("a log has signed two different logs of one size: the request is kept")
                self._store.keep_evidence(body)
        except StoreError as error:
            self._report(str(error))
            return Reply.words(500, "what was signed cannot be kept; try again", 5)
        return Reply(decision.status, decision.answer, decision.content_type)


def run_witness(
    config: WitnessConfig, ready: Callable[[str, str], None], report: Callable[[str], None]
) -> None:
    """Run a witness in the main thread until SIGTERM or SIGINT; SIGHUP rereads its certificate.

    Parameters
    ----------
    config : WitnessConfig
    ready : function
        Told its URL and its verifier key when it takes requests.
    report : function
        Takes each line of the log, in words.

    Raises
    ------
    ProblemError
        It cannot be carried out: the port is taken, the folder is another's, and so on.
    StoreError
        The disk is full, or fails.
    """
    key = witness_key(config.name, config.key.public).text
    with ExitStack() as closing:
        bound = bound_socket(config.listening)
        closing.callback(bound.close)
        store = WitnessStore(config.folder, key)
        closing.callback(store.close)
        witness = WitnessServer(config, store, report)
        server = WebServer(config.listening, witness.handle, config.behind)
        if config.is_trusted:
            report('clock = "trusted": the operator of this witness vouches for its clock')
        elif fault := witness.clock_fault():
            report(f"{fault}: until this changes, the witness signs nothing")
        with given_back():
            asyncio.run(_serve(server, bound, lambda url: ready(url, key), report))


async def _serve(
    server: WebServer,
    bound: CountingListener,
    ready: Callable[[str], None],
    report: Callable[[str], None],
) -> None:
    told = Told(server.reread_certificate, report)
    await server.start(bound)
    ready(server.url)
    await told.to_end.wait()
    await server.stop()
