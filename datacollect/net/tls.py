"""TLS 1.3: contexts, the certificate that an agent makes for itself, fingerprints."""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import IdentityError, ProblemError, TransferError
from datacollect.files.documents import document_name

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName

FINGERPRINT = "sha256:"
CERTIFICATE_BEGINS = "-----BEGIN CERTIFICATE-----"

# Whoever pins a fingerprint does not look at dates: the certificate is as good as its key.
VALID_DAYS = 365 * 20


def fingerprint_of(certificate_der: bytes) -> str:
    """Return ``sha256:`` and the lowercase hexadecimal SHA-256 of a certificate.

    >>> fingerprint_of(b"")[:15]
    'sha256:e3b0c442'
    """
    return FINGERPRINT + hashlib.sha256(certificate_der).hexdigest()


def fingerprint_of_file(certificate: Path) -> str:
    """Return the fingerprint of the first certificate in a PEM file, whatever stands before it.

    Raises
    ------
    ProblemError
        It holds none, or is damaged.
    """
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    try:
        text = certificate.read_text(encoding="ascii")
        first = text[text.index(begin) :]
        der = ssl.PEM_cert_to_DER_cert(first[: first.index(end) + len(end)] + "\n")
    except ValueError:
        raise ProblemError(
            f"{document_name(certificate)}: must hold a certificate in PEM; copy it again"
        ) from None
    return fingerprint_of(der)


def make_certificate(name: str, host: str) -> tuple[bytes, bytes]:
    """Return a self-signed certificate for an agent and its private key, both PEM.

    Parameters
    ----------
    name : str
        The agent's name; a host name in the certificate where it can be one.
    host : str
        Where it listens, as written; named too.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    now = datetime.now(UTC)
    alternatives = [general for text in (name, host) for general in _general_names(text)]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    )
    if alternatives:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(list(dict.fromkeys(alternatives))), critical=False
        )
    certificate = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


HTTP = "http/1.1"


def server_context(
    certificate: Path,
    key: Path,
    remedy: str = "leave out tls to have them made",
    protocol: str = HTTP,
) -> ssl.SSLContext:
    """Return what a listener needs: TLS 1.3 only, this certificate, a protocol to speak (ALPN).

    Raises
    ------
    ProblemError
        The files are none; it ends with the remedy.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([protocol])
    # Sessions are long; to resume one spares nothing, and its tickets would cross the wire.
    context.num_tickets = 0
    try:
        # A password is asked for nowhere.
        context.load_cert_chain(certificate, key, password=b"")
    except (OSError, ssl.SSLError) as error:
        names = f"{document_name(certificate)} and {document_name(key)}"
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise ProblemError(
            f"{names} must be a certificate and its key without a password, both PEM: {reason}; "
            f"{remedy}"
        ) from None
    return context


def client_context(ca: Path | None = None, protocol: str = HTTP) -> ssl.SSLContext:
    """Return what a collector needs: TLS 1.3 only.

    Parameters
    ----------
    ca : Path or None
        Who has signed the agent's certificate, PEM. None: nobody is asked, and the caller must
        compare the fingerprint, as `datacollect.transfer.sources.agent.session.connect` does.
    protocol : str
        What is spoken (ALPN).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([protocol])
    if ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        context.load_verify_locations(ca)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise ProblemError(f"{document_name(ca)}: must hold certificates, PEM: {reason}") from None
    return context


def web_context(
    ca: Path | None = None, fingerprint: str | None = None, certificates: str | None = None
) -> ssl.SSLContext:
    """Return what a client of any server needs: usual checks, or those of a pinned fingerprint.

    Parameters
    ----------
    ca : Path or None
        Who has signed its certificate, PEM; None: whom this host trusts.
    fingerprint : str or None
        Who has signed it does not matter; the caller compares.
    certificates : str or None
        What a file `ca` would hold.
    """
    try:
        context = ssl.create_default_context(cafile=ca, cadata=certificates)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        name = "" if ca is None else f"{document_name(ca)}: "
        raise ProblemError(f"{name}must hold certificates, PEM: {reason}") from None
    if fingerprint is not None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def trusted_certificates() -> str:
    """Return the certificates, PEM, of the authorities that this host trusts.

    Raises
    ------
    ProblemError
        It has none.
    """
    paths = ssl.get_default_verify_paths()
    found = [Path(paths.cafile)] if paths.cafile else []
    if not found and paths.capath:
        found = sorted(Path(paths.capath).glob("*.pem"))
    text = "\n".join(each.read_text(errors="replace") for each in found if each.is_file())
    if CERTIFICATE_BEGINS not in text:
        raise ProblemError(
            "this host trusts no authority of certificates; install ca-certificates, or name a "
            "file of them by the environment variable SSL_CERT_FILE"
        )
    return text


def require_fingerprint(connection: ssl.SSLSocket, expected: str | None, peer: str) -> None:
    """Raise `IdentityError` unless the peer's certificate is the one that is expected."""
    certificate = connection.getpeercert(binary_form=True)
    require_certificate(certificate, expected, connection.context, peer)


def require_certificate(
    certificate: bytes | None, expected: str | None, context: ssl.SSLContext, peer: str
) -> None:
    """Raise `IdentityError` unless a certificate (DER) is the one that is expected.

    Parameters
    ----------
    certificate : bytes or None
    expected : str or None
        Its fingerprint; None: the context has verified who has signed it.
    context : ssl.SSLContext
        By which the peer was greeted.
    peer : str
        For messages.
    """
    found = fingerprint_of(certificate) if certificate else "none"
    if expected is None:
        if context.verify_mode != ssl.CERT_REQUIRED:
            raise TransferError(
                f"{peer}: give its fingerprint or ca; else any certificate would do"
            )
    elif found != expected:
        raise IdentityError(
            f"{peer}: its certificate must have the fingerprint {expected}, got {found}; another "
            "host answers there, or the agent has a new certificate: compare with what it prints "
            "when it starts"
        )


def say_goodbye(connection: ssl.SSLSocket | None) -> None:
    """Tell the peer that nothing more comes, without waiting for an answer.

    A connection that ends without it looks cut off, and is answered by an alert.
    """
    if connection is not None:
        with suppress(OSError, ValueError):  # it wants to wait, or is not connected any more
            connection.settimeout(0)
            connection.unwrap()


def _general_names(text: str) -> list[GeneralName]:
    from cryptography import x509

    try:
        return [x509.IPAddress(ipaddress.ip_address(text))]
    except ValueError:
        pass
    try:
        return [x509.DNSName(text)]
    except ValueError:
        return []
