"""Tokens of outside authorities (RFC 3161, 2001): the time where no service answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.certificates import public_keys, read_certificates
from datacollect.bistro.formats.log.checkpoints import TIME_STOP
from datacollect.errors import ProblemError
from datacollect.installation import is_absent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.bistro.formats.event.event import Authority

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
    except ImportError as error:
        if not is_absent(error, "rfc3161_client"):
            raise
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
    return _judged(token, message, 0, authority).time_s


@dataclass(frozen=True)
class _Judged:
    """A token that counts: by which authority, by its index, when, and whose keys vouch for it."""

    authority: int
    time_s: int
    keys: frozenset[bytes]

    def is_apart_from(self, other: _Judged) -> bool:
        """Return whether no key vouches for both: two roots may have signed one intermediate."""
        return self.authority != other.authority and not self.keys & other.keys


def _judged(token: bytes, message: bytes, which: int, authority: Authority) -> _Judged:
    from cryptography import x509
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    roots = read_certificates(authority.certificate, f"the certificate of {authority.url}")
    try:
        response = decode_timestamp_response(token)
        VerifierBuilder(roots=roots).build().verify_message(response, message)
        info = response.tst_info
        accuracy = info.accuracy
        accuracy_s = 0.0
        if accuracy is not None:
            accuracy_s = (accuracy.seconds or 0) + (accuracy.millis or 0) / 1e3
            accuracy_s += (accuracy.micros or 0) / 1e6
        chain = map(x509.load_der_x509_certificate, response.signed_data.certificates)
        time_s = math.ceil(info.gen_time.timestamp() + accuracy_s)
        if time_s >= TIME_STOP:
            raise ValueError(f"its time must be below {TIME_STOP} s since 1970, got {time_s}")
        return _Judged(which, time_s, public_keys(chain))
    except (VerificationError, ValueError, TypeError) as error:
        raise ProblemError(
            f"the time stamp is not one of {authority.url} over this entry: {error}"
        ) from None


def certified_by(
    tokens: Sequence[bytes], entry: bytes, authorities: Sequence[Authority]
) -> set[int]:
    """Return the authorities, by their index, whose tokens over an entry are there already."""
    if not tokens or not _is_installed():
        return set()
    found = [_first_judged(token, entry, authorities) for token in tokens]
    return {each.authority for each in found if each is not None}


def _is_installed() -> bool:
    return find_spec("rfc3161_client") is not None


def outside_time(
    tokens: Sequence[bytes], entry: bytes, authorities: Sequence[Authority]
) -> tuple[int | None, list[str]]:
    """Return the time on which two authorities agree, and why tokens do not count.

    Returns
    -------
    int or None
        The second smallest of the times of distinct authorities, seconds since 1970; those for
        which one key vouches are one.
    list of str
        A sentence for each token that does not count, and for what is missing.
    """
    if not tokens:
        return None, []
    if not _is_installed():
        return None, [f"{not_installed()}."]
    counting: list[_Judged] = []
    reasons = []
    for i, token in enumerate(tokens):
        found = _first_judged(token, entry, authorities)
        if found is None:
            reasons.append(
                f"Token {i + 1} does not count: it is over other data, or of no authority of the "
                "event."
            )
        else:
            counting.append(found)
    counting.sort(key=lambda each: each.time_s)
    for i, later in enumerate(counting):
        if any(later.is_apart_from(earlier) for earlier in counting[:i]):
            return later.time_s, reasons
    n_authorities = len({each.authority for each in counting})
    said = f"has those of {min(n_authorities, 1)}"
    if n_authorities >= AUTHORITIES_NEEDED:
        said = "has those of 1, for one key vouches for all of them"
    reasons.append(
        f"Tokens of {AUTHORITIES_NEEDED} authorities of the event make a time; this receipt {said}."
    )
    return None, reasons


def _first_judged(token: bytes, entry: bytes, authorities: Sequence[Authority]) -> _Judged | None:
    for which, authority in enumerate(authorities):
        try:
            return _judged(token, entry, which, authority)
        except ProblemError:
            continue
    return None
