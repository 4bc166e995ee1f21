"""Loads of bistros, as the destination signs them every few seconds and services pass on.

The table is static: who reads it chooses alone, and tells nobody. It says what lies behind each
bottleneck, not what a byte costs there: at the optimum all bistros in use have the same price, so
that prices move everybody at once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.log.checkpoints import SIZE_STOP, TIME_STOP
from datacollect.bistro.formats.log.notes import Note, is_by, parse_note, signed
from datacollect.bistro.formats.log.one_meaning import json_file
from datacollect.errors import ProblemError
from datacollect.files.fields import Field, Rows, Table
from datacollect.files.kinds import BYTES_STOP, ListOf, Number, Text, Whole, shown

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.keys import PrivateKey

FORMAT = "datacollect-loads/1"
# Signed with the key of the log of verdicts, which everybody has in the event's file.
PURPOSE = "loads"
LOADS_PATH = "/loads"
MOST_LOADS_BYTES = 2**20
# An older table says too little of where people went since; one of the future is another clock's.
MOST_AGE_S = 60

_RATE = Number("bytes per second", positive=True)

LOADS = Table(
    "the table of loads",
    "How loaded each bistro is, according to the destination.",
    (
        Field("event", Hex(), "The event's id.", required=True),
        Field(
            "number",
            Whole(stop=SIZE_STOP),
            "Number of this table; each later table has a higher one.",
            required=True,
        ),
        Field(
            "time_s", Whole("seconds", stop=TIME_STOP), "When the table was made.", required=True
        ),
        Field(
            "bistros",
            Rows(
                Table(
                    "a bistro's load",
                    "Bytes that lie at a bistro, and how fast they leave.",
                    (
                        Field("bistro", Text(), "The bistro's name in the event.", required=True),
                        Field(
                            "stored_bytes",
                            Whole("bytes"),
                            "Bytes at the bistro that are not yet collected.",
                            required=True,
                        ),
                        Field(
                            "uplink_bytes_per_s",
                            _RATE,
                            "Rate at which the bistro's host can send.",
                            required=True,
                        ),
                        Field(
                            "free_bytes",
                            Whole("bytes"),
                            "Bytes that the bistro still accepts.",
                            required=True,
                        ),
                        Field(
                            "wait_s",
                            Number("seconds"),
                            "Seconds that an upload to the bistro must wait now.",
                            required=True,
                        ),
                    ),
                )
            ),
            "One each.",
            required=True,
        ),
        Field(
            "wires",
            Rows(
                Table(
                    "a wire",
                    "What several bistros share on the way to the destination.",
                    (
                        Field("capacity_bytes_per_s", _RATE, "For all.", required=True),
                        Field("bistros", ListOf(Text()), "Their names.", required=True),
                    ),
                )
            ),
            "Shared by several.",
            default=(),
        ),
    ),
)


@dataclass(frozen=True)
class BistroLoad:
    """A bistro's load.

    Attributes
    ----------
    bistro : str
        Its name.
    stored_bytes : int
        What lies there and is not collected yet.
    uplink_bytes_per_s : float
        How fast the host sends towards the destination.
    free_bytes : int
        Bytes that it still accepts.
    wait_s : float
        How long a push waits there now.
    """

    bistro: str
    stored_bytes: int
    uplink_bytes_per_s: float
    free_bytes: int = BYTES_STOP - 1
    wait_s: float = 0.0


@dataclass(frozen=True)
class Wire:
    """A wire that several bistros share on the way to the destination."""

    capacity_bytes_per_s: float
    bistros: tuple[str, ...]


@dataclass(frozen=True)
class Loads:
    """The table: loads of bistros, and wires that they share.

    Attributes
    ----------
    bistros : tuple of BistroLoad
    wires : tuple of Wire
    event : bytes
        The event's id.
    number : int
        Number of the table; it rises with each.
    time_s : int
        When it was made, by the destination's clock, whole seconds since 1970.
    """

    bistros: tuple[BistroLoad, ...]
    wires: tuple[Wire, ...] = ()
    event: bytes = bytes(32)
    number: int = 0
    time_s: int = 0

    def is_fresh(self, now_s: float) -> bool:
        """Return whether it says enough at an instant, seconds since 1970."""
        return abs(now_s - self.time_s) <= MOST_AGE_S

    def signed(self, event: Event, key: PrivateKey) -> Note:
        """Return the note of it, by the key of the event's log of verdicts."""
        assert event.verdicts is not None
        tree = asdict(self) | {"event": self.event.hex()}
        text = json.dumps(tree, separators=(",", ":"), ensure_ascii=True)
        return signed(f"{FORMAT}\n{text}\n", event.verdicts.for_purpose(PURPOSE).name, key)


def read_loads(data: bytes, event: Event, place: str = "the table of loads") -> Loads:
    """Return the table that the destination has signed.

    Raises
    ------
    ProblemError
        It is none, is of another event, or not signed by the key of the log of verdicts.
    """
    note = parse_note(data, place, MOST_LOADS_BYTES)
    first, _, text = note.text.partition("\n")
    if first != FORMAT:
        raise ProblemError(f"{place} must begin with {FORMAT}, got {shown(first)}")
    if event.verdicts is None or not is_by(note, event.verdicts.for_purpose(PURPOSE)):
        raise ProblemError(f"{place} must be signed by the key of the event's log of verdicts")
    tree = json_file(text.encode(), place)
    if not isinstance(tree, dict):
        raise ProblemError(f"{place} must be a JSON object")
    values = LOADS.read(tree, place)
    if values["event"] != event.id:
        raise ProblemError(f"{place} is of another event, {values['event'].hex()[:16]}…")
    rows = tuple(BistroLoad(**row) for row in values["bistros"])
    if len({row.bistro for row in rows}) < len(rows):
        raise ProblemError(f"{place} must name each bistro once")
    wires = tuple(
        Wire(row["capacity_bytes_per_s"], tuple(row["bistros"])) for row in values["wires"]
    )
    return Loads(rows, wires, event.id, values["number"], values["time_s"])
