"""Bodies of requests about sealed pieces, and of their answers: JSON, strictly parsed."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.net.safe_text import safe_text
from datacollect.transfer.protocol.checked import (
    is_whole,
    json_body,
    parse_object,
    require_list,
    require_words,
)
from datacollect.transfer.protocol.messages import Read, parse_read, read_body
from datacollect.transfer.spool.sealing import KEY_BYTES, ROOT_BYTES, SealedPiece, root_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.transfer.spool.store import SpooledCollection

# Where a source takes its key, and gives sealed pieces; where a relay keeps, lists and gives them.
KEY, SEALED = "/v1/sealing-key", "/v1/sealed"
KEEP, LIST, FETCH = "/v1/spool/keep", "/v1/spool/list", "/v1/spool/fetch"
FORGET, END = "/v1/spool/forget", "/v1/spool/end"

# Of one order, one list, one request to forget.
MOST_ORDERED, MOST_LISTED = 256, 10_000
MOST_BODY_BYTES = 4 * 2**20
_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
_ROOT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class AskedPiece:
    """A piece as its source is asked for it: its number at the destination, and what it is."""

    index: int
    read: Read

    def sealed_of(self, source: str) -> SealedPiece:
        """Return its name once it is sealed."""
        return SealedPiece(source, self.index, root_of(self.read), self.read.n_bytes)


@dataclass(frozen=True)
class Order:
    """Order to a relay: pieces that it is to fetch sealed from a source, and keep.

    Attributes
    ----------
    source : str
        As the relay's ``connect_to`` names it.
    fingerprint : str
        Of the source's certificate.
    ticket : str
        By which the source gives sealed pieces, and nothing else.
    until_s : float
        When what is left is dropped, by the relay's clock, seconds since 1970.
    pieces : tuple of AskedPiece
    """

    source: str
    fingerprint: str
    ticket: str
    until_s: float
    pieces: tuple[AskedPiece, ...]


@dataclass(frozen=True)
class Outcome:
    """Outcome of an order: numbers of pieces that are kept, others and why they are not."""

    kept: tuple[int, ...]
    refused: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class SpoolPage:
    """Part of what a relay keeps of a collection.

    Attributes
    ----------
    pieces : tuple of SealedPiece
    is_last : bool
    expired, dropped : tuple of int
        Pieces and bytes that are not kept any more, though nobody fetched them: their time was
        over; its operator has dropped them.
    """

    pieces: tuple[SealedPiece, ...]
    is_last: bool
    expired: tuple[int, int] = (0, 0)
    dropped: tuple[int, int] = (0, 0)


def key_body(key: bytes) -> bytes:
    """Return the body that gives a source its key."""
    return json_body({"key": base64.b64encode(key).decode()})


def parse_key(body: bytes) -> bytes:
    """Return the key that a body gives; raise `ProblemError` where it gives none.

    >>> parse_key(key_body(bytes(32))) == bytes(32)
    True
    """
    text = require_words(parse_object(body), "key")
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ProblemError(f"key must be {KEY_BYTES} bytes in Base64")
    return key


def asked_body(piece: AskedPiece) -> bytes:
    """Return the body of a request for a sealed piece."""
    return json_body(_asked_tree(piece))


def parse_asked(body: bytes) -> AskedPiece:
    """Return what a body asks a source to seal; raise `ProblemError` where it asks for nothing."""
    return _asked(parse_object(body), "the body")


def order_body(order: Order) -> bytes:
    """Return the body of an order."""
    return json_body(
        {
            "source": order.source,
            "fingerprint": order.fingerprint,
            "ticket": order.ticket,
            "until_s": order.until_s,
            "pieces": [_asked_tree(piece) for piece in order.pieces],
        }
    )


def parse_order(body: bytes) -> Order:
    """Return the order that a body holds; raise `ProblemError` where it holds none."""
    tree = parse_object(body)
    fingerprint, until_s = require_words(tree, "fingerprint"), tree.get("until_s")
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise ProblemError(f"fingerprint must be sha256:…, got {shown(fingerprint)}")
    if type(until_s) not in (int, float) or until_s is None or not 0 <= until_s < 1e15:
        raise ProblemError(f"until_s must be seconds since 1970, got {shown(until_s)}")
    rows = require_list(tree, "pieces", MOST_ORDERED)
    pieces = tuple(_asked(row, f"pieces[{i}]") for i, row in enumerate(rows))
    if not pieces or len({piece.index for piece in pieces}) < len(pieces):
        raise ProblemError("pieces must name at least one, each once")
    ticket = tree.get("ticket")
    if not isinstance(ticket, str) or not ticket.isascii() or not ticket.isprintable():
        raise ProblemError("ticket must be the token of a ticket")
    return Order(require_words(tree, "source"), fingerprint, ticket, float(until_s), pieces)


def outcome_body(outcome: Outcome) -> bytes:
    """Return the answer to an order."""
    return json_body(
        {"kept": list(outcome.kept), "refused": [list(row) for row in outcome.refused]}
    )


def parse_outcome(body: bytes) -> Outcome:
    """Return what a relay says became of an order; raise `ProblemError` where it says nothing."""
    tree = parse_object(body)
    kept = require_list(tree, "kept", MOST_ORDERED)
    refused = require_list(tree, "refused", MOST_ORDERED)
    for row in refused:
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[1], str):
            raise ProblemError("refused must hold pieces, and why")
    if not all(is_whole(index) for index in (*kept, *(row[0] for row in refused))):
        raise ProblemError("pieces must be whole numbers")
    return Outcome(tuple(kept), tuple((index, safe_text(why)) for index, why in refused))


def list_body(after: tuple[str, int] | None) -> bytes:
    """Return the body that asks what is kept, behind a piece."""
    return json_body({"after": None if after is None else list(after)})


def parse_list(body: bytes) -> tuple[str, int]:
    """Return behind which piece a list is to begin."""
    after = parse_object(body).get("after")
    return ("", -1) if after is None else _name(after)


def page_body(
    pieces: Sequence[SealedPiece], found: SpooledCollection | None, *, is_last: bool
) -> bytes:
    """Return a page of what is kept."""
    lost = {} if found is None else {"expired": list(found.expired), "dropped": list(found.dropped)}
    rows = [[each.source, each.index, each.root.hex(), each.n_bytes] for each in pieces]
    return json_body({"pieces": rows, "is_last": is_last, **lost})


def parse_page(body: bytes) -> SpoolPage:
    """Return a page of what a relay says that it keeps; raise `ProblemError` for none."""
    tree = parse_object(body)
    rows = require_list(tree, "pieces", MOST_LISTED)
    if not isinstance(tree.get("is_last"), bool):
        raise ProblemError("is_last must be true or false")
    lost = [_lost(tree.get(name, [0, 0])) for name in ("expired", "dropped")]
    return SpoolPage(tuple(map(_piece, rows)), tree["is_last"], *lost)


def fetch_body(piece: SealedPiece) -> bytes:
    """Return the body that asks a relay for a piece."""
    return json_body({"piece": [piece.source, piece.index, piece.root.hex(), piece.n_bytes]})


def parse_fetch(body: bytes) -> SealedPiece:
    """Return which piece a relay is asked for."""
    return _piece(parse_object(body).get("piece"))


def forget_body(pieces: Iterable[tuple[str, int]]) -> bytes:
    """Return the body that lets pieces go."""
    return json_body({"pieces": [list(piece) for piece in pieces]})


def parse_forget(body: bytes) -> list[tuple[str, int]]:
    """Return which pieces may go."""
    return [_name(row) for row in require_list(parse_object(body), "pieces", MOST_LISTED)]


def _asked_tree(piece: AskedPiece) -> dict[str, Any]:
    return {"index": piece.index, "read": read_body(piece.read).decode()}


def _asked(tree: Any, place: str) -> AskedPiece:
    if not isinstance(tree, dict) or not is_whole(tree.get("index")):
        raise ProblemError(f"{place}: index must be a whole number")
    read = tree.get("read")
    if not isinstance(read, str):
        raise ProblemError(f"{place}: read must be text")
    asked = AskedPiece(tree["index"], parse_read(read.encode()))
    if not asked.read.n_bytes:
        raise ProblemError(f"{place}: read must name some bytes")
    return asked


def _name(row: Any) -> tuple[str, int]:
    if not isinstance(row, list) or len(row) != 2:
        raise ProblemError("pieces are named by source and number")
    source, index = row
    if not isinstance(source, str) or not is_whole(index):
        raise ProblemError("pieces are named by source and number")
    return source, index


def _piece(row: Any) -> SealedPiece:
    if not isinstance(row, list) or len(row) != 4:
        raise ProblemError("a piece is a list of source, number, root and bytes")
    source, index = _name(row[:2])
    root, n_bytes = row[2:]
    if not isinstance(root, str) or not _ROOT.fullmatch(root):
        raise ProblemError(f"root must be {ROOT_BYTES} bytes in hexadecimal")
    if not is_whole(n_bytes):
        raise ProblemError("bytes of a piece must be a whole number")
    return SealedPiece(source, index, bytes.fromhex(root), n_bytes)


def _lost(row: Any) -> tuple[int, int]:
    if not isinstance(row, list) or len(row) != 2 or not all(is_whole(n) for n in row):
        raise ProblemError("what was lost must be pieces and bytes")
    return row[0], row[1]
