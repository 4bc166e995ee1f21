"""List of what is missing: by batches, by receipts that people have shown, by the logs."""

from __future__ import annotations

import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.bistro.destination.missing import Known, Missing, is_hidden, missing_of
from datacollect.bistro.destination.run.log_table import LogTable, joined, read_table
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.receipt.evidence import Lie
from datacollect.bistro.formats.receipt.receipt import MOST_BYTES, read_receipt
from datacollect.bistro.formats.receipt.verify import require_receipt_of, verify
from datacollect.bistro.person.items import RECEIPT_SUFFIX
from datacollect.errors import DatacollectError, ProblemError, TicketError
from datacollect.files.documents import document_name, read_bytes
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.receipt import Receipt

# Logs are whole so long after the last moment in time; a log that does not answer is tried again.
LOGGED_WITHIN_S, AGAIN_S = 60, 600.0


@dataclass
class LoggedEntries:
    """The entries in time of all logs, read once the deadline is over.

    Attributes
    ----------
    event_data : bytes
    tls : ssl.SSLContext
    report : function
    """

    tls: ssl.SSLContext
    report: Callable[[str], None]
    _of_log: dict[str, LogTable] = field(default_factory=dict)
    _latest_s: int = -1
    _again_s: float = 0.0
    _joined: LogTable = field(default_factory=lambda: joined(()))

    def known(self, event: Event, now_s: float) -> frozenset[bytes]:
        """Return them, as far as they are known; before the deadline nothing is.

        Parameters as of `table`.
        """
        return self.table(event, now_s).until(event.latest_s)

    def table(self, event: Event, now_s: float) -> LogTable:
        """Return them with their times; the same object as long as nothing more is known.

        Parameters
        ----------
        event : Event
            With the amendments that are known: a later deadline lets more be in time.
        now_s : float
            Seconds since 1970.
        """
        if event.latest_s != self._latest_s:
            self._of_log, self._latest_s, self._again_s = {}, event.latest_s, 0.0
            self._joined = joined(())
        left = [each for each in event.services if each.url not in self._of_log]
        if left and now_s > event.latest_s + LOGGED_WITHIN_S and time.monotonic() >= self._again_s:
            self._again_s = time.monotonic() + AGAIN_S
            for url, outcome in fan_out(
                [each.url for each in left], lambda url: self._read(event, url)
            ).items():
                if outcome.error is None:
                    self._of_log[url] = outcome.result()
                elif isinstance(outcome.error, DatacollectError):
                    self.report(f"{url}: {outcome.error}")
                else:
                    raise outcome.error
            self._joined = joined(self._of_log.values())
        return self._joined

    def unread(self, event: Event) -> tuple[str, ...]:
        """Return the services whose logs were not read to their ends as far as is known."""
        known = self._of_log if event.latest_s == self._latest_s else {}
        return tuple(each.url for each in event.services if each.url not in known)

    def _read(self, event: Event, url: str) -> LogTable:
        service = next(each for each in event.services if each.url == url)
        with Asker(url, self.tls) as asker:
            return read_table(service, event, asker).in_time(event.latest_s)


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
            self._report(f"{document_name(path)}: is no file that could be a receipt; remove it")
            return None
        try:
            receipt = read_receipt(read_bytes(path), document_name(path))
            require_receipt_of(receipt, event, self._event_data)
        except ProblemError as error:
            self._report(str(error))
            return None
        return receipt


def verify_time(event_data: bytes, receipt: Receipt, event: Event) -> bool:
    """Whether a receipt proves by itself that it is in time, as amendments have left the event."""
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
