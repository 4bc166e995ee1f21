"""A bistro on loopback: an agent in threads of the test, and uploads that it would take."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from instances.agents import running, write_agent
from instances.events import (
    counting_bytes,
    draft,
    key_of,
    marked_by,
    owner_of,
    owners_signature,
    proof_of,
    ticket_of,
)
from instances.ports import free_port
from instances.timestamping import World

from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.statements import give_up_statement, push_statement
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.upload_wish import commitment_json, metadata_text
from datacollect.bistro.upload_server.server import Bistro
from datacollect.bistro.upload_server.table import accept_of
from datacollect.bistro.upload_server.tus import handlers_of
from datacollect.net.keys import write_private_key
from datacollect.net.tls import fingerprint_of_file, make_certificate
from datacollect.transfer.agent.config.file import AgentConfig

NAMES = ("north", "south")
BYTES = 100_000_000
PUSH = "application/offset+octet-stream"


def bistro_event(folder: Path, **changes: object) -> Event:
    """Write an event with two bistros that is open now; return it."""
    now_s = int(time.time())
    times = {
        "opens": now_s - 3600,
        "deadline": now_s + 3600,
        "collect_until": now_s + 7200,
        "keep_until": now_s + 86400,
    }
    stamped = {
        name: time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(at_s))
        for name, at_s in times.items()
    }
    rows = [
        {
            "name": name,
            "url": f"https://{name}.example",
            "key": key_of(name).public,
            "fingerprint": "sha256:" + "0" * 64,
        }
        for name in NAMES
    ]
    tree = draft(**({**stamped, "timezone": "UTC", "bistros": rows} | changes))
    data = complete(tree, key_of("organiser").public, counting_bytes(), {})
    (folder / "event.toml").write_bytes(data)
    return read_event(data)


def commitment_to(event: Event, data: bytes, salt: int = 0) -> Commitment:
    """Return what commits to some bytes as if they were sealed."""
    made = Commitment(
        event.id,
        salt.to_bytes(32, "big"),
        len(data),
        hashlib.sha256(data).digest(),
        b"p" * 32,
        owner_of(f"{salt}"),
    )
    return marked_by(event, made)


def metadata(
    event: Event,
    commitment: Commitment,
    number: int = 1,
    *,
    bistro: str = "north",
    size: int | None = None,
    **more: bytes,
) -> str:
    """Return the header that lets an upload begin: proved a minute before now.

    It is signed by the owner and the ticket, for what is pushed: `size`, and `sha256` of `more`.
    """
    log = event.services[0].log.name
    proof = proof_of(commitment.entry, log, int(time.time()) - 60)
    key = key_of(bistro).public
    sha256 = more.get("sha256", commitment.ciphertext_sha256)
    n_bytes = commitment.size if size is None else size
    ticket = ticket_of(event, number)
    # At an open event nobody asks for tickets.
    signed = ticket.number if event.admission == "tickets" else bytes(16)
    said = push_statement(event.id, key, commitment.entry, sha256, n_bytes, signed)
    values = {
        "commitment": commitment_json(commitment),
        "proof": proof.data,
        "owner": owners_signature(said, commitment.owner),
        "ticket": ticket.token.encode(),
        "holder": ticket.key.sign(said),
    }
    return metadata_text(values | more)


def rows_with_certificates(folder: Path) -> list[dict[str, str]]:
    """Make keys and certificates of two bistros; return their rows in the draft of an event."""
    rows = []
    for name in NAMES:
        certificate, key = make_certificate(name, "127.0.0.1")
        (folder / f"{name}.pem").write_bytes(certificate)
        (folder / f"{name}.key").write_bytes(key)
        write_private_key(folder / f"{name}.receipts", key_of(name))
        rows.append(
            {
                "name": name,
                "url": f"https://127.0.0.1:{free_port()}",
                "key": key_of(name).public,
                "fingerprint": fingerprint_of_file(folder / f"{name}.pem"),
            }
        )
    return rows


def run_bistro(world: World, name: str, held: ExitStack) -> Bistro:
    """Run a bistro of a world's event where the event says, until the stack ends."""
    place = next(each for each in world.event.bistros if each.name == name).url
    port = place.rpartition(":")[2]
    path = write_agent(
        world.folder,
        name,
        more=f'tls = {{ certificate = "{name}.pem", key = "{name}.key" }}\n[accept]\n'
        f'event = "event.toml"\nfolder = "{name}-up"\nbytes = {BYTES}\n'
        f'receipt_key = "{name}.receipts"\n',
    )
    path.write_text(path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    accept = accept_of(AgentConfig.from_file(path))
    bistro = held.enter_context(closing(Bistro(accept, lambda _: None)))
    held.enter_context(running(path, handlers_of(bistro)))
    return bistro


@contextmanager
def running_bistro(
    folder: Path,
    name: str = "north",
    most_bytes: int = 10**9,
    expire_s: float = 3600.0,
    keep_s: float = 0.0,
    more: str = "",
) -> Iterator[tuple[Client, Bistro]]:
    """Run the agent of a bistro whose event lies in a folder."""
    if not (folder / f"{name}.receipts").exists():
        write_private_key(folder / f"{name}.receipts", key_of(name))
    accept = (
        f'[accept]\nevent = "event.toml"\nfolder = "{name}-uploads"\nbytes = {most_bytes}\n'
        f'receipt_key = "{name}.receipts"\nexpire_s = {expire_s}\nkeep_s = {keep_s}\n'
    )
    path = write_agent(folder, name, more=more + accept)
    config = AgentConfig.from_file(path)
    config_of_uploads = accept_of(config)
    assert config_of_uploads is not None
    records: list[str] = []
    with (
        closing(Bistro(config_of_uploads, records.append)) as bistro,
        running(path, handlers=handlers_of(bistro)) as agent,
    ):
        yield Client(agent.address, name), bistro


class Client:
    """Speaks to a bistro over one connection at a time, from an address where one is given."""

    def __init__(
        self, address: tuple[str, int], bistro: str = "north", source: str | None = None
    ) -> None:
        self.address, self.bistro = address, bistro
        self._source = None if source is None else (source, 0)
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self._kept: http.client.HTTPSConnection | None = None

    def connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            *self.address, context=self.context, timeout=60, source_address=self._source
        )

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers by lowercase name and body."""
        if self._kept is None:
            self._kept = self.connection()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._kept.request(method, path, body, {"Tus-Resumable": "1.0.0", **named})
        answer = self._kept.getresponse()
        raw = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close or found.get("connection") == "close":
            self.close()
        return answer.status, found, raw

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def create(
        self, event: Event, commitment: Commitment, body: bytes | None = None, number: int = 1
    ) -> tuple[int, dict[str, str], bytes]:
        headers = {
            "Upload_Length": str(commitment.size),
            "Upload_Metadata": metadata(event, commitment, number, bistro=self.bistro),
        }
        if body is not None:
            headers["Content_Type"] = PUSH
        return self.ask("POST", "/tus/", body, **headers)

    def patch(
        self, path: str, offset: int, body: bytes, **more: str
    ) -> tuple[int, dict[str, str], bytes]:
        return self.ask("PATCH", path, body, Content_Type=PUSH, Upload_Offset=str(offset), **more)

    def give_up(
        self, event: Event, path: str, commitment: Commitment
    ) -> tuple[int, dict[str, str], bytes]:
        """Have the owner of an entry give its upload up."""
        key = key_of(self.bistro).public
        said = give_up_statement(event.id, key, path.rpartition("/")[2])
        signature = base64.b64encode(owners_signature(said, commitment.owner)).decode()
        return self.ask("DELETE", path, Datacollect_Signature=signature)

    def facts(self) -> dict:
        return json.loads(self.ask("GET", "/bistro")[2])
