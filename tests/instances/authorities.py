"""Outside authorities that tell the time, RFC 3161: played by OpenSSL, also over HTTP."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from datacollect.bistro.formats.event.event import Authority

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
        return self.reply(query.read_bytes())

    def reply(self, query: bytes) -> bytes:
        """Return its answer to a query, as OpenSSL makes it."""
        query_file = self.folder / "asked"
        query_file.write_bytes(query)
        config = ("-config", str(self.folder / "tsa.cnf"), "-section", "tsa")
        reply = self.folder / "reply"
        _openssl("ts", "-reply", "-queryfile", str(query_file), *config, "-out", str(reply))
        return reply.read_bytes()


def make_tsa(folder: Path, name: str, signer: Tsa | None = None) -> Tsa:
    """Make an authority: a root, and a certificate for timestamps below it.

    With a signer the certificate is for the key of that other authority.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    folder.mkdir()
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    if signer is not None:
        raw = (signer.folder / "tsa.key").read_bytes()
        keys[1] = serialization.load_pem_private_key(raw, None)
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


def certificate_pem(name: str = "root") -> str:
    """Return the certificate of a key that nobody has kept, PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    whose = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(whose)
        .issuer_name(whose)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2036, 1, 1, tzinfo=UTC))
    )
    signed = builder.sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM).decode()


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


@contextmanager
def answering(tsa: Tsa) -> Iterator[str]:
    """Yield the URL at which an authority answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Content-Type"] == "application/timestamp-query"
            query = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                status, reply = 200, tsa.reply(query)
            except subprocess.CalledProcessError:
                status, reply = 500, b"broken"
            self.send_response(status)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
