"""The page of an event on loopback, served as its headers say, and all that it speaks to."""

from __future__ import annotations

import functools
import http.server
import re
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pyrage
from instances.agents import running, write_agent
from instances.bistros import NAMES
from instances.events import key_of, ticket_of
from instances.ports import free_port
from instances.timestamping import World

from datacollect.bistro.page.writing import write_page
from datacollect.bistro.upload_server.server import Bistro
from datacollect.bistro.upload_server.table import accept_of
from datacollect.bistro.upload_server.tus import handlers_of
from datacollect.net.keys import write_private_key
from datacollect.net.tls import fingerprint_of_file, make_certificate
from datacollect.transfer.agent.config.file import AgentConfig

# Chromium keeps its own certificates; those here are of an authority that only the test has.
CONTEXT = {"ignore_https_errors": True, "service_workers": "block"}
NARROW, WIDE = {"width": 320, "height": 700}, {"width": 1280, "height": 900}


def _row(folder: Path, name: str) -> dict[str, object]:
    certificate, key = make_certificate(name, "127.0.0.1")
    (folder / f"{name}.pem").write_bytes(certificate)
    (folder / f"{name}.key").write_bytes(key)
    write_private_key(folder / f"{name}.receipts", key_of(name))
    return {
        "name": name,
        "url": f"https://127.0.0.1:{free_port()}",
        "key": key_of(name).public,
        "fingerprint": fingerprint_of_file(folder / f"{name}.pem"),
    }


class Handlers(http.server.SimpleHTTPRequestHandler):
    """Serves files with the headers that lie beside them."""

    def end_headers(self) -> None:
        text = (Path(self.directory) / "headers.conf").read_text()
        for name, value in re.findall(r'add_header (\S+) "([^"]*)" always;', text):
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path):
    """Serve a folder on loopback; yield its URL."""
    handler = functools.partial(Handlers, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


class PageWorld:
    """An event that is open now: two services, three witnesses, two bistros, its page served.

    Bistros run once `start_bistro` is called.
    """

    def __init__(self, folder: Path, held: ExitStack, **changes: object) -> None:
        self.folder = folder
        self.identity = pyrage.x25519.Identity.generate()
        spare = pyrage.x25519.Identity.generate()
        now_s = int(time.time())
        times = {"opens": -3600, "deadline": 7200, "collect_until": 9000, "keep_until": 90_000}
        stamped = {
            name: time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(now_s + after_s))
            for name, after_s in times.items()
        }
        told = {
            "timezone": "UTC",
            "recipients": [str(self.identity.to_public()), str(spare.to_public())],
            "bistros": [_row(folder, name) for name in NAMES],
            **stamped,
            **changes,
        }
        self.world = held.enter_context(World(folder, 2, **told))
        self.event = self.world.event
        self.event_file = folder / "event.toml"
        self.page = folder / "page"
        write_page(self.event_file, self.page)
        self.url = held.enter_context(served(self.page))
        self._held = held

    def start(self) -> None:
        self.world.start_witnesses(0, 1, 2)
        for i in range(len(self.event.services)):
            self.world.start(i)

    @contextmanager
    def bistro(self, name: str):
        """Run a bistro of the event."""
        url = next(each.url for each in self.event.bistros if each.name == name)
        accept = (
            f'tls = {{ certificate = "{name}.pem", key = "{name}.key" }}\n[accept]\n'
            f'event = "event.toml"\nfolder = "{name}-up"\nbytes = 1000000000\n'
            f'receipt_key = "{name}.receipts"\n'
        )
        path = write_agent(self.folder, name, more=accept)
        path.write_text(path.read_text().replace("127.0.0.1:0", url.removeprefix("https://")))
        config = accept_of(AgentConfig.from_file(path))
        with closing(Bistro(config, lambda _: None)) as bistro, running(path, handlers_of(bistro)):
            yield bistro

    def ticket_file(self, folder: Path, number: int = 1) -> Path:
        path = folder / f"{number}.ticket"
        path.write_text(ticket_of(self.event, number).text)
        return path
