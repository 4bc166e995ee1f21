"""Fail the n-th call of somebody who hands in: nothing is lost, nothing is handed in twice.

Run as a script in a process of its own, as `log_run`. A service beside it signs all that it is
asked for, and remembers it; it is a bistro, too, and the destination, which refuses what was
committed to and collects what was sealed anew. Afterwards the same command without a fault must end
well, all that the service was ever asked for must be what lies in ``NAME.keep``, and all that was
ever sealed anew one ciphertext. When the service hears of an entry, its proof is on the disk.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults.copies import BROKEN, DONE, SAID, Trial  # noqa: E402
from faults.time_limits import limit_s  # noqa: E402
from instances.custody import CHANGES, verdict_log  # noqa: E402
from instances.events import event_bytes, key_of, proof_of  # noqa: E402

from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt  # noqa: E402
from datacollect.bistro.formats.custody.verdicts import (  # noqa: E402
    COLLECTED,
    DOES_NOT_OPEN,
    REFUSED,
    Verdict,
)
from datacollect.bistro.formats.event.file import read_event  # noqa: E402
from datacollect.bistro.formats.log.acknowledgement import acknowledge  # noqa: E402
from datacollect.bistro.formats.receipt.receipt import read_receipt  # noqa: E402
from datacollect.bistro.formats.receipt.upload_wish import Admission  # noqa: E402
from datacollect.bistro.formats.sealing.keep import read_keep  # noqa: E402
from datacollect.bistro.person import pushing  # noqa: E402
from datacollect.bistro.person import upload as uploading  # noqa: E402
from datacollect.bistro.person.verify_receipt import verify_receipt  # noqa: E402
from datacollect.errors import DatacollectError  # noqa: E402


class Service(ThreadingHTTPServer):
    """Signs what it is asked for, as if each entry had a log of its own, and holds what is pushed.

    Attributes
    ----------
    entries : set of str
    held : set of (str, bool, bytes)
        Entry, whether it was sealed anew, and the hash of what was pushed.
    unproved : set of str
        Entries whose proof was not on the disk when they came.
    proof : Path
        Where that stands.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        url = f"http://127.0.0.1:{self.server_port}"
        services = [{"url": url, "key": key_of("s0").public}]
        changes = {
            "admission": "open",
            "services": services,
            "verdicts": CHANGES["verdicts"] | {"url": f"{url}/v"},
            "bistros": [CHANGES["bistros"][0] | {"url": url}],
        }
        self.data = event_bytes(**changes)
        self.event = read_event(self.data)
        self.entries: set[str] = set()
        self.held: set[tuple[str, bool, bytes]] = set()
        self.unproved: set[str] = set()
        self.proof = Path()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Whoever asks dies now and then."""


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        n_bytes = int(self.headers["Content-Length"])
        body = self.rfile.read(n_bytes)
        if len(body) < n_bytes:
            return
        if self.path == "/tus/":
            self._hold(body)
        else:
            self._commit(json.loads(body)["entry"])

    def _hold(self, body: bytes) -> None:
        event = self.server.event
        # What its owner has not signed for is not taken.
        admission = Admission(event, event.bistros[0].key, 2**40)
        length = int(self.headers["Upload-Length"])
        wish = admission.wish_of(self.headers["Upload-Metadata"], length, 1_800_000_001)
        entry, anew = wish.commitment.entry, wish.sealed_anew
        digest = hashlib.sha256(body).digest()
        assert (len(body), digest) == (wish.size, wish.sha256)
        self.server.held.add((entry.hex(), anew, digest))
        word = BistroReceipt(
            event.id, "north", entry, len(body), digest, anew, 0, 1_800_000_001
        ).signed(key_of("north"))
        self._answer(201, b"", {"Datacollect-Receipt": word})

    def _commit(self, entry: str) -> None:
        self.server.entries.add(entry)
        if not self.server.proof.exists():
            self.server.unproved.add(entry)
        log = self.server.event.services[0].log.name
        word = acknowledge(log, bytes.fromhex(entry), 0, 1_800_000_000, key_of("s0"))
        signature = base64.b64encode(word.signature).decode()
        tree = {"index": 0, "time_s": word.time_s, "signature": signature}
        self._answer(200, json.dumps(tree).encode())

    def do_GET(self) -> None:
        name, _, rest = self.path[1:].partition("/")
        if name == "v":
            self._judge(rest.removeprefix("verdict/"))
            return
        if name != "proof":
            self._answer(404, b"")
            return
        log = self.server.event.services[0].log.name
        self._answer(200, proof_of(bytes.fromhex(rest), log, 1_800_000_000).data)

    def _judge(self, entry: str) -> None:
        """Refuse what was committed to, collect what was sealed anew."""
        event = self.server.event
        anew = [found for of, found, _ in self.server.held if of == entry]
        if not anew:
            self._answer(404, b"")
            return
        said = Verdict(event.id, bytes.fromhex(entry), REFUSED, DOES_NOT_OPEN)
        if any(anew):
            said = Verdict(event.id, bytes.fromhex(entry), COLLECTED)
        proof = verdict_log(event, [said]).proof(said.data)
        tree = {"verdict": said.data.decode(), "proof": proof.data.decode()}
        self._answer(200, json.dumps(tree).encode())

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def run(folder: Path, generation: int) -> int:
    """Hand in, and come again to ask what became of it; return how that ended."""
    # Whoever has a fault waits without result; without one, slow machines take a while.
    uploading.PATIENCE_S = limit_s(30.0) if generation else 1.5
    pushing.AGAIN_S = 0.01
    try:
        for _ in range(2):
            done = uploading.upload(folder / "a.txt", folder / "event.toml")
    except DatacollectError as error:
        return SAID if str(error) else BROKEN
    return DONE if done.exit_code == 0 else SAID


def lost_or_twice(folder: Path, service: Service) -> str:
    """Say what is wrong after a start without a fault."""
    receipt = folder / "a.txt.receipt.json"
    if service.entries != {read_receipt(receipt.read_bytes()).entry.hex()}:
        return f"the service was asked for {len(service.entries)} entries"
    if service.unproved:
        return "the service was asked before the proof was there"
    verdict = verify_receipt(receipt, folder / "event.toml", file=folder / "a.txt")
    if (verdict.outcome, verdict.covers) != ("in time", "the file") or not verdict.collected_s:
        return f"the receipt proves: {verdict}"
    anew = {digest for _, is_anew, digest in service.held if is_anew}
    if anew != {read_keep(folder / "a.txt.keep.anew").sealed.sha256}:
        return f"{len(anew)} ciphertexts were sealed anew"
    names = {path.name for path in folder.iterdir()}
    ours = {"a.txt", "a.txt.keep", "a.txt.keep.anew", "a.txt.proof", receipt.name, "event.toml"}
    left = names - ours - {"said", "hits", "counts"}
    # What a process that was killed was writing stays beside.
    left = {name for name in left if not name.endswith(".tmp")}
    return f"there is left: {left}" if left else ""


def prepare(folder: Path, service: Service) -> None:
    """Make a person's folder."""
    service.entries.clear()
    service.held.clear()
    service.unproved.clear()
    service.proof = folder / "a.txt.proof"
    (folder / "a.txt").write_bytes(b"mine" * 50_000)
    (folder / "event.toml").write_bytes(service.data)


def trial() -> Trial:
    service = Service()
    return Trial(
        "client",
        lambda folder: prepare(folder, service),
        run,
        lambda folder: lost_or_twice(folder, service),
    )


if __name__ == "__main__":
    sys.exit(trial().carry_out())
