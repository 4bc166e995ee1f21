"""Runs an event on one host: its servers as one tree of processes, until it is told to end."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.file import MOST_EVENT_BYTES
from datacollect.bistro.one_host.certificates import renew_by_certbot
from datacollect.bistro.one_host.processes import Server, Watch
from datacollect.bistro.one_host.servers import commands
from datacollect.bistro.one_host.stamping import Stamping
from datacollect.errors import ProblemError, TransferError
from datacollect.files.documents import read_bytes
from datacollect.net.http_asking import Asker, address_of
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.bistro.one_host.places import Places
    from datacollect.bistro.one_host.quickstart import Prepared

LOOK_S = 0.5
REACHED_WITHIN_S = 10.0
RENEW_EVERY_S = 12 * 3600.0
FRONT, DESTINATION = "bistro", "destination"
# What the destination leaves with once the event is over: all is collected, or something lacks.
OVER = (0, 1)


def run_servers(prepared: Prepared, ready: Callable[[], None], say: Callable[[str], None]) -> int:
    """Run all servers until the event is over, or somebody interrupts; they end with this process.

    Parameters
    ----------
    prepared : Prepared
    ready : function
        Called once all serve, and are reached by the address that people use.
    say : function
        Takes lines on what happens.

    Returns
    -------
    int
        What the destination has left with: 0 all is collected, 1 something is lacking.

    Raises
    ------
    StoreError
        A server does not start; the message has its last words.
    ProblemError
        This host is not reached by the address that people use.
    """
    places = prepared.places
    trusted = prepared.trusted
    environment = {} if trusted is None else {"SSL_CERT_FILE": str(trusted)}
    servers = {
        name: Server(name, command, places.logs / f"{name}.log", environment)
        for name, command in commands(places).items()
    }
    with ExitStack() as ending, rereading(servers[FRONT]):
        for name, server in servers.items():
            ending.callback(server.end)
            server.start()
            server.await_ready()
            if name == FRONT:
                require_reached(prepared)
        if prepared.event.authorities:
            service = Asker(prepared.event.services[0].url, web_context(trusted))
            ending.callback(service.close)
            Stamping(prepared.event, places.stamps, say, service).start()
        ready()
        return watched(places, servers, say)


def watched(
    places: Places, servers: dict[str, Server], say: Callable[[str], None], front: str = FRONT
) -> int:
    """Keep servers running until the destination says that the event is over; return its code.

    Without a destination among them, until somebody interrupts.
    """
    watch = Watch([*servers.values()], say)
    renew_at_s = time.monotonic() + RENEW_EVERY_S
    while True:
        destination = servers.get(DESTINATION)
        if destination is not None and (code := destination.code) in OVER:
            return code
        watch.look()
        if time.monotonic() >= renew_at_s and places.acme.exists():
            renew_at_s = time.monotonic() + RENEW_EVERY_S
            # It may take minutes; servers are looked after meanwhile.
            threading.Thread(target=_renew, args=(places, servers[front], say), daemon=True).start()
        time.sleep(LOOK_S)


def _renew(places: Places, front: Server, say: Callable[[str], None]) -> None:
    try:
        renew_by_certbot(places)
        front.tell(signal.SIGHUP)
    except Exception as error:  # noqa: BLE001 - said; it is tried again in half a day
        say(f"the certificate is not renewed: {error}")


@contextmanager
def rereading(front: Server) -> Iterator[None]:
    """Have SIGHUP make the front read its certificate again."""
    before = signal.signal(signal.SIGHUP, lambda *_: front.tell(signal.SIGHUP))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def require_reached(prepared: Prepared) -> None:
    """Raise `ProblemError` unless this host reaches itself by the address that people use."""
    url = prepared.url
    try:
        with Asker(url, web_context(prepared.trusted), REACHED_WITHIN_S) as asker:
            answer = asker.get(f"/{prepared.places.event.name}", MOST_EVENT_BYTES)
    except TransferError as error:
        host = address_of(url)[0]
        raise ProblemError(
            f"this host does not reach itself by the address that people use, {url}: {error}; "
            f"make the name lead to this host, or add the line '127.0.0.1 {host}' to /etc/hosts "
            "on this host, and start again"
        ) from None
    if answer.body != read_bytes(prepared.places.event):
        raise ProblemError(
            f"another server answers at the address that people use, {url}; make the name lead to "
            "this host, or add a line for it to /etc/hosts on this host, and start again"
        )
