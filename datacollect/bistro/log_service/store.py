"""A log on the disk: entries, checkpoints, what tickets were used for; tiles beside them.

The order is the core's: entries are committed before they are acknowledged, tiles and then their
checkpoint before a witness sees it, cosignatures before they are published.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.log_service.messages import Kept, Publish, Store, StoreHead
from datacollect.bistro.log_service.tile_files import TileFiles
from datacollect.errors import ProblemError
from datacollect.files.held_folder import Database

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.bistro.formats.log.tiles import Tile
    from datacollect.files.held_folder import Held

# So many checkpoints are read together.
MOST_HEADS = 256
# earliest_heads: published checkpoints, without those of which a larger one proves less: times rise
# with sizes.
SCHEMA = f"""
CREATE TABLE entries (position INTEGER PRIMARY KEY, entry BLOB NOT NULL UNIQUE);
CREATE INDEX long_entries ON entries (position) WHERE length(entry) > {ENTRY_BYTES};
CREATE TABLE tickets (number TEXT PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE heads (size INTEGER PRIMARY KEY, note BLOB NOT NULL, is_published INTEGER NOT NULL);
CREATE INDEX published ON heads (size) WHERE is_published;
CREATE TABLE earliest_heads (size INTEGER PRIMARY KEY, time_s INTEGER NOT NULL);
CREATE INDEX times_of_heads ON earliest_heads (time_s);
"""


class LogStore:
    """The folder of a log, held by one process; as a `LogReader` it tells what is on the disk.

    Parameters
    ----------
    held : Held
        The folder, which `close` lets go.
    log : str
        The log's verifier key: a folder of another log is refused.

    Raises
    ------
    ProblemError
        The folder is another log's.
    StoreError
        The disk is full, or fails.
    """

    def __init__(self, held: Held, log: str) -> None:
        with ExitStack() as undo:
            undo.callback(held.close)
            self._db = Database(held.folder, "log.sqlite", SCHEMA, log)
            undo.callback(self._db.close)
            self._tiles = TileFiles(held.folder)
            self._closing = undo.pop_all()

    def close(self) -> None:
        """Let others have the folder."""
        self._closing.close()

    # What is written --------------------------------------------------------------------------

    def store(self, action: Store) -> None:
        """Keep entries; they are on the disk when this returns.

        Raises
        ------
        StoreError
            None of them is kept.
        """
        used = Counter(row.ticket for row in action.rows if row.ticket is not None)
        with self._db.transaction():
            self._db.many(
                "INSERT INTO entries VALUES (?, ?)",
                ((action.first + i, row.entry) for i, row in enumerate(action.rows)),
            )
            self._db.many(
                "INSERT INTO tickets VALUES (?, ?) "
                "ON CONFLICT (number) DO UPDATE SET used = used + excluded.used",
                iter(used.items()),
            )

    def store_tiles(self, action: StoreHead) -> None:
        """Keep the tiles of a checkpoint, before the checkpoint itself; from any thread."""
        self._tiles.write(action.tiles)

    def store_head(self, action: StoreHead) -> None:
        """Keep a checkpoint whose tiles are kept."""
        with self._db.transaction():
            self._store_head(action)

    def _store_head(self, action: StoreHead) -> None:
        self._db.rows(
            "INSERT INTO heads VALUES (?, ?, 0) ON CONFLICT (size) DO NOTHING",
            (action.size, action.note),
        )

    def publish(self, action: Publish) -> None:
        """Keep a checkpoint with its cosignatures, unless it is kept with more of them."""
        with self._db.transaction():
            self._publish(action)

    def _publish(self, action: Publish) -> None:
        self._db.rows(
            "UPDATE heads SET note = ?, is_published = 1 "
            "WHERE size = ? AND NOT (is_published AND length(note) > ?)",
            (action.note, action.size, len(action.note)),
        )
        self._db.rows(
            "DELETE FROM earliest_heads WHERE size <= ? AND time_s > ?",
            (action.size, action.time_s),
        )
        self._db.rows(
            "INSERT INTO earliest_heads SELECT ?1, ?2 WHERE NOT EXISTS "
            "(SELECT 1 FROM earliest_heads WHERE size = ?1 OR (size > ?1 AND time_s < ?2))",
            (action.size, action.time_s),
        )

    def restore(self, heads: Iterable[tuple[StoreHead, Publish]]) -> None:
        """Keep checkpoints that were published before, whose entries and tiles are kept."""
        with self._db.transaction():
            for head, published in heads:
                self._store_head(head)
                self._publish(published)

    # What is read -----------------------------------------------------------------------------

    def kept(self) -> Kept:
        """Return what a service starts with."""
        last = self._db.rows("SELECT max(position) FROM entries")[0][0]
        head = self._db.rows("SELECT note FROM heads ORDER BY size DESC LIMIT 1")
        published = self._db.rows("SELECT max(size) FROM heads WHERE is_published")[0][0]
        return Kept(
            n_entries=0 if last is None else last + 1,
            head=head[0][0] if head else None,
            published_size=-1 if published is None else published,
        )

    def amendments(self) -> list[tuple[int, bytes]]:
        """Return index and entry of all that are longer than 32 bytes: of a service, amendments."""
        rows = self._db.rows(
            f"SELECT position, entry FROM entries WHERE length(entry) > {ENTRY_BYTES} "
            "ORDER BY position"
        )
        return [(position, entry) for position, entry in rows]

    def index_of(self, entry: bytes) -> int | None:
        """Return where an entry stands, if it is kept."""
        rows = self._db.rows("SELECT position FROM entries WHERE entry = ?", (entry,))
        return rows[0][0] if rows else None

    def last_beginning(self, beginning: bytes) -> tuple[int, bytes] | None:
        """Return the last entry with such a beginning, and where it stands."""
        # With +, entries are found by what they are, not one after the other from the end.
        rows = self._db.rows(
            "SELECT position, entry FROM entries WHERE entry BETWEEN ? AND ? "
            "ORDER BY +position DESC LIMIT 1",
            (beginning, beginning + b"\xff"),
        )
        return rows[0] if rows else None

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Return the entries from `start` to before `stop`."""
        rows = self._db.rows(
            "SELECT entry FROM entries WHERE position >= ? AND position < ? ORDER BY position",
            (start, stop),
        )
        return [entry for (entry,) in rows]

    def tile(self, tile: Tile) -> bytes:
        """Return a tile of the tree of some checkpoint that is kept."""
        try:
            return self._tiles.read(tile)
        except FileNotFoundError:
            raise ProblemError(
                f"{tile.path}: is missing in the log's folder; restore the newest copy of it, whole"
            ) from None

    def published_tile(self, tile: Tile) -> bytes | None:
        """Return a tile, or a bundle of entries; None where there is none."""
        try:
            return self._tiles.read(tile)
        except FileNotFoundError:
            return None

    def used(self, ticket: str) -> int:
        """Return how many entries a ticket was used for."""
        rows = self._db.rows("SELECT used FROM tickets WHERE number = ?", (ticket,))
        return rows[0][0] if rows else 0

    def earliest_head(self, index: int) -> bytes | None:
        """Return the published checkpoint that proves the least time of those that hold an index.

        Of several that do, the smallest.
        """
        rows = self._db.rows(
            "SELECT note FROM earliest_heads JOIN heads USING (size) WHERE size > ? "
            "ORDER BY size LIMIT 1",
            (index,),
        )
        return rows[0][0] if rows else None

    def published_sizes(self, start: int, stop: int) -> list[int]:
        """Return the sizes from `start` to before `stop` that have a published checkpoint."""
        rows = self._db.rows(
            "SELECT size FROM heads WHERE is_published AND size >= ? AND size < ? ORDER BY size",
            (start, stop),
        )
        return [size for (size,) in rows]

    def published_after(self, size: int) -> list[bytes]:
        """Return the next published checkpoints that are larger than a size, some of them."""
        rows = self._db.rows(
            "SELECT note FROM heads WHERE is_published AND size > ? ORDER BY size LIMIT ?",
            (size, MOST_HEADS),
        )
        return [note for (note,) in rows]

    def published(self, size: int | None = None) -> bytes | None:
        """Return the published checkpoint of a size, by default the largest."""
        which = "ORDER BY size DESC LIMIT 1" if size is None else "AND size = ?"
        rows = self._db.rows(
            f"SELECT note FROM heads WHERE is_published {which}", () if size is None else (size,)
        )
        return rows[0][0] if rows else None
