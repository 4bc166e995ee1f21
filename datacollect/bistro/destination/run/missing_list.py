"""List of what is missing: by batches, by receipts that people have shown, by the logs."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from datacollect.bistro.destination.missing import Known, Missing, is_hidden, missing_of
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.receipt.evidence import Lie
from datacollect.bistro.formats.receipt.receipt import MOST_BYTES, read_receipt
from datacollect.bistro.formats.receipt.verify import require_receipt_of, verify
from datacollect.bistro.person.items import RECEIPT_SUFFIX
from datacollect.errors import ProblemError, TicketError
from datacollect.files.documents import document_name, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.receipt import Receipt


class ShownReceipts:
    """The receipts of a folder, in time by their own proofs; each file is read once.

    Parameters
    ----------
    folder : Path or None
        None: people have shown none.
    event_data : bytes
        The event's file.
    report : function
    """

    def __init__(
        self, folder: Path | None, event_data: bytes, report: Callable[[str], None]
    ) -> None:
        self._folder, self._event_data, self._report = folder, event_data, report
        self._read: dict[Path, tuple[int, Receipt | None]] = {}

    def of(self, event: Event) -> dict[bytes, tuple[BistroReceipt, ...]]:
        """Return by entry what bistros have signed of it, as these receipts show."""
        found: dict[bytes, list[BistroReceipt]] = {}
        for receipt in self._receipts(event):
            said = found.setdefault(receipt.entry, [])
            for token in receipt.bistro_receipts:
                try:
                    word = read_bistro_receipt(token, event)
                except TicketError:
                    continue
                if word.entry == receipt.entry and word not in said:
                    said.append(word)
        return {entry: tuple(said) for entry, said in found.items()}

    def _receipts(self, event: Event) -> Iterable[Receipt]:
        if self._folder is None:
            return
        if not self._folder.is_dir():
            self._report(f"{document_name(self._folder)}: no such folder, so no receipts are read")
        for path in sorted(self._folder.rglob(f"*{RECEIPT_SUFFIX}")):
            written = self._stamp(path)
            if self._read.get(path, (-2, None))[0] != written:
                self._read[path] = written, self._taken(path, event, written)
            receipt = self._read[path][1]
            if receipt is not None and verify_time(self._event_data, receipt, event):
                yield receipt

    def _stamp(self, path: Path) -> int:
        """Return when a file was written; -1: it is none, or too long for a receipt."""
        try:
            found = path.stat()
        except OSError:
            return -1
        is_one = stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES
        return found.st_mtime_ns if is_one else -1

    def _taken(self, path: Path, event: Event, written: int) -> Receipt | None:
        if written < 0:
            self._report(f"{document_name(path)}: cannot be a receipt; remove it")
            return None
        try:
            receipt = read_receipt(read_bytes(path), document_name(path))
            require_receipt_of(receipt, event, self._event_data)
        except ProblemError as error:
            self._report(str(error))
            return None
        return receipt


def verify_time(event_data: bytes, receipt: Receipt, event: Event) -> bool:
    """Say whether a receipt proves that it is in time, as amendments have left the event."""
    time_s = verify(event_data, receipt).time_s
    return time_s is not None and time_s <= event.latest_s


def hidden_rows(
    shown: Mapping[bytes, tuple[BistroReceipt, ...]],
    bistros_of: Callable[[bytes], Collection[str]],
    last_batch: Callable[[str], int],
) -> list[Lie]:
    """Return who has signed receipts for rows that the batches which they name do not have.

    Parameters
    ----------
    shown : mapping of bytes to tuple of BistroReceipt
        By entry: what people have shown.
    bistros_of : function
        The bistros whose batches name an entry.
    last_batch : function
        The number of a bistro's last batch that is here; -1: none.
    """
    return [
        Lie(
            word.bistro,
            f"It has signed a receipt for {entry.hex()} in its batch {word.batch}, which does not "
            "name it.",
        )
        for entry, words in sorted(shown.items())
        for word in words
        if is_hidden(word, last_batch(word.bistro), bistros_of(entry))
    ]


def missing_list(
    known: Iterable[Known],
    shown: Mapping[bytes, tuple[BistroReceipt, ...]],
    in_time: Iterable[bytes],
    known_entries: Callable[[Iterable[bytes]], set[bytes]],
    lost_since: Collection[bytes] = frozenset(),
) -> list[Missing]:
    """Return what is missing, each entry once, by entry.

    Parameters
    ----------
    known : iterable of Known
        Entries that batches name and that are not collected.
    shown : mapping of bytes to tuple of BistroReceipt
        By entry: what people have shown.
    in_time : iterable of bytes
        Entries in time of the logs.
    known_entries : function
        Which of some entries batches name.
    lost_since : collection of bytes
        Entries that were collected once, and are not here.
    """
    named = {each.entry: each for each in known}
    others = {*shown, *in_time} - named.keys()
    others -= known_entries(others)
    others |= {*lost_since} - named.keys()
    found = [
        missing_of(each, shown.get(each.entry, ()), was_collected=each.entry in lost_since)
        for each in (*named.values(), *(Known(entry, 0) for entry in others))
    ]
    return sorted((each for each in found if each is not None), key=lambda each: each.entry)
