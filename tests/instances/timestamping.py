"""An event on loopback: services as real processes, witnesses in a thread, TLS by an own authority.

Nothing here waits for a time: it waits for what is to come, with a generous end.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from instances.events import counting_bytes, draft, key_of, ticket_of
from instances.ports import free_port

from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.statements import commit_statement
from datacollect.bistro.formats.event.tickets import Ticket
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import checkpoint_time
from datacollect.bistro.http.config import Listening, ServiceConfig, WitnessConfig
from datacollect.bistro.http.web import WebServer, bound_socket
from datacollect.bistro.log_service.server.verdict_log import VerdictLog
from datacollect.bistro.witness.server import WitnessServer
from datacollect.bistro.witness.store import WitnessStore
from datacollect.net.keys import PrivateKey, write_private_key

WITHIN_S = 300.0
NAME = "localhost"


@dataclass
class Answer:
    """Response of a server."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def until(found, what: str):
    """Return what a function finds, once it finds something."""
    end_s = time.monotonic() + WITHIN_S
    while not (value := found()):
        assert time.monotonic() < end_s, f"{what} does not come"
        time.sleep(0.02)
    return value


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WITHIN_S)

    def close(self) -> None:
        # In its own thread: that of the test may have a loop, too, as Playwright has.
        self.run(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@dataclass
class Service:
    """A process that keeps a log, and where it is."""

    file: Path
    url: str
    folder: Path
    process: subprocess.Popen | None = None
    ready: dict[str, str] = field(default_factory=dict)

    def said(self) -> str:
        return self.file.with_suffix(".log").read_text()


class World:
    """An event with all who take part in it, below a folder.

    Parameters
    ----------
    folder : Path
    n_services : int
    settings : str
        Further lines of each service's file.
    changes
        Of the event's draft.
    """

    def __init__(
        self, folder: Path, n_services: int = 1, settings: str = "", **changes: object
    ) -> None:
        self.folder = folder
        self._authority = trustme.CA()
        self.authority = folder / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.authority))
        self.tls = (folder / "tls.pem", folder / "tls.key")
        self.new_certificate()
        self.trusting = ssl.create_default_context(cafile=str(self.authority))
        self.event = self._made_event(n_services, changes)
        self.services = [self._service(i, settings) for i in range(n_services)]
        self._loop = Loop()
        self._witnesses: dict[int, tuple[WebServer, WitnessStore]] = {}

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        for service in self.services:
            self.kill(service)
        for i in [*self._witnesses]:
            self.stop_witness(i)
        self._loop.close()

    def new_certificate(self) -> bytes:
        """Write a new certificate of all servers, and its key; return it, DER."""
        made = self._authority.issue_cert(NAME, "127.0.0.1")
        made.cert_chain_pems[0].write_to_path(str(self.tls[0]))
        made.private_key_pem.write_to_path(str(self.tls[1]))
        return ssl.PEM_cert_to_DER_cert(made.cert_chain_pems[0].bytes().decode())

    def certificate(self, url: str) -> bytes | None:
        """Return the certificate that a server shows, DER."""
        port = int(url.rpartition(":")[2])
        with (
            socket.create_connection((NAME, port), WITHIN_S) as plain,
            self.trusting.wrap_socket(plain, server_hostname=NAME) as connection,
        ):
            return connection.getpeercert(binary_form=True)

    def _made_event(self, n_services: int, changes: dict[str, object]):
        ports = [free_port() for _ in range(n_services + 4)]
        tree = draft(n_services=n_services, **changes)
        for row, port in zip([*tree["services"], *tree["witnesses"]], ports, strict=True):
            row["url"] = f"https://{NAME}:{port}"
        if "key" in tree.get("verdicts", {}):
            tree["verdicts"]["url"] = f"https://{NAME}:{free_port()}"
        organiser = key_of("organiser")
        data = complete(tree, organiser.public, counting_bytes(), {})
        (self.folder / "event.toml").write_bytes(data)
        return read_event(data)

    def _service(self, i: int, settings: str) -> Service:
        url = self.event.services[i].url
        write_private_key(self.folder / f"s{i}.key", key_of(f"s{i}"))
        file = self.folder / f"s{i}.toml"
        file.write_text(
            'format = "datacollect-service/1"\nevent = "event.toml"\n'
            f'key = "s{i}.key"\nlisten = "127.0.0.1:{url.rpartition(":")[2]}"\n'
            f'folder = "log{i}"\ntls = {{ certificate = "tls.pem", key = "tls.key" }}\n{settings}'
        )
        return Service(file, url, self.folder / f"log{i}")

    # Witnesses --------------------------------------------------------------------------------

    def start_witnesses(self, *which: int) -> None:
        for i in which or range(4):
            self.start_witness(i)

    def start_witness(self, i: int) -> None:
        name = f"w{i}.example"
        port = int(self.event.witnesses[i].url.rpartition(":")[2])
        listening = Listening(("127.0.0.1", port), self.tls)
        logs = tuple(service.log for service in self.event.services)
        if self.event.verdicts is not None:
            logs += (self.event.verdicts,)
        config = WitnessConfig(name, key_of(name), listening, self.folder / f"w{i}", True, logs)
        store = WitnessStore(config.folder, witness_key(name, config.key.public).text)
        server = WebServer(listening, WitnessServer(config, store, lambda _: None).handle)
        self._loop.run(server.start(bound_socket(listening)))
        self._witnesses[i] = (server, store)

    def stop_witness(self, i: int) -> None:
        server, store = self._witnesses.pop(i)
        self._loop.run(server.stop())
        store.close()

    # Services ---------------------------------------------------------------------------------

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "datacollect", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"SSL_CERT_FILE": str(self.authority)}

    def start(self, i: int = 0) -> Service:
        """Start a service, and wait until it says that it is ready."""
        service = self.services[i]
        with service.file.with_suffix(".log").open("ab") as log:
            service.process = subprocess.Popen(
                self.command("timestamp", str(service.file), "--json"),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        ready, _, _ = select.select([service.process.stdout], [], [], WITHIN_S)
        line = service.process.stdout.readline() if ready else b""
        assert line.strip(), service.said()
        service.ready = json.loads(line)
        return service

    def kill(self, service: Service, number: int = signal.SIGKILL) -> int | None:
        """End a service's processes by a signal; return the exit code."""
        if service.process is None:
            return None
        with suppress(ProcessLookupError):
            os.killpg(service.process.pid, number)
        return self.waited(service)

    def end(self, service: Service) -> int:
        """Tell the first process of a service to end; return the exit code."""
        os.kill(service.process.pid, signal.SIGTERM)
        return self.waited(service)

    def waited(self, service: Service) -> int:
        """Wait for the end of a service; return the exit code."""
        code = service.process.wait(WITHIN_S)
        service.process.stdout.close()
        service.process = None
        return code

    # The destination --------------------------------------------------------------------------

    def verdict_log(self, key: PrivateKey) -> VerdictLog:
        """Return the log of verdicts, to be entered; it trusts witnesses by SSL_CERT_FILE."""
        port = int(self.event.verdicts_url.rpartition(":")[2])
        config = ServiceConfig(
            event=self.event,
            event_data=(self.folder / "event.toml").read_bytes(),
            key=key,
            listening=Listening(("127.0.0.1", port), self.tls),
            folder=self.folder / "verdicts",
            workers=0,
            behind=(),
        )
        return VerdictLog(config, lambda _: None, is_served=True)

    # People -----------------------------------------------------------------------------------

    def ticket(self, number: int = 1) -> Ticket:
        return ticket_of(self.event, number)

    def connection(self, url: str) -> http.client.HTTPSConnection:
        port = int(url.rpartition(":")[2])
        return http.client.HTTPSConnection(NAME, port, context=self.trusting, timeout=WITHIN_S)

    def ask(
        self, service: Service, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Answer:
        return self.asked(service.url, method, path, body, **headers)

    def asked(
        self, url: str, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Answer:
        with closing(self.connection(url)) as connection:
            connection.request(method, path, body, headers)
            # An answer that is cut off keeps the socket open as long as nobody closes it.
            with closing(connection.getresponse()) as response:
                return Answer(response.status, response.read(), dict(response.getheaders()))

    def get(self, service: Service, path: str) -> Answer:
        return self.ask(service, "GET", path)

    def commit_body(self, service: Service, entry: bytes | list[bytes], number: int = 1) -> bytes:
        """Return a request to commit, signed by a ticket for the service's log."""
        ticket = self.ticket(number)
        entries = [entry] if isinstance(entry, bytes) else entry
        log = next(each.log for each in self.event.services if each.url == service.url)
        said = commit_statement(self.event.id, log.key, entries)
        given = [each.hex() for each in entries]
        tree = {
            "entry": given[0] if isinstance(entry, bytes) else given,
            "ticket": ticket.token,
            "signature": base64.b64encode(ticket.key.sign(said)).decode(),
        }
        return json.dumps(tree).encode()

    def commit(self, service: Service, entry: bytes | list[bytes], number: int = 1) -> Answer:
        """Commit to an entry, or to several, with a ticket; try again while it starts."""
        body = self.commit_body(service, entry, number)

        def answer() -> Answer | None:
            found = self.ask(service, "POST", "/commit", body)
            return None if found.status == 503 and b"is starting" in found.body else found

        return until(answer, "the start")

    def require_proves(self, service: Service, entry: bytes, before: LogProof) -> None:
        """A service proves an entry as before, by the same checkpoint, and no later time."""
        found = LogProof.parse(self.get(service, f"/proof/{entry.hex()}").body)
        assert (found.index, found.hashes) == (before.index, before.hashes)
        assert found.signed.checkpoint == before.signed.checkpoint
        times = [checkpoint_time(each.signed, self.event).time_s for each in (found, before)]
        assert times[0] <= times[1]

    def proof(self, service: Service, entry: bytes) -> LogProof:
        """Return the proof of an entry, once there is one."""

        def proved() -> LogProof | None:
            answer = self.get(service, f"/proof/{entry.hex()}")
            assert answer.status in (200, 202), answer
            return LogProof.parse(answer.body) if answer.status == 200 else None

        return until(proved, "a proof")
