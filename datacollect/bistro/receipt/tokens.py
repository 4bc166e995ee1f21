"""Tokens of outside authorities (RFC 3161, 2001): the time where no service answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.bistro.event.event import Authority

# One authority could backdate alone: so many must agree.
AUTHORITIES_NEEDED = 2


def not_installed() -> str:
    """Say what is missing where the package for tokens is, and how to get it."""
    from datacollect.installation import command_for_package

    command = command_for_package("rfc3161-client")
    return f"tokens of outside authorities cannot be judged here; install what does it: {command}"


def query_of(message: bytes) -> bytes:
    """Return what an authority is asked for a token over a message: a TimeStampReq in DER.

    The token carries the authority's certificates: it must prove the same without asking again.

    Raises
    ------
    ProblemError
        What makes it is not installed.
    """
    try:
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder
    except ImportError:
        raise ProblemError(not_installed()) from None
    builder = TimestampRequestBuilder().data(message).hash_algorithm(HashAlgorithm.SHA256)
    return builder.cert_request(cert_request=True).build().as_bytes()


def token_time(token: bytes, message: bytes, authority: Authority) -> int:
    """Return the latest second at which a message was there, by an authority's token.

    Its time and its accuracy count together, rounded up. The certificates are judged at the time
    that the token says, so that it proves the same in ten years.

    Parameters
    ----------
    token : bytes
        The authority's answer, a TimeStampResp in DER.
    message : bytes
        What it must be over.
    authority : Authority

    Raises
    ------
    ProblemError
        It is no token, over something else, or not the authority's.
    """
    from cryptography import x509
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    roots = x509.load_pem_x509_certificates(authority.certificate.encode())
    try:
        response = decode_timestamp_response(token)
        VerifierBuilder(roots=roots).build().verify_message(response, message)
        info = response.tst_info
        accuracy = info.accuracy
        accuracy_s = 0.0
        if accuracy is not None:
            accuracy_s = (accuracy.seconds or 0) + (accuracy.millis or 0) / 1e3
            accuracy_s += (accuracy.micros or 0) / 1e6
        return math.ceil(info.gen_time.timestamp() + accuracy_s)
    except (VerificationError, ValueError, TypeError) as error:
        raise ProblemError(f"it is no token of {authority.url} over this entry: {error}") from None


def outside_time(
    tokens: Sequence[bytes], entry: bytes, authorities: Sequence[Authority]
) -> tuple[int | None, list[str]]:
    """Return the time on which two authorities agree, and why tokens do not count.

    Returns
    -------
    int or None
        The second smallest of the times of distinct authorities, seconds since 1970.
    list of str
        A sentence for each token that does not count, and for what is missing.
    """
    if not tokens:
        return None, []
    try:
        import rfc3161_client  # noqa: F401
    except ImportError:
        return None, [f"{not_installed()}."]
    times: dict[int, int] = {}
    reasons = []
    for i, token in enumerate(tokens):
        found = _first_time(token, entry, authorities)
        if found is None:
            reasons.append(
                f"Token {i + 1} does not count: it is over other data, or of none of the event's "
                "authorities."
            )
            continue
        which, time_s = found
        times[which] = min(time_s, times.get(which, time_s))
    if len(times) < AUTHORITIES_NEEDED:
        reasons.append(
            f"Tokens of {AUTHORITIES_NEEDED} authorities of the event make a time; this receipt "
            f"has those of {len(times)}."
        )
        return None, reasons
    return sorted(times.values())[AUTHORITIES_NEEDED - 1], reasons


def _first_time(
    token: bytes, entry: bytes, authorities: Sequence[Authority]
) -> tuple[int, int] | None:
    for which, authority in enumerate(authorities):
        try:
            return which, token_time(token, entry, authority)
        except ProblemError:
            continue
    return None
