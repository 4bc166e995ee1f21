"""Verifies a receipt from files alone: ``dc.verify_receipt``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.file_names import MOST_PARTS, PROOF_SUFFIX
from datacollect.bistro.formats.receipt.content_proof import read_content_proof
from datacollect.bistro.formats.receipt.receipt import read_amendments, read_receipt
from datacollect.bistro.formats.receipt.verify import Content, ShownContent, verify
from datacollect.bistro.formats.sealing.keep import (
    SUFFIX,
    ciphertext_of,
    is_keep,
    read_kept_seal,
)
from datacollect.bistro.person.items import RECEIPT_SUFFIX, commitment_of, pieces_of
from datacollect.bistro.person.showing import proof_place
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, naming_unread, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.content_proof import ContentProof
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
    proof: str | PathLike[str] | None = None,
    amendments: str | PathLike[str] | None = None,
) -> Verdict:
    """Return what a receipt proves, without any network and without this host's clock.

    Parameters
    ----------
    receipt : path-like
    event : path-like
        The event's file, as it was published: every byte counts.
    file : path-like, optional
        What was handed in: the file beside its ``.proof`` or its ``.keep``, or the sealed file.
        Left out: the receipt is of some bytes, nobody knows which.
    proof : path-like, optional
        The file's ``.proof``; left out: the one that lies beside the file or the receipt, or, of
        one of several files, in the folder ``NAME.proofs`` beside the receipt.
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
    if proof is not None and file is None:
        raise ProblemError("a proof shows which file was handed in; give that file, too")
    given = _Given(Path(receipt), None if proof is None else Path(proof), found, read)
    shown = _Shown() if file is None else _shown(Path(file), given)
    return verify(
        event_data, found, ciphertext=shown.sealed, content=shown.content, amendments=changes
    )


class _Given(NamedTuple):
    """Facts that a file is compared with: where the receipt is, what it says, and the event."""

    place: Path
    proof: Path | None
    receipt: Receipt
    event: Event


class _Shown(NamedTuple):
    """Parts of a file that are compared with a receipt."""

    sealed: Iterator[bytes] | None = None
    content: Content | ShownContent | None = None


def _shown(file: Path, given: _Given) -> _Shown:
    with naming_unread(file):
        return _what_is(file, given)


def _what_is(file: Path, given: _Given) -> _Shown:
    name = document_name(file)
    if not file.is_file():
        raise ProblemError(f"{name}: no such file; check the path")
    if given.proof is not None:
        return _by_proof(file, _proof_at(given.proof, given), given)
    if is_keep(file):
        named = read_kept_seal(file)
        if not named.is_whole:
            raise ProblemError(f"{name}: its ciphertext is damaged; name the file itself instead")
        return _Shown(sealed=_ciphertext(file, named))
    of_file = f"{file.name}{PROOF_SUFFIX}"
    places = [given.place.with_name(of_file), file.with_name(of_file), *_among_others(file, given)]
    beside = _Beside(places, given)
    if beside.proof is not None:
        return _by_proof(file, beside.proof, given)
    if kept := _kept_of(file, given):
        inner = kept.inner
        return _Shown(content=Content(inner.secret, inner.header, pieces_of(file)))
    with file.open("rb") as opened:
        if opened.read(len(AGE)) == AGE:
            return _Shown(sealed=pieces_of(file))
    # The file may have another name by now.
    of_receipt = f"{given.place.name.removesuffix(RECEIPT_SUFFIX)}{PROOF_SUFFIX}"
    renamed = _Beside([given.place.with_name(of_receipt)], given)
    if renamed.proof is not None:
        return _by_proof(file, renamed.proof, given)
    raise beside.why_not or renamed.why_not or _untold(name)


def _among_others(file: Path, given: _Given) -> Iterator[Path]:
    """Yield where the proof of one of several files may stand: by what it is called there."""
    stem = given.place.name.removesuffix(RECEIPT_SUFFIX)
    folder, parts = given.place.with_name(f"{stem}{PROOF_SUFFIX}s"), file.parts[-MOST_PARTS:]
    for i in range(len(parts)):
        if ".." not in parts[i:]:
            yield proof_place(folder, os.path.join(*parts[i:]))  # noqa: PTH118 - a name


def _untold(name: str) -> ProblemError:
    return ProblemError(
        f"{name}: nothing tells that it was sealed: put its {PROOF_SUFFIX} or its {SUFFIX} beside "
        "it, which `datacollect upload` has written, or name the first with --proof"
    )


def _by_proof(file: Path, proof: ContentProof, given: _Given) -> _Shown:
    opening = proof.opening(given.receipt.commitment.event)
    return _Shown(content=ShownContent(opening, pieces_of(file)))


def _proof_at(path: Path, given: _Given) -> ContentProof:
    """Return the proof in a file; raise `ProblemError` where it is none of this receipt."""
    name = document_name(path)
    proof = read_content_proof(read_bytes(path), name)
    if proof.entry != given.receipt.entry:
        raise ProblemError(
            f"{name}: is the proof of entry {proof.entry.hex()}, but {document_name(given.place)} "
            f"is the receipt of {given.receipt.entry.hex()}; take the proof that was written "
            "beside this receipt"
        )
    return proof


class _Beside:
    """The first proof of a receipt that stands at one of some places; or why what is there is none.

    A file that was handed in twice has two.
    """

    def __init__(self, places: Iterable[Path], given: _Given) -> None:
        self.proof: ContentProof | None = None
        self.why_not: ProblemError | None = None
        for place in filter(Path.is_file, dict.fromkeys(places)):
            try:
                self.proof = _proof_at(place, given)
            except ProblemError as error:
                self.why_not = self.why_not or error
            else:
                return


def _kept_of(file: Path, given: _Given) -> KeptSeal | None:
    """Return what is kept of a file, beside it or beside the receipt: what the receipt is of.

    A file that was handed in twice has two.
    """
    name = file.name + SUFFIX
    places = dict.fromkeys((given.place.with_name(name), file.with_name(name)))
    other = None
    for place in filter(Path.is_file, places):
        kept = read_kept_seal(place)
        if commitment_of(kept, given.event) == given.receipt.commitment:
            return kept
        other = other or kept
    return other


def _ciphertext(file: Path, kept: KeptSeal) -> Iterator[bytes]:
    with ciphertext_of(file, kept) as blocks:
        yield from blocks
