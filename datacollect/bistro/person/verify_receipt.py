"""Verifies a receipt from files alone: ``dc.verify_receipt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.receipt.receipt import read_amendments, read_receipt
from datacollect.bistro.formats.receipt.verify import Content, verify
from datacollect.bistro.formats.sealing.keep import (
    MAGIC,
    OLDER_MAGIC,
    SUFFIX,
    ciphertext_of,
    read_kept_seal,
)
from datacollect.bistro.person.items import commitment_of, pieces_of
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, naming_unread, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.receipt import Receipt
    from datacollect.bistro.formats.receipt.verify import Verdict
    from datacollect.bistro.formats.sealing.keep import KeptSeal

# What every file of age begins with.
AGE = b"age-encryption.org/v1\n"


def verify_receipt(
    receipt: str | PathLike[str],
    event: str | PathLike[str],
    *,
    file: str | PathLike[str] | None = None,
    amendments: str | PathLike[str] | None = None,
) -> Verdict:
    """Return what a receipt proves, without any network and without this host's clock.

    Parameters
    ----------
    receipt : path-like
    event : path-like
        The event's file, as it was published: every byte counts.
    file : path-like, optional
        What was handed in: the sealed file, the ``.keep``, or the file beside its ``.keep``. Left
        out: the receipt is of some bytes, nobody knows which.
    amendments : path-like, optional
        What the organiser has changed, as ``upload`` and ``audit`` save it.

    Returns
    -------
    datacollect.bistro.formats.receipt.verify.Verdict
        Its `outcome` is ``"in time"``, ``"late"`` or ``"not proved"``; `covers` says of what.

    Raises
    ------
    ProblemError
        One of the files is none, or of another event.

    Examples
    --------
    >>> import datacollect as dc
    >>> verdict = dc.verify_receipt("a.receipt.json", "tax.toml", file="a")  # doctest: +SKIP
    >>> verdict.outcome, verdict.covers  # doctest: +SKIP
    ('in time', 'the file')
    """
    event_data = read_bytes(event)
    read = read_event(event_data, document_name(event))
    found = read_receipt(read_bytes(receipt), document_name(receipt))
    changes = None
    if amendments is not None:
        changes = read_amendments(read_bytes(amendments), read.id, document_name(amendments))
    shown = _Shown() if file is None else _shown(Path(file), Path(receipt), found, read)
    return verify(
        event_data, found, ciphertext=shown.sealed, content=shown.content, amendments=changes
    )


class _Shown(NamedTuple):
    """What of a file is held against a receipt."""

    sealed: Iterator[bytes] | None = None
    content: Content | None = None


def _shown(file: Path, receipt: Path, found: Receipt, event: Event) -> _Shown:
    with naming_unread(file):
        return _what_is(file, receipt, found, event)


def _what_is(file: Path, receipt: Path, found: Receipt, event: Event) -> _Shown:
    name = document_name(file)
    if not file.is_file():
        raise ProblemError(f"{name}: no such file; check the path")
    if _is_keep(file):
        named = read_kept_seal(file)
        if not named.is_whole:
            raise ProblemError(f"{name}: its ciphertext is damaged; name the file itself instead")
        return _Shown(sealed=_ciphertext(file, named))
    if kept := _kept_of(file, receipt, found, event):
        inner = kept.inner
        return _Shown(content=Content(inner.secret, inner.header, pieces_of(file)))
    with file.open("rb") as opened:
        if opened.read(len(AGE)) == AGE:
            return _Shown(sealed=pieces_of(file))
    raise ProblemError(
        f"{name}: nothing tells that it was sealed: put its {SUFFIX} beside it, which `datacollect "
        "upload` has written"
    )


def _is_keep(file: Path) -> bool:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - len(MAGIC)))
        return opened.read() in (MAGIC, OLDER_MAGIC)


def _kept_of(file: Path, receipt: Path, found: Receipt, event: Event) -> KeptSeal | None:
    """Return what is kept of a file, beside it or beside the receipt: what the receipt is of.

    A file that was handed in twice has two.
    """
    name = file.name + SUFFIX
    places = dict.fromkeys((receipt.with_name(name), file.with_name(name)))
    other = None
    for place in filter(Path.is_file, places):
        kept = read_kept_seal(place)
        if commitment_of(kept, event) == found.commitment:
            return kept
        other = other or kept
    return other


def _ciphertext(file: Path, kept: KeptSeal) -> Iterator[bytes]:
    with ciphertext_of(file, kept) as blocks:
        yield from blocks
