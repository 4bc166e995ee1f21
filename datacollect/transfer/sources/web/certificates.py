"""Certificate errors of servers in words, and what helps: nothing else is proposed."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.errors import IdentityError

# X509_V_ERR_… of OpenSSL (x509_vfy.h).
_NOT_YET_VALID, _EXPIRED, _OTHER_HOST, _OTHER_ADDRESS = 9, 10, 62, 64
_PIN = "give its fingerprint, which has no dates and no names"


def refusal(
    error: IdentityError, certificate: Callable[[], bytes | None], *, has_ca: bool
) -> str | None:
    """Return what helps against an error of the usual checks; None where it is no such error.

    Parameters
    ----------
    error : IdentityError
        As `datacollect.net.dialling.start_tls` raises it.
    certificate : callable
        Returns the server's certificate, DER; None where it cannot be had.
    has_ca : bool
        Whether the collection names who signed it.
    """
    cause = error.__context__  # what it was before it was put into words
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return None
    match cause.verify_code:
        case code if code in (_EXPIRED, _NOT_YET_VALID):
            return _of_dates(certificate(), is_expired=code == _EXPIRED)
        case code if code in (_OTHER_HOST, _OTHER_ADDRESS):
            return f"correct the host of its url, or where it is the right server, {_PIN}"
    if has_ca:
        return (
            "the ca that is named has not signed it: name the one that has, and those between, or "
            "its fingerprint"
        )
    return "if it is the right server, give the authority that signed it as ca, or its fingerprint"


def _of_dates(certificate: bytes | None, *, is_expired: bool) -> str:
    """Say which certificate it is, since when, and who can mend it."""
    from cryptography.x509 import load_der_x509_certificate

    now = datetime.now(UTC)
    if certificate is not None:
        found = load_der_x509_certificate(certificate)
        begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
        if is_expired and ends < now:
            return f"it expired at {_shown(ends)}: {_RENEW}"
        if not is_expired and begins > now:
            return f"it is valid from {_shown(begins)} on: check this host's clock, else {_RENEW}"
        what = "has expired" if is_expired else "is not valid yet"
        return f"the certificate of its issuer, or of another one above it, {what}: {_RENEW}"
    return _RENEW


_RENEW = f"the server's administrator has to renew it; until then {_PIN}"


def _shown(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S UTC")
