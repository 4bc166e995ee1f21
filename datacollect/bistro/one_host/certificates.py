"""The certificate of an event on one host: a given one, one by certbot, or for a trial its own."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import document_name, not_written, read_bytes, write_owned
from datacollect.files.kinds import shown
from datacollect.net.tls import make_certificate, server_context, trusted_certificates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from datacollect.bistro.one_host.places import Places

CERTBOT = "certbot"
# It talks to an authority on the other side of the world, who calls back.
CERTBOT_S = 300.0


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate, with its chain, and of its key."""

    chain: Path
    key: Path


def names_of(certificate: Certificate) -> list[str]:
    """Return the names and addresses that a certificate is for.

    Raises
    ------
    ProblemError
        It is none, or its key is another's.
    """
    from cryptography import x509
    from cryptography.x509.oid import ExtensionOID

    server_context(certificate.chain, certificate.key, "give both, as an authority has made them")
    first = x509.load_pem_x509_certificates(read_bytes(certificate.chain))[0]
    try:
        found = first.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
    except x509.ExtensionNotFound:
        return []
    alternatives = found.value
    assert isinstance(alternatives, x509.SubjectAlternativeName)
    addresses = alternatives.get_values_for_type(x509.IPAddress)
    return [*alternatives.get_values_for_type(x509.DNSName), *map(str, addresses)]


def host_of(certificate: Certificate) -> str:
    """Return the host that a certificate is for, where it says one.

    Raises
    ------
    ProblemError
        It says several, or none.
    """
    found = [name for name in names_of(certificate) if "*" not in name]
    if len(found) != 1:
        raise ProblemError(
            "--address must say how people reach this host, since the certificate "
            f"{document_name(certificate.chain)} is for {', '.join(found) or 'no single name'}; "
            "add --address HOST"
        )
    return found[0]


def require_host(certificate: Certificate, host: str) -> None:
    """Raise `ProblemError` where a certificate is for other hosts."""
    names = names_of(certificate)
    if not any(_is_for(name, host) for name in names):
        raise ProblemError(
            f"--address must be a name that the certificate {document_name(certificate.chain)} is "
            f"for ({', '.join(names) or 'none'}), got {shown(host)}; give one of its names, or "
            "another certificate"
        )


def _is_for(name: str, host: str) -> bool:
    """Whether a name of a certificate covers a host; a star stands for one label."""
    try:
        return ipaddress.ip_address(name) == ipaddress.ip_address(host)
    except ValueError:
        name, host = name.lower(), host.lower()
    return name == host or (name.startswith("*.") and name[1:] == f".{host.partition('.')[2]}")


def own_certificate(places: Places, host: str) -> Certificate:
    """Return the certificate of a trial, made where it is absent; who is served it is warned.

    Raises
    ------
    NotWrittenError
        It cannot be written.
    """
    chain, key = places.own_certificate
    if not chain.exists():
        made, private = make_certificate(host, host)
        try:
            write_owned(key, private, mode=0o600)
            trusted = _trusted_by_host() + made
            write_owned(places.trusted, trusted, mode=0o644)
            # The last: without it all is made anew.
            write_owned(chain, made, mode=0o644)
        except OSError as error:
            raise not_written(chain, error) from None
    return Certificate(chain, key)


def _trusted_by_host() -> bytes:
    try:
        return trusted_certificates().encode() + b"\n"
    except ProblemError:  # a trial needs nobody else
        return b""


def certbots_certificate(places: Places, host: str, mail: str) -> Certificate:
    """Return the certificate that certbot gets for a host, by ACME; one that is there stays.

    Raises
    ------
    ProblemError
        certbot is not installed, or gets none: the message has its last words.
    """
    live = places.acme / "live" / host
    found = Certificate(live / "fullchain.pem", live / "privkey.pem")
    if not found.chain.exists():
        asking = ("--standalone", "--agree-tos", "-m", mail, "-d", host, "--cert-name", host)
        _run_certbot(places, "certonly", *asking)
    if not found.chain.exists():
        raise NotWrittenError(
            f"certbot has ended, but has not written {found.chain}; see {places.acme}/logs"
        )
    return found


def renew_by_certbot(places: Places) -> None:
    """Have certbot renew what is soon to expire.

    Raises
    ------
    ProblemError
        It cannot.
    """
    _run_certbot(places, "renew", "--quiet")


def _run_certbot(places: Places, what: str, *arguments: str) -> None:
    program = shutil.which(CERTBOT)
    if program is None:
        raise ProblemError(
            "--acme needs the program certbot, which is not installed; install it, as by "
            "`sudo apt install certbot`, or give a certificate by --certificate"
        )
    folders: Sequence[str] = (
        *("--config-dir", str(places.acme)),
        *("--work-dir", str(places.acme / "work")),
        *("--logs-dir", str(places.acme / "logs")),
    )
    try:
        done = subprocess.run(
            [program, what, "--non-interactive", *folders, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=CERTBOT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ProblemError(
            f"certbot has not ended within {CERTBOT_S:.0f} s; see {places.acme}/logs"
        ) from None
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[-400:]
        raise ProblemError(
            f"certbot got no certificate: {words}; it needs root, and port 80 of this host must "
            "be reachable from the internet by that name; or give a certificate by --certificate"
        )
