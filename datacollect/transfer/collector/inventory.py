"""Listing what sources hold: page by page into the state, each name judged on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.kinds import BYTES_STOP, shown
from datacollect.transfer.collector.paths import Folding, why_not_written
from datacollect.transfer.collector.state import Listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datacollect.transfer.collector.state import State
    from datacollect.transfer.web.listing import ServerPage
    from datacollect.transfer.wire.messages import FileEntry, InventoryPage
    from datacollect.transfer.wire.session import SourceSession

# A source that lists more lies, or is to be collected in parts.
MOST_FILES = 20_000_000
MOST_LEFT_OUT = 100_000


def pages_of(session: SourceSession, ticket: str) -> Iterator[InventoryPage]:
    """Yield the pages of an agent's inventory."""
    after = None
    while True:
        page = session.inventory(ticket, after)
        yield page
        if page.after is None:
            return
        if page.after == after:
            raise TransferError("its inventory does not get on: the same page came twice")
        after = page.after


class Listing:
    """Takes the listing of one source in.

    Parameters
    ----------
    state : State
    source : str
    folding : Folding
        Which names the destination's file system takes for the same.
    """

    def __init__(self, state: State, source: str, folding: Folding) -> None:
        self._state, self._source, self._folding = state, source, folding
        self._number = state.source_id(source)
        self._last: bytes | None = None
        self._seen: dict[str, str] = {}
        self._n_files = self._n_left_out = self._bytes = 0
        state.begin_listing(self._number)

    def take(self, pages: Iterable[InventoryPage | ServerPage]) -> None:
        """Take pages in.

        Raises
        ------
        TransferError
            Names are not sorted, or there is more than can be.
        """
        for page in pages:
            files: list[Listed] = []
            left_out = [(entry.name, entry.why) for entry in page.left_out]
            for entry in page.files:
                self._require_order(entry)
                why = self._why_left_out(entry)
                if why is None:
                    tag = entry.tag if isinstance(entry, Listed) else None
                    files.append(
                        Listed(entry.path, entry.n_bytes, entry.mtime_ns, entry.inode, tag)
                    )
                else:
                    left_out.append((entry.path, why))
            self._n_files += len(files)
            self._n_left_out += len(left_out)
            self._bytes += sum(file.n_bytes for file in files)
            self._require_possible()
            self._state.add_page(self._number, files, left_out)

    def _require_order(self, entry: FileEntry | Listed) -> None:
        name = entry.path.encode(errors="surrogatepass")
        if self._last is not None and name <= self._last:
            raise TransferError(
                f"{self._source}: its inventory must be sorted, every name once; "
                f"{shown(entry.path)} is out of place"
            )
        self._last = name

    def _require_possible(self) -> None:
        if self._n_files > MOST_FILES or self._n_left_out > MOST_LEFT_OUT:
            raise TransferError(
                f"{self._source}: it lists more than {MOST_FILES} files, or leaves out more than "
                f"{MOST_LEFT_OUT}; collect it in parts, by patterns in [sources.{self._source}]"
            )
        if self._bytes >= BYTES_STOP:
            raise TransferError(f"{self._source}: it lists more bytes than there can be")

    def _why_left_out(self, entry: FileEntry | Listed) -> str | None:
        why = why_not_written(entry.path)
        if why is not None or not self._folding.any:
            return why
        key = self._folding.key(entry.path)
        other = self._seen.setdefault(key, entry.path)
        if other == entry.path:
            return None
        return f"the destination's file system takes it for {shown(other)}, which comes first"
