"""Events and actions of a log service's core, and its view of the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from datacollect.bistro.formats.log.acknowledgement import Acknowledgement
    from datacollect.bistro.formats.log.tiles import Tile
    from datacollect.bistro.now import Now


class LogReader(Protocol):
    """Reader of what is on the disk; a shell's store has these. They answer at once."""

    def index_of(self, entry: bytes) -> int | None:
        """Return where an entry stands, if it is kept."""

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Return the entries from `start` to before `stop`."""

    def tile(self, tile: Tile) -> bytes:
        """Return a tile of hashes, level 0 or more; a narrower one is the beginning of a wider."""

    def used(self, ticket: str) -> int:
        """Return how many entries a ticket was used for."""

    def amendments(self) -> list[tuple[int, bytes]]:
        """Return index and entry of all that are longer than 32 bytes, in their order.

        Of a service that are the amendments; nobody asks the log of verdicts, which has no others.
        """

    def earliest_head(self, index: int) -> bytes | None:
        """Return the published checkpoint that proves the least time of those that hold an index.

        Of several that do, the smallest.
        """


@dataclass(frozen=True)
class Kept:
    """Content of a log's folder when its service starts.

    Attributes
    ----------
    n_entries : int
    head : bytes or None
        The largest checkpoint that was kept, published or not.
    published_size : int
        The size of the largest that was published; -1: none was.
    """

    n_entries: int = 0
    head: bytes | None = None
    published_size: int = -1


# Told to the core ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody asks for something over the network; each kind is a class in `requests`.

    Attributes
    ----------
    now : Now
    request : int
        A number of the shell's, new for each.
    """

    now: Now
    request: int


@dataclass(frozen=True, slots=True)
class RecordAsked:
    """The log's owner hands in entries of its own: 1 to `MOST_ENTRIES` different ones."""

    now: Now
    request: int
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """All entries before `stop` are on the disk."""

    now: Now
    stop: int


@dataclass(frozen=True, slots=True)
class HeadStored:
    """The checkpoint of that size is on the disk, and all its tiles are."""

    now: Now
    size: int


@dataclass(frozen=True, slots=True)
class WitnessAnswered:
    """A witness has answered; or not, or not in time: `status` is None.

    Attributes
    ----------
    witness : int
        Its place in the event's file.
    status : int or None
        HTTP's.
    body : bytes
        At most 16 KiB of it.
    """

    now: Now
    witness: int
    status: int | None
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Published:
    """The checkpoint of that size is on the disk as `Publish` said, and all can read it."""

    now: Now
    size: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed; at `ServiceCore.wake_s` at the latest."""

    now: Now


Event: TypeAlias = (
    Request | RecordAsked | Stored | HeadStored | WitnessAnswered | Published | Ticked
)


# Done by the shell --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """An entry to be kept, and the number of the ticket that it is counted for."""

    entry: bytes
    ticket: str | None


@dataclass(frozen=True, slots=True)
class Store:
    """Keep entries from index `first` on, in one transaction; tell it by `Stored`."""

    first: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class StoreHead:
    """Keep tiles and then a checkpoint that nobody has seen yet; tell it by `HeadStored`."""

    size: int
    note: bytes
    tiles: tuple[tuple[Tile, bytes], ...]


@dataclass(frozen=True, slots=True)
class AskWitness:
    """Send a body to a witness's ``/add-checkpoint``; tell the answer by `WitnessAnswered`."""

    witness: int
    url: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Publish:
    """Keep a checkpoint with its cosignatures, serve it by its size; tell it by `Published`.

    ``/checkpoint`` is the largest. It may come again for a size, with further cosignatures.

    Attributes
    ----------
    size : int
    note : bytes
    time_s : int
        That it proves of all that it holds, by the rule of time; seconds since 1970.
    """

    size: int
    note: bytes
    time_s: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request by 200; how that is written stands beside the request, in `requests`."""

    request: int


@dataclass(frozen=True, slots=True)
class Acknowledge(Answer):
    """Answer by what the service promises, entry by entry."""

    words: tuple[Acknowledgement, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer a request by a refusal; `retry_after_s`: when to come again."""

    request: int
    status: int
    text: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Warn:
    """Write a line into the log of the program."""

    text: str


Action: TypeAlias = Store | StoreHead | AskWitness | Publish | Answer | Refuse | Warn
