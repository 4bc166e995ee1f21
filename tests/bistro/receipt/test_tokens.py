"""Outside authorities: two that OpenSSL plays, and all tokens that do not count."""

from __future__ import annotations

import hashlib
import math
import shutil
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import NO_OPENSSL
from instances.events import event_bytes

from datacollect.bistro.event.event import Authority
from datacollect.bistro.event.file import read_event
from datacollect.bistro.log.entry import Commitment
from datacollect.bistro.receipt.receipt import Receipt
from datacollect.bistro.receipt.tokens import outside_time, token_time
from datacollect.bistro.receipt.verify import verify
from datacollect.errors import ProblemError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason=NO_OPENSSL)

ENTRY = bytes(range(32))
CONFIG = """
[tsa]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1, millisecs:500
"""


@dataclass
class Tsa:
    """An authority whose root was valid on some days around today."""

    folder: Path
    authority: Authority

    def token(self, message: bytes) -> bytes:
        """Return its answer over a message, stamped by this machine's clock."""
        query, data = self.folder / "query", self.folder / "message"
        data.write_bytes(message)
        _openssl("ts", "-query", "-data", str(data), "-sha256", "-cert", "-out", str(query))
        config = ("-config", str(self.folder / "tsa.cnf"), "-section", "tsa")
        reply = self.folder / "reply"
        _openssl("ts", "-reply", "-queryfile", str(query), *config, "-out", str(reply))
        return reply.read_bytes()


def make_tsa(folder: Path, name: str) -> Tsa:
    """Make an authority: a root, and a certificate for timestamps below it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    folder.mkdir()
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} {what}")])
        for what in ("root", "tsa")
    ]
    now = datetime.now(UTC)
    pems = []
    for which in (0, 1):
        builder = (
            x509.CertificateBuilder()
            .subject_name(names[which])
            .issuer_name(names[0])
            .public_key(keys[which].public_key())
            .serial_number(which + 1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=which == 0, path_length=None), critical=True)
        )
        if which:
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
            builder = builder.add_extension(usage, critical=True)
        pem = builder.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        pems.append(pem.decode())
    (folder / "root.pem").write_text(pems[0])
    (folder / "tsa.pem").write_text(pems[1])
    (folder / "tsa.key").write_bytes(
        keys[1].private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (folder / "serial").write_text("01")
    (folder / "tsa.cnf").write_text(CONFIG.format(folder=folder))
    return Tsa(folder, Authority(f"http://{name}.example", pems[0]))


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> list[Tsa]:
    folder = tmp_path_factory.mktemp("tsa")
    return [make_tsa(folder / name, name) for name in ("one", "two")]


def test_a_token_says_the_time_with_its_accuracy_rounded_up(two):
    """Accuracy 1.5 s: a token of the second t proves t + 2 s, never less."""
    before_s = int(time.time())
    found_s = token_time(two[0].token(ENTRY), ENTRY, two[0].authority)
    assert before_s + 2 <= found_s <= math.ceil(time.time() + 1.5)


def test_a_token_of_another_authority_or_over_other_data_is_refused(two):
    token = two[0].token(ENTRY)
    for message, authority in ((ENTRY, two[1].authority), (bytes(32), two[0].authority)):
        with pytest.raises(ProblemError, match="it is no token of"):
            token_time(token, message, authority)


@pytest.mark.parametrize("noise", [b"", b"\x30\x00", b"\x30\x80" * 100, bytes(100)])
def test_noise_is_no_token(two, noise):
    for token in (noise, two[0].token(ENTRY)[:-1], two[0].token(ENTRY)[: len(noise)]):
        with pytest.raises(ProblemError, match="it is no token of"):
            token_time(token, ENTRY, two[0].authority)


def test_two_authorities_make_a_time_and_one_does_not(two):
    authorities = [each.authority for each in two]
    one = two[0].token(ENTRY)
    assert outside_time([], ENTRY, authorities) == (None, [])
    time_s, why = outside_time([one, two[0].token(ENTRY)], ENTRY, authorities)
    assert time_s is None
    assert why == ["Tokens of 2 authorities of the event make a time; this receipt has those of 1."]
    time_s, why = outside_time([one, two[1].token(ENTRY)], ENTRY, authorities)
    assert time_s >= token_time(one, ENTRY, authorities[0])
    assert why == []


def test_tokens_stand_in_where_no_service_answers(two):
    """A deadline long ago and one to come; the event's file holds what judges them."""
    authorities = [
        {"url": each.authority.url, "certificate": each.authority.certificate} for each in two
    ]
    past = {
        "deadline": "2020-04-15T23:59:59-04:00",
        "collect_until": "2020-04-30T23:59:59-04:00",
    }
    far = {
        "deadline": "2999-04-15T23:59:59-04:00",
        "collect_until": "2999-04-30T23:59:59-04:00",
        "keep_until": "2999-04-30T23:59:59-04:00",
    }
    for changes, outcome in ((past, "late"), (far, "in time")):
        file = event_bytes(authorities=authorities, **changes)
        digest = hashlib.sha256(b"").digest()
        commitment = Commitment(read_event(file).id, bytes(32), 0, digest, bytes(32))
        tokens = tuple(each.token(commitment.entry) for each in two)
        assert verify(file, Receipt(commitment, tokens=tokens)).outcome == outcome
        other = verify(file, Receipt(commitment, tokens=(tokens[0], two[1].token(ENTRY))))
        assert other.outcome == "not proved"
        assert any("Token 2 does not count" in reason for reason in other.reasons)
