"""Possible outcomes of a behaviour, by clients that take nothing without proof.

They read answers by RFC 9110 (2022), without sockets, and in several orders. Where one of them is
deceived, the lie is consistent: nobody could tell it from the truth, but by a hash.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import product
from typing import NamedTuple
from urllib.parse import urlsplit

from judges.misbehaving_answers import Answer, Pace, ServedFile
from judges.misbehaving_server import Site
from judges.misbehaviour import Behaviour

CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", re.ASCII)
MOST_REDIRECTS, MOST_BEGINNINGS, MOST_PARTS = 20, 3, 12
# Of an answer that trickles, a client that waits for it at all sees the first bytes.
FEW_BYTES = 4
CHANGING_BODIES = ("replaced", "regrown", "nodes differ")


class Expectation(Enum):
    """Outcomes that a behaviour allows a client that knows this much."""

    HONEST = "honest"
    DETECTABLE = "detectable"
    ONLY_BY_HASH = "only by hash"


@dataclass(frozen=True)
class Known:
    """Knowledge of a client about a file beforehand."""

    n_bytes: bool = False
    sha256: bool = False

    def __str__(self) -> str:
        words = ["size"] * self.n_bytes + ["hash"] * self.sha256
        return " and ".join(words) or "nothing"


VARIANTS = tuple(Known(*each) for each in product((False, True), repeat=2))
EXAMPLE = ServedFile(
    b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(100)),
    b"".join(hashlib.sha256(b"other %d" % n).digest() for n in range(100)),
    b"".join(hashlib.sha256(b"grown %d" % n).digest() for n in range(101))[:-19],
)


class Order(NamedTuple):
    """In which order a client asks."""

    asks_first_byte: bool
    n_parts: int  # 0: without a range
    keeps_beginnings: bool  # of answers that are cut short, and goes on behind them
    n_wasted: int  # requests that came before, from whomever


@cache
def expectation(behaviour: Behaviour, known: Known) -> Expectation:
    """Return what can be told, where a client knows this much.

    A page that stands for all names can be told where several are asked for.

    >>> expectation(Behaviour(body="zeros"), Known()).value
    'only by hash'
    >>> expectation(Behaviour(status="416"), Known(n_bytes=True)).value
    'honest'
    >>> expectation(Behaviour(status="500"), Known()).value
    'detectable'
    """
    if behaviour.is_one_page and behaviour.turn == "always":
        return Expectation.DETECTABLE
    found = _outcomes(behaviour, knows_bytes=known.n_bytes)
    if False in found and not known.sha256:
        return Expectation.ONLY_BY_HASH
    return Expectation.HONEST if True in found else Expectation.DETECTABLE


@cache
def _outcomes(behaviour: Behaviour, *, knows_bytes: bool) -> set[bool | None]:
    """Return whether clients end with right bytes, in all orders; None: with none."""
    asks_first = (True, False) if knows_bytes else (True,)
    changes = behaviour.turn != "always" or behaviour.body in CHANGING_BODIES
    n_wasted = (0, 1, 2, 3) if changes else (0,)
    orders = [Order(*each) for each in product(asks_first, (0, 1, 3), (False, True), n_wasted)]
    return {outcome(behaviour, order, knows_bytes=knows_bytes) for order in orders}


def outcome(behaviour: Behaviour, order: Order, *, knows_bytes: bool) -> bool | None:
    """Return whether a client ends with right bytes; None where it ends with none."""
    site = Site({"/f": EXAMPLE}, {"/f": behaviour})
    n_bytes = len(EXAMPLE.data) if knows_bytes else None
    client = _Client(site, n_bytes, keeps_beginnings=order.keeps_beginnings)
    for _ in range(order.n_wasted):
        client.ask(0, 0)
    for _ in range(MOST_BEGINNINGS):
        data = client.collect(order)
        if data is not None:
            return data in versions(behaviour, EXAMPLE)
    return None


def versions(behaviour: Behaviour, file: ServedFile) -> tuple[bytes, ...]:
    """Return what the file honestly is, at one time or another."""
    more = {"replaced": (file.other,), "nodes differ": (file.other,), "regrown": (file.grown,)}
    return (file.data, *more.get(behaviour.body, ()))


@dataclass(frozen=True)
class _Evidence:
    """Evidence of the responses on the file so far."""

    n_bytes: int | None
    validators: tuple[list[str], list[str]] | None = None

    def with_answer(self, found: Answer) -> _Evidence | None:
        """Return it with what an answer says of its version; None where they contradict."""
        validators = found.header("ETag"), found.header("Last-Modified")
        if self.validators not in (None, validators):
            return None
        return replace(self, validators=validators)


class _Client:
    def __init__(self, site: Site, n_bytes: int | None, *, keeps_beginnings: bool) -> None:
        self.site, self.n_bytes = site, n_bytes
        self.keeps_beginnings = keeps_beginnings

    def ask(self, first: int | None, last: int | None) -> Answer | None:
        """Return the answer in the end; None where it leads out of the site, or on for ever."""
        target = "/f"
        headers = {} if first is None else {"range": f"bytes={first}-{last}"}
        for _ in range(MOST_REDIRECTS + 1):
            _, found = self.site.answer("GET", target, headers)
            if found.status not in (301, 302, 303, 307, 308):
                return found
            where = found.header("Location")
            if not where or urlsplit(where[0]).scheme:
                return None
            target = where[0]
        return None

    def collect(self, order: Order) -> bytes | None:
        """Return the file, where every byte of it is proved as far as it can be."""
        evidence = _Evidence(self.n_bytes)
        if order.n_parts == 0:
            return self._whole(evidence)
        if order.asks_first_byte or self.n_bytes is None:
            found = self.ask(0, 0)
            if found is None:
                return None
            if found.status in (200, 416):
                # A status tells no size: what a server has is asked for in another way.
                if _says_empty(found) and self.n_bytes in (None, 0):
                    return b""
                return self._whole(evidence)
            part = self._range_of(found, 0, 0, evidence)
            if part is None:
                return None
            _, evidence = part
        return self._parts(evidence, order.n_parts)

    def _parts(self, evidence: _Evidence, n_parts: int) -> bytes | None:
        assert evidence.n_bytes is not None
        data, step = b"", -(-evidence.n_bytes // n_parts)
        for _ in range(MOST_PARTS):
            if len(data) == evidence.n_bytes:
                return data
            last = min(evidence.n_bytes, step * (len(data) // step + 1)) - 1
            found = self.ask(len(data), last)
            if found is None:
                return None
            if found.status == 200:
                part = self._beginning_of(found, evidence)
            else:
                part = self._range_of(found, len(data), last, evidence)
            if part is None:
                return None
            # A whole answer begins again, whatever was there.
            data = part[0] if found.status == 200 else data + part[0]
            evidence = part[1]
        return None

    def _whole(self, evidence: _Evidence) -> bytes | None:
        found = self.ask(None, None)
        if found is None or found.status != 200:
            return None
        data, is_all = _payload(found, evidence.n_bytes)
        if not is_all or evidence.n_bytes not in (None, len(data)):
            return None
        return None if evidence.with_answer(found) is None else data

    def _beginning_of(self, found: Answer, evidence: _Evidence) -> tuple[bytes, _Evidence] | None:
        """Return what a whole answer has brought of a file whose size is known."""
        data, is_all = _payload(found, evidence.n_bytes)
        after = evidence.with_answer(found)
        told = int(found.lengths[0]) if found.lengths and found.lengths[0].isdecimal() else None
        if after is None or told not in (None, evidence.n_bytes):
            return None
        if is_all and len(data) == evidence.n_bytes:
            return data, after
        is_of_use = self.keeps_beginnings and 0 < len(data) <= evidence.n_bytes and not is_all
        return (data, after) if is_of_use else None

    def _range_of(
        self, found: Answer, first: int, last: int, evidence: _Evidence
    ) -> tuple[bytes, _Evidence] | None:
        """Return the bytes of a range, and what is known then; None where anything does not fit."""
        said = [CONTENT_RANGE.fullmatch(each) for each in found.header("Content-Range")]
        if found.status != 206 or len(said) != 1 or said[0] is None or said[0][1] is None:
            return None
        begin, end, total = int(said[0][1]), int(said[0][2]), said[0][3]
        if total == "*" and evidence.n_bytes is None:
            return None
        n_bytes = evidence.n_bytes if total == "*" else int(total)
        after = evidence.with_answer(found)
        if begin != first or not begin <= end <= last or end >= n_bytes:
            return None
        if evidence.n_bytes not in (None, n_bytes) or after is None:
            return None
        data, is_all = _payload(found, end - begin + 1)
        if is_all and len(data) != end - begin + 1:
            return None
        is_of_use = self.keeps_beginnings and 0 < len(data) <= end - begin + 1
        return (data, replace(after, n_bytes=n_bytes)) if is_all or is_of_use else None


def _says_empty(found: Answer) -> bool:
    return found.status == 416 and found.header("Content-Range") == ["bytes */0"]


NOTHING = b"", False


def _payload(found: Answer, n_bytes: int | None) -> tuple[bytes, bool]:
    """Return the bytes that came as they are, and whether they came to their end.

    Where only the end of the connection is their end, `n_bytes` must say how many they are.
    """
    if found.header("Content-Encoding") not in ([], ["identity"]):
        return NOTHING
    if any(each.startswith("multipart/") for each in found.header("Content-Type")):
        return NOTHING
    if found.pace is Pace.TRICKLE and len(found.payload) > FEW_BYTES:
        return found.payload[:FEW_BYTES], False
    if found.is_chunked:
        return found.payload, found.is_ended
    if found.lengths:
        # The same value twice is one (RFC 9112, 6.3).
        if len(set(found.lengths)) > 1 or not found.lengths[0].isdecimal():
            return NOTHING
        length = int(found.lengths[0])
        return found.payload[:length], len(found.payload) >= length
    return found.payload, found.is_ended and len(found.payload) == n_bytes
