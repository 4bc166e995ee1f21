"""Missing uploads: the evidence, by kind, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.custody.verdicts import DOES_NOT_OPEN, REFUSED

if TYPE_CHECKING:
    from collections.abc import Collection

    from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt

WITHOUT_UPLOAD = "timestamp without upload"
WITHOUT_DATA = "receipt without data"
# By the destination's own word, which it kept, and the file it did not.
LOST_SINCE = "collected before, and lost since"


@dataclass(frozen=True)
class Known:
    """Facts that the destination knows of an entry.

    Attributes
    ----------
    entry : bytes
    time_s : int or None
        By when logs prove it; None: not known.
    bistros : tuple of str
        Those whose batches name it.
    word, why : str
        Of the last verdict, as `datacollect.bistro.formats.custody.verdicts.Verdict`; empty:
        none yet.
    ticket : str or None
        The number of the ticket that a bistro was shown with it.
    """

    entry: bytes
    time_s: int | None = None
    bistros: tuple[str, ...] = ()
    word: str = ""
    why: str = ""
    ticket: str | None = None


@dataclass(frozen=True)
class Missing:
    """An entry that is not here: by which kind of evidence, and whose; its ticket, if known."""

    entry: bytes
    kind: str
    bistros: tuple[str, ...] = ()
    ticket: str | None = None


def missing_of(
    known: Known, receipts: Collection[BistroReceipt] = (), *, was_collected: bool = False
) -> Missing | None:
    """Return what is missing of an entry, None where nothing is.

    Parameters
    ----------
    known : Known
    receipts : collection of BistroReceipt
        Of the same entry, as people show them: verified.
    was_collected : bool
        Whether the log of verdicts says so, of a time before the destination lost its files.

    Examples
    --------
    >>> missing_of(Known(bytes(32), time_s=5)).kind
    'timestamp without upload'
    """
    if known.word == REFUSED and known.why == DOES_NOT_OPEN:
        return Missing(known.entry, DOES_NOT_OPEN, known.bistros, known.ticket)
    if known.word:
        return None
    signed = tuple(sorted({*known.bistros, *(each.bistro for each in receipts)}))
    if was_collected:
        return Missing(known.entry, LOST_SINCE, signed, known.ticket)
    if signed:
        return Missing(known.entry, WITHOUT_DATA, signed, known.ticket)
    return None if known.time_s is None else Missing(known.entry, WITHOUT_UPLOAD)


def is_hidden(receipt: BistroReceipt, last_batch: int, bistros: Collection[str]) -> bool:
    """Return whether a bistro has signed a receipt for what its batch does not name.

    Parameters
    ----------
    receipt : BistroReceipt
    last_batch : int
        Number of the bistro's last batch that is here; -1: none.
    bistros : collection of str
        Those whose batches name the entry.
    """
    return receipt.batch <= last_batch and receipt.bistro not in bistros
