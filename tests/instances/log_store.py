"""Folder of a service, in memory: what is written is on the disk, or is not."""

from __future__ import annotations

from dataclasses import dataclass, field

from datacollect.bistro.formats.log.tiles import Tile
from datacollect.bistro.log_service.messages import Kept, Publish, Row, Store, StoreHead


@dataclass
class LogStore:
    """A log's folder; as a `LogReader` it reads what has been written."""

    rows: list[Row] = field(default_factory=list)
    head: tuple[int, bytes] | None = None
    published: dict[int, bytes] = field(default_factory=dict)
    times_s: dict[int, int] = field(default_factory=dict)
    tiles: dict[tuple[int, int], bytes] = field(default_factory=dict)
    indices: dict[bytes, int] = field(default_factory=dict)
    by_ticket: dict[str, int] = field(default_factory=dict)

    # What the shell writes.

    def store(self, action: Store) -> None:
        assert action.first == len(self.rows)
        for row in action.rows:
            assert row.entry not in self.indices
            self.indices[row.entry] = len(self.rows)
            self.rows.append(row)
            if row.ticket is not None:
                self.by_ticket[row.ticket] = self.by_ticket.get(row.ticket, 0) + 1

    def store_tiles(self, action: StoreHead) -> None:
        for tile, data in action.tiles:
            # A full bundle of short entries may be shorter than a partial one was: widths decide.
            kept = self.tiles.get((tile.level, tile.index), b"")
            self.tiles[tile.level, tile.index] = max(kept, data, key=len)

    def store_head(self, action: StoreHead) -> None:
        self.store_tiles(action)
        self.head = (action.size, action.note)

    def publish(self, action: Publish) -> None:
        self.published[action.size] = action.note
        self.times_s[action.size] = action.time_s

    # What the core reads.

    def kept(self) -> Kept:
        head = self.head and self.published.get(*self.head)
        return Kept(
            len(self.rows),
            head,
            max(self.published, default=-1),
        )

    def amendments(self) -> list[tuple[int, bytes]]:
        return [(i, row.entry) for i, row in enumerate(self.rows) if len(row.entry) > 32]

    def index_of(self, entry: bytes) -> int | None:
        return self.indices.get(entry)

    def entries(self, start: int, stop: int) -> list[bytes]:
        return [row.entry for row in self.rows[start:stop]]

    def tile(self, tile: Tile) -> bytes:
        data = self.tiles[tile.level, tile.index][: tile.width * 32]
        assert len(data) == tile.width * 32
        return data

    def used(self, ticket: str) -> int:
        return self.by_ticket.get(ticket, 0)

    def earliest_head(self, index: int) -> bytes | None:
        holding = [(time_s, size) for size, time_s in self.times_s.items() if size > index]
        return self.published[min(holding)[1]] if holding else None
