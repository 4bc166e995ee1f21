"""The table ``udp`` of a feed's file: what may be lost, what is left out, what fills holes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.feeds.formats.packets import MOST_MESSAGE_BYTES, USUAL_MESSAGE_BYTES
from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Flag, Number, Text, Whole, wrong
from datacollect.files.quantities import SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

ZERO, PATTERN, RANDOM = "zero", "pattern", "random"
FILLS = (ZERO, PATTERN, RANDOM)
SINGLE, BUNCHES = "single", "bunches"
MOST_LOSS, GRACE_S, END_S = 0.01, 2.0, 10.0
REORDER = 65_536

UDP_TABLE = Table(
    "the table udp",
    "A feed by UDP: what comes late is as bad as lost.",
    (
        Field(
            "most_loss",
            Number(positive=True),
            "Part of the packets whose loss is bearable; where more is lost the feed ends.",
            default=MOST_LOSS,
        ),
        Field(
            "mean_bunch",
            Number(positive=True),
            "How many packets are lost together, on average.",
            default=1.0,
        ),
        Field(
            "grace",
            Number(SECONDS, positive=True),
            "How long the source has to act after an alarm (too many packets are lost), before "
            "the sender drops what it makes, seconds.",
            default=GRACE_S,
        ),
        Field(
            "end",
            Number(SECONDS, positive=True),
            "The feed ends if an alarm (too many packets are lost) lasts longer than this, "
            "seconds.",
            default=END_S,
        ),
        Field("drop", Number(), "Part of the messages to leave out on purpose.", default=0.0),
        Field(
            "drop_set",
            Text((SINGLE, BUNCHES)),
            "Which messages are left out: single ones, spread evenly, or bunches of one to ten.",
            default=SINGLE,
        ),
        Field("seed", Whole(), "Seed of the drop set.", default=0),
        Field(
            "fill",
            Text(FILLS),
            "What the receiver writes where data are missing; pattern is 0x11223344.",
            default=ZERO,
        ),
        Field(
            "keep",
            Flag(),
            "Whether the receiver keeps the data; false: it only counts them, for tests of a path.",
            default=True,
        ),
        Field(
            "reorder",
            Whole("packets", minimum=1, stop=2**22),
            "How many packets behind the newest a packet may arrive and still be put in its place.",
            default=REORDER,
        ),
    ),
)


@dataclass(frozen=True)
class UdpSettings:
    """Settings of a feed by UDP; see ``UDP_TABLE``.

    Attributes
    ----------
    most_loss, mean_bunch, grace_s, end_s : float
    drop : float
    drop_set : str
    seed : int
    fill : str
    reorder : int
    keep : bool
    """

    most_loss: float = MOST_LOSS
    mean_bunch: float = 1.0
    grace_s: float = GRACE_S
    end_s: float = END_S
    drop: float = 0.0
    drop_set: str = SINGLE
    seed: int = 0
    fill: str = ZERO
    reorder: int = REORDER
    keep: bool = True

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any], place: str = "udp") -> UdpSettings:
        """Read such a table.

        Raises
        ------
        ProblemError
            It breaks a rule.

        Examples
        --------
        >>> UdpSettings.from_dict({"drop": 0.065, "fill": "pattern"}).drop
        0.065
        """
        return cls.of(UDP_TABLE.read(tree, place), place)

    @classmethod
    def of(cls, values: Mapping[str, Any], place: str = "udp") -> UdpSettings:
        """Return what the values of `UDP_TABLE` say, as it has read them; raise as `from_dict`."""
        values = dict(values)
        for key in ("most_loss", "drop"):
            if values[key] >= 1:
                remedy = "6.5 % is 0.065"
                raise wrong(f"{place}.{key}", "must be a part, below 1", values[key], remedy)
        if values["mean_bunch"] < 1:
            remedy = "write 1 where packets are lost one by one"
            raise wrong(f"{place}.mean_bunch", "must be >= 1", values["mean_bunch"], remedy)
        if values["end"] < values["grace"]:
            raise wrong(
                f"{place}.end",
                f"must be at least grace, {values['grace']:g} s",
                values["end"],
                "write a longer one",
            )
        return cls(grace_s=values.pop("grace"), end_s=values.pop("end"), **values)

    def to_dict(self) -> dict[str, Any]:
        """Return the table that says so."""
        tree = asdict(self)
        return {"grace": tree.pop("grace_s"), "end": tree.pop("end_s"), **tree}


def require_datagram(message_bytes: int) -> None:
    """Raise `ProblemError` unless a message fits a datagram."""
    if message_bytes > MOST_MESSAGE_BYTES:
        raise ProblemError(
            f"message_bytes must be at most {MOST_MESSAGE_BYTES} by udp, got {message_bytes}: a "
            f"message is one packet; {USUAL_MESSAGE_BYTES} fit what Ethernet usually carries"
        )
