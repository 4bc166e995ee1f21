"""Fail the n-th call of somebody who hands in: nothing is lost, nothing is handed in twice.

Run as a script in a process of its own, as `log_run`. A service beside it signs all that it is
asked for, and remembers it. Afterwards the same command without a fault must end well, and all that
the service was ever asked for must be what lies in ``NAME.keep``.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import shim

shim.install()

from faults import log_run  # noqa: E402
from faults.experiments import Experiment, shimmed  # noqa: E402
from instances.events import event_bytes, key_of, proof_of  # noqa: E402

from datacollect.bistro.client import upload as uploading  # noqa: E402
from datacollect.bistro.client.verify_receipt import verify_receipt  # noqa: E402
from datacollect.bistro.event.file import read_event  # noqa: E402
from datacollect.bistro.log.acknowledgement import acknowledge  # noqa: E402
from datacollect.bistro.receipt.receipt import read_receipt  # noqa: E402
from datacollect.errors import DatacollectError  # noqa: E402

DONE, SAID, BROKEN = log_run.DONE, log_run.SAID, log_run.BROKEN


class Service(ThreadingHTTPServer):
    """Signs what it is asked for, as if each entry had a log of its own."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        url = f"http://127.0.0.1:{self.server_port}"
        services = [{"url": url, "key": key_of("s0").public}]
        self.data = event_bytes(admission="open", services=services)
        self.event = read_event(self.data)
        self.entries: set[str] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Whoever asks dies now and then."""


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        entry = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["entry"]
        self.server.entries.add(entry)
        log = self.server.event.services[0].log.name
        word = acknowledge(log, bytes.fromhex(entry), 0, 1_800_000_000, key_of("s0"))
        signature = base64.b64encode(word.signature).decode()
        tree = {"index": 0, "time_s": word.time_s, "signature": signature}
        self._answer(200, json.dumps(tree).encode())

    def do_GET(self) -> None:
        name, _, rest = self.path[1:].partition("/")
        if name != "proof":
            self._answer(404, b"")
            return
        log = self.server.event.services[0].log.name
        self._answer(200, proof_of(bytes.fromhex(rest), log, 1_800_000_000).data)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def run(folder: Path, generation: int) -> int:
    """Hand in once; return how that ended."""
    # Whoever has a fault waits in vain; without one, slow machines take a while.
    uploading.PATIENCE_S = 30.0 if generation else 1.5
    try:
        done = uploading.upload(folder / "a.txt", folder / "event.toml")
    except DatacollectError as error:
        return SAID if str(error) else BROKEN
    return DONE if done.exit_code == 0 else SAID


def lost_or_twice(folder: Path, service: Service) -> str:
    """Say what is wrong after a start without a fault."""
    receipt = folder / "a.txt.receipt.json"
    if service.entries != {read_receipt(receipt.read_bytes()).entry.hex()}:
        return f"the service was asked for {len(service.entries)} entries"
    verdict = verify_receipt(receipt, folder / "event.toml", file=folder / "a.txt")
    if (verdict.outcome, verdict.covers) != ("in time", "the file"):
        return f"the receipt proves: {verdict}"
    names = {path.name for path in folder.iterdir()}
    left = names - {"a.txt", "a.txt.keep", receipt.name, "event.toml", "said", "hits", "counts"}
    # What a process that was killed was writing stays beside.
    left = {name for name in left if not name.endswith(".tmp")}
    return f"there is left: {left}" if left else ""


def judged(experiment: Experiment, folder: Path, service: Service) -> str:
    """Carry out an experiment; return what is wrong, if anything is."""
    service.entries.clear()
    prepare(folder, service)
    fault = {
        "call": experiment.call,
        "kind": experiment.kind,
        "error": experiment.error,
        "n": experiment.n,
        "onward": experiment.onward,
        "hits": str(folder / "hits"),
    }
    try:
        code = log_run.in_copy(folder, 0, fault, run)
        if code not in (DONE, SAID, -9) or (code == -9 and experiment.error != "SIGKILL"):
            return f"exit {code}: {(folder / 'said').read_text()[-2000:]}"
        again = log_run.in_copy(folder, 1, None, run)
        if again != DONE:
            return f"then {again}: {(folder / 'said').read_text()[-2000:]}"
        return lost_or_twice(folder, service)
    except AssertionError as error:
        return str(error)


def prepare(folder: Path, service: Service) -> None:
    """Make a person's folder."""
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"mine" * 50_000)
    (folder / "event.toml").write_bytes(service.data)


def main() -> int:
    """Carry out all experiments, or each so manieth; exit 1 where a rule was broken."""
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    service = Service()
    with tempfile.TemporaryDirectory(prefix="client-faults-") as scratch:
        folder = Path(scratch) / "clean"
        prepare(folder, service)
        record = {"record": str(folder / "counts")}
        assert log_run.in_copy(folder, 1, record, run) == DONE, (folder / "said").read_text()
        counts = json.loads((folder / "counts").read_text())
        counts = {site: n for site, n in counts.items() if not site.startswith("clock")}
        plan = [e for e in shimmed("log", counts, 3) if e.error not in log_run.LEFT_OUT][::step]
        broken = 0
        for number, experiment in enumerate(plan):
            place = Path(scratch) / str(number)
            if why := judged(experiment, place, service):
                broken += 1
                print(f"{experiment.key}: {why}")  # noqa: T201
            shutil.rmtree(place)
        print(f"{len(plan)} experiments, {broken} with a rule broken")  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    sys.stdout.flush()
    code = main()
    sys.stdout.flush()
    os._exit(code)
