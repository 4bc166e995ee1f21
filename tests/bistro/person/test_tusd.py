"""What a push sends, against tusd, the protocol's own server; cut at places that a seed says.

https://github.com/tus/tusd, 2025. It signs no receipts, so no push ends well: what it holds in the
end must be what was sealed, byte for byte.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from contextlib import closing, contextmanager

import pytest
from conftest import NO_GO, NO_TUSD
from instances.bistros import bistro_event, rows_with_certificates
from instances.cutting import cutting
from instances.events import owner_key, proof_of
from instances.how_many import many
from instances.ports import free_port
from instances.web_servers import wait_for_port

from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.formats.sealing.keep import ciphertext_of, keep
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.bistro.person import pushing
from datacollect.bistro.person.items import commitment_of
from datacollect.bistro.person.pushing import Payload
from datacollect.bistro.person.sending import Sender

GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
TUSD = "github.com/tus/tusd/v2/cmd/tusd@v2.8.0"
BYTES = 3_000_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tusd(tmp_path_factory):
    if GO is None:
        pytest.skip(NO_GO)
    folder = tmp_path_factory.mktemp("go")
    made = subprocess.run(
        [GO, "install", TUSD],
        env=os.environ | {"GOBIN": str(folder)},
        check=False,
        capture_output=True,
        timeout=900,
    )
    if made.returncode:
        pytest.skip(NO_TUSD)
    return folder / "tusd"


@contextmanager
def serving(tusd, folder, port):
    """Run it where the event says that the first bistro is."""
    command = [tusd, "-host", "127.0.0.1", "-port", str(port), "-base-path", "/tus/"]
    command += ["-upload-dir", folder / "uploads"]
    command += ["-tls-certificate", folder / "north.pem", "-tls-key", folder / "north.key"]
    command += ["-filelock-acquirer-poll-interval", "20ms"]
    command += ["-filelock-holder-poll-interval", "20ms"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port, process)
            yield
        finally:
            process.terminate()


@pytest.mark.parametrize("n_bytes", [100_000, BYTES], ids=["together", "in parts"])
@pytest.mark.parametrize("seed", range(many(20)))
def test_tusd_holds_in_the_end_what_was_sealed(tmp_path, monkeypatch, tusd, seed, n_bytes):
    monkeypatch.setattr(pushing, "AGAIN_S", 0.02)
    chance = random.Random(seed)
    # What goes with the first request begins anew each time, and is given up after three.
    n_cuts = 8 if n_bytes == BYTES else 2
    places = [chance.randrange(5000, n_bytes // 2) for _ in range(n_cuts)]
    rows, port = rows_with_certificates(tmp_path), free_port()
    (tmp_path / "a.bin").write_bytes(chance.randbytes(n_bytes))
    with (
        serving(tusd, tmp_path, port),
        cutting(port, places) as way,
    ):
        rows[0]["url"] = f"https://127.0.0.1:{way.port}"
        event = bistro_event(tmp_path, admission="open", bistros=rows[:1])
        kept = keep(
            tmp_path / "a.bin",
            tmp_path / "a.keep",
            event=event.id,
            salt=bytes(32),
            inner=Inner(b"{}", bytes(32)),
            owner=owner_key("a.bin"),
            ticket=None,
            recipients=event.recipients,
        )
        commitment = commitment_of(kept, event)
        proof = proof_of(commitment.entry, event.services[0].log.name, event.deadline_s - 60)
        receipt = Receipt(commitment, proofs=(proof,))
        with closing(Sender(event, lambda _: None)) as sender:
            core = sender.push(
                receipt,
                [0],
                tmp_path / "a.keep",
                kept,
                Payload.committed(commitment),
                lambda _: None,
            )
    assert core.troubles == ["north: has received everything, but signs nothing"]
    assert way.n_cut > 1
    held = [path.read_bytes() for path in (tmp_path / "uploads").iterdir() if not path.suffix]
    with ciphertext_of(tmp_path / "a.keep", kept) as blocks:
        assert b"".join(blocks) in held
