"""Receipts of people, which show the lost end of a log: by proofs, and by acknowledgements.

An acknowledgement names the place of an entry and is signed by the log's key. So where the people
whose entries no mirror has show their receipts, a service's log ends as it did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.receipt.receipt import MOST_BYTES, read_receipt
from datacollect.bistro.person.items import RECEIPT_SUFFIX
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.formats.log.proofs import LogProof
    from datacollect.bistro.formats.receipt.receipt import Receipt


@dataclass(frozen=True)
class ShownEntries:
    """Entries of a log, by what people hold.

    Attributes
    ----------
    proofs : dict of bytes to LogProof
        By entry.
    words : dict of int to bytes
        Entries that the log has acknowledged, by their places.
    """

    proofs: dict[bytes, LogProof] = field(default_factory=dict)
    words: dict[int, bytes] = field(default_factory=dict)


def receipts_in(
    folder: str | PathLike[str], report: Callable[[str], None]
) -> Iterator[tuple[str, Receipt]]:
    """Yield all receipts of a folder by their names; what is none is reported.

    Raises
    ------
    ProblemError
        There is no such folder.
    """
    if not Path(folder).is_dir():
        raise ProblemError(
            f"{document_name(folder)}: no such folder; name the folder of the receipts"
        )
    for path in sorted(Path(folder).rglob(f"*{RECEIPT_SUFFIX}")):
        name = document_name(path)
        try:
            if path.stat().st_size > MOST_BYTES:
                raise ProblemError(f"{name}: is too long for a receipt")
            receipt = read_receipt(read_bytes(path), name)
        except (OSError, ProblemError) as error:
            report(str(error))
        else:
            yield name, receipt


def shown_entries(
    log: VerifierKey, event: Event, folder: str | PathLike[str], report: Callable[[str], None]
) -> ShownEntries:
    """Return what the receipts of a folder show of a service's log."""
    found = ShownEntries()
    for name, receipt in receipts_in(folder, report):
        if receipt.commitment.event != event.id:
            report(f"{name}: the receipt is of another event")
            continue
        for proof in receipt.proofs:
            if proof.signed.is_of(log) and proof.includes(receipt.entry):
                found.proofs[receipt.entry] = proof
        for word in receipt.acknowledgements:
            if word.is_by(log, receipt.entry):
                found.words[word.index] = receipt.entry
    return found
