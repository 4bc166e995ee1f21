"""Certificates of outside authorities and bistros, read; what tells them apart is their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.x509 import Certificate


def read_certificates(pem: str, place: str) -> list[Certificate]:
    """Return the certificates that a PEM text holds; raise `ProblemError` where it holds none."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificates(pem.encode())
        public_keys(found)
    except ValueError as error:
        raise ProblemError(
            f"{place} must be certificates, but one cannot be read: {error}; copy its file again"
        ) from None
    return found


def public_keys(certificates: Iterable[Certificate]) -> frozenset[bytes]:
    """Return the keys of certificates, DER: one key may have many certificates.

    Raises
    ------
    ValueError
        A key is of no kind that is known.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        return frozenset(
            each.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            for each in certificates
        )
    except UnsupportedAlgorithm as error:
        raise ValueError(f"its key is of no known kind: {error}") from None
