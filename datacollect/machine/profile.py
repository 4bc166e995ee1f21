"""Profiles of machines: what a byte costs each of their parts, and files of that."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectWarning
from datacollect.files.clock import parsed
from datacollect.files.documents import document_name
from datacollect.files.fields import Document, Field, Rows, Table
from datacollect.files.kinds import Choice, ClockTime, Flag, Number, Share, Text, Whole
from datacollect.files.notebook import html_of_facts
from datacollect.files.toml_tables import toml_of
from datacollect.files.units import counted, format_duration
from datacollect.machine.parts import (
    AGAIN,
    BLAKE3,
    BOTH,
    DISK,
    MEMORY,
    RECEIVES,
    SENDS,
    TCP,
    TLS,
    UDP,
    Cost,
    Nic,
    Parts,
    PullUse,
    Rate,
)
from datacollect.machine.throughput import Needs, throughput_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from datacollect.files.quantities import Bytes, BytesPerS, Seconds
    from datacollect.machine.throughput import Throughput

PROFILE_FORMAT = "datacollect-host-profile/1"

# After that, machines have other kernels.
OLD_S = 366 * 24 * 3600.0

_SECONDS = Number("seconds", positive=True, remedy=AGAIN)
_MICROSECONDS = Number("microseconds", remedy=AGAIN)
_RATE = Number("bytes per second", positive=True, remedy=AGAIN)


def _interval(stem: str, unit: str, kind: Number, *, required: bool = True) -> tuple[Field, ...]:
    return tuple(
        Field(f"{prefix}{stem}", kind, f"{what}, in {unit}.", required=required)
        for prefix, what in (
            ("", "The median of all repeats"),
            ("low_", "The least"),
            ("high_", "The most"),
        )
    )


_LOAD = (
    Field(
        "load",
        Share(),
        "The part of all processors that other programs kept busy during the measurement.",
        default=0.0,
    ),
    Field(
        "forced",
        Flag(),
        "Whether the measurement was made although other programs were busy.",
        default=False,
    ),
)

COST = Table(
    "the cost",
    "How much processor time a kind of work takes.",
    (
        Field("work", Choice((UDP, TCP, TLS, BLAKE3, DISK)), "Kind of work.", required=True),
        Field(
            "end",
            Choice((SENDS, RECEIVES, BOTH)),
            "What the machine does: it sends, receives, or both.",
            required=True,
        ),
        Field("over", Text(), "loopback, veth, memory, or a file system's name.", required=True),
        *_interval("s_per_gib", "seconds of processors for each 2**30 bytes", _SECONDS),
        Field(
            "us_per_unit",
            _MICROSECONDS,
            "Processor time in addition for each unit that is handed over at once, in "
            "microseconds.",
            default=0.0,
        ),
        Field("low_us_per_unit", _MICROSECONDS, "The lowest us_per_unit of all repeats."),
        Field("high_us_per_unit", _MICROSECONDS, "The highest us_per_unit of all repeats."),
        Field("unit", Text(), "What the unit of us_per_unit is: a packet, a call, a request."),
        Field("unit_bytes", Whole("bytes", minimum=1), "The usual size of such a unit, in bytes."),
        Field(
            "own_s_per_gib",
            _SECONDS,
            "The part of s_per_gib that the system charges to the process itself.",
        ),
        *_LOAD,
    ),
)

RATE = Table(
    "the rate",
    "What a part of the machine carried in a test.",
    (
        Field(
            "of",
            Choice((MEMORY, DISK, TCP, TLS)),
            "Part of the machine that has this rate.",
            required=True,
        ),
        *_interval("bytes_per_s", "bytes per second", _RATE),
        Field("at_once", Whole("", minimum=1, remedy=AGAIN), "Threads or connections.", default=1),
        Field(
            "block_bytes",
            Whole("bytes", minimum=1),
            "Size of the block that is copied again and again, in bytes.",
        ),
        *_LOAD,
    ),
)

_SHARE = Share(positive=True)

PULL_USE = Table(
    "the use of a pull",
    "How much of the processors' time a pull used, its agent on the same machine.",
    (
        Field(
            "connections",
            Whole("", minimum=1, remedy=AGAIN),
            "Connections between the pull and its agent.",
            required=True,
        ),
        Field(
            "share",
            _SHARE,
            "Part of all processors that was used: the median of all repeats.",
            required=True,
        ),
        Field("low_share", _SHARE, "The lowest share of all repeats.", required=True),
        Field("high_share", _SHARE, "The highest share of all repeats.", required=True),
        *_interval(
            "s_per_gib",
            "seconds of processors for each 2**30 bytes, without those to write them",
            _SECONDS,
            required=False,
        ),
        *_LOAD,
    ),
)

NIC = Table(
    "the network card",
    "A network card, as far as the system tells.",
    (
        Field("name", Text(), "Its name.", required=True),
        Field("bytes_per_s", _RATE, "Rate of the card, in bytes per second."),
        Field("mtu_bytes", Whole("bytes", minimum=1), "The largest packet, in bytes."),
        Field("queues", Whole("", minimum=1), "How many queues the card has for arriving packets."),
        Field("offloads", Text(), "What the card does instead of the processor."),
    ),
)

PROFILE = Document(
    "the profile",
    "What bytes cost a machine, as `datacollect host calibrate` has measured it.",
    (
        Field("$schema", Text(), "JSON Schema of this file, for editors."),
        Field("format", Text((PROFILE_FORMAT,)), "Format and its version.", required=True),
        Field("measured_at", ClockTime(), "Clock time of the measurement.", required=True),
        Field("name", Text(), "What the machine calls itself.", required=True),
        Field("machine", Text(), "Identifies the machine, whatever it is called."),
        Field(
            "processors",
            Number("", positive=True, remedy=AGAIN),
            "Processors that a program on this machine may use; in a container, its share.",
            required=True,
        ),
        Field(
            "seen",
            Rows(
                Table(
                    "what was seen",
                    "A fact of the machine, for people.",
                    (
                        Field("what", Text(), "Its name.", required=True),
                        Field("value", Text(), "What was seen.", required=True),
                    ),
                )
            ),
            "Facts about the machine, for people to read.",
            default=(),
        ),
        Field("nics", Rows(NIC), "Network cards.", default=()),
        Field("costs", Rows(COST), "How much processor time each kind of work takes.", default=()),
        Field("rates", Rows(RATE), "What parts of the machine carried in tests.", default=()),
        Field("pulls", Rows(PULL_USE), "How busy pulls keep the processors.", default=()),
        Field(
            "refused",
            Rows(
                Table(
                    "what was refused",
                    "What was not measured.",
                    (
                        Field("work", Text(), "What.", required=True),
                        Field("why", Text(), "Why.", required=True),
                    ),
                )
            ),
            "What was not measured, and why.",
            default=(),
        ),
    ),
    remedy="`datacollect host calibrate -o PROFILE.toml` writes one",
)


@dataclass(frozen=True)
class HostProfile:
    """Costs of bytes on a machine; read one by `host_profile`.

    Attributes
    ----------
    name : str
        What the machine calls itself.
    parts : Parts
        What was measured: ``processors``, ``costs``, ``rates``, ``nics``.
    measured_at : str
        Clock time of the measurement.
    seen : dict of str to str
        Facts of the machine, for people.
    refused : dict of str to str
        What was not measured, and why.
    machine : str or None
        Identifies the machine, whatever it is called.
    place : str
        Where it was read, for messages.
    """

    name: str
    parts: Parts
    measured_at: str
    seen: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    machine: str | None = None
    place: str = "the profile"

    def __repr__(self) -> str:
        costs = counted(len(self.parts.costs), "cost")
        return (
            f"<HostProfile {self.name!r}: {self.parts.processors:g} processors, {costs}, "
            f"measured {self.measured_at}>"
        )

    def _repr_html_(self) -> str:
        """Show in a notebook what was measured."""
        return html_of_facts(
            f"HostProfile {self.name}",
            [
                ("processors", f"{self.parts.processors:g}"),
                ("measured", self.measured_at),
                *((f"{c.work} {c.end}", f"{c.s_per_gib:.2g} s per GiB") for c in self.parts.costs),
            ],
        )

    def receives(
        self,
        *,
        tls: bool = False,
        to_disk: bool = False,
        connections: int | None = None,
        packet_bytes: Bytes | None = None,
        nic_bytes_per_s: BytesPerS | None = None,
        window_bytes: Bytes | None = None,
        rtt_s: Seconds | None = None,
        cores: float | None = None,
    ) -> Throughput:
        """Return what the machine takes in, and what binds.

        Parameters
        ----------
        tls : bool, optional
            Over TLS 1.3, hashed, as agents send and pulls receive; otherwise plain TCP.
        to_disk : bool, optional
            And written as pulls write, synced.
        connections : int, optional
            At a time; by default as many as it takes.
        packet_bytes : int or str, optional
            Datagrams of so many bytes instead of TCP.
        nic_bytes_per_s : float or str, optional
            Rate of the network card; by default that of the fastest that tells one.
        window_bytes, rtt_s : float or str, optional
            What may be on its way on each connection, and the round trip: both or neither.
        cores : float, optional
            Processors to use; by default all that there are.

        Returns
        -------
        Throughput

        Raises
        ------
        ProblemError
            A value is not valid, or the profile lacks what is asked for.

        Examples
        --------
        >>> tcp = Cost("tcp", "receives", "veth", 0.25, 0.2, 0.3)
        >>> found = HostProfile("D", Parts(2, (tcp,)), "2026-11-30T00:00:00Z").receives()
        >>> f"{found.bytes_per_s:.4g}", found.binds, found.next
        ('8.59e+09', 'processor', None)
        """
        needs = Needs(
            RECEIVES,
            tls,
            to_disk,
            connections,
            packet_bytes,
            nic_bytes_per_s,
            window_bytes,
            rtt_s,
            cores,
        )
        return throughput_of(self.parts, needs, self.place)

    def sends(
        self,
        *,
        tls: bool = False,
        connections: int | None = None,
        packet_bytes: Bytes | None = None,
        nic_bytes_per_s: BytesPerS | None = None,
        window_bytes: Bytes | None = None,
        rtt_s: Seconds | None = None,
        cores: float | None = None,
    ) -> Throughput:
        """Return what the machine sends, and what binds; parameters are those of `receives`.

        Parameters
        ----------
        tls : bool, optional
        connections : int, optional
        packet_bytes : int or str, optional
        nic_bytes_per_s : float or str, optional
        window_bytes, rtt_s : float or str, optional
        cores : float, optional

        Returns
        -------
        Throughput

        Raises
        ------
        ProblemError
            A value is not valid, or the profile lacks what is asked for.

        Examples
        --------
        >>> tcp = Cost("tcp", "sends", "veth", 0.25, 0.2, 0.3)
        >>> profile = HostProfile("S", Parts(1, (tcp,)), "2026-11-30T00:00:00Z")
        >>> profile.sends(nic_bytes_per_s="1 Gbit/s")
        <Throughput: sends over TCP 1 Gbit/s, NIC binds>
        """
        needs = Needs(
            SENDS,
            tls,
            False,
            connections,
            packet_bytes,
            nic_bytes_per_s,
            window_bytes,
            rtt_s,
            cores,
        )
        return throughput_of(self.parts, needs, self.place)

    def relays(
        self,
        *,
        connections: int | None = None,
        nic_bytes_per_s: BytesPerS | None = None,
        window_bytes: Bytes | None = None,
        rtt_s: Seconds | None = None,
        cores: float | None = None,
    ) -> Throughput:
        """Return what the machine passes on, byte for byte, as agents do that relay.

        They move data within the kernel, which takes no more than to receive and to send them: the
        answer is a lower bound.

        Parameters
        ----------
        connections : int, optional
            Pairs of them.
        nic_bytes_per_s : float or str, optional
        window_bytes, rtt_s : float or str, optional
        cores : float, optional

        Returns
        -------
        Throughput

        Raises
        ------
        ProblemError
            A value is not valid, or the profile lacks what is asked for.

        Examples
        --------
        >>> costs = [Cost("tcp", end, "veth", 0.25, 0.2, 0.3) for end in ("sends", "receives")]
        >>> HostProfile("K", Parts(2, tuple(costs)), "2026-11-30T00:00:00Z").relays()
        <Throughput: relays over TCP at least 34 Gbit/s, processor binds>
        """
        needs = Needs(
            "relays", False, False, connections, None, nic_bytes_per_s, window_bytes, rtt_s, cores
        )
        return throughput_of(self.parts, needs, self.place)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of its file.

        Returns
        -------
        dict

        Examples
        --------
        >>> HostProfile("D", Parts(2), "2026-11-30T00:00:00Z").to_dict()["processors"]
        2
        """

        def rows(items: tuple[Any, ...]) -> list[dict[str, Any]]:
            return [{k: v for k, v in asdict(item).items() if v is not None} for item in items]

        tree = {
            "format": PROFILE_FORMAT,
            "measured_at": self.measured_at,
            "name": self.name,
            "machine": self.machine,
            "processors": self.parts.processors,
            "seen": [{"what": what, "value": value} for what, value in self.seen.items()],
            "nics": rows(self.parts.nics),
            "costs": rows(self.parts.costs),
            "rates": rows(self.parts.rates),
            "pulls": rows(self.parts.pulls),
            "refused": [{"work": work, "why": why} for work, why in self.refused.items()],
        }
        return {key: value for key, value in tree.items() if value not in (None, [])}

    def to_toml(self) -> str:
        """Return the text of its file.

        Returns
        -------
        str

        Examples
        --------
        >>> HostProfile("D", Parts(2), "2026-11-30T00:00:00Z").to_toml().splitlines()[0]
        'format = "datacollect-host-profile/1"'
        """
        return toml_of(PROFILE, self.to_dict())

    @classmethod
    def from_dict(cls, tree: Any, place: str = "the profile") -> HostProfile:
        """Return what the tree of a profile says.

        Parameters
        ----------
        tree : mapping
        place : str, optional
            Where it was read, for messages.

        Returns
        -------
        HostProfile

        Raises
        ------
        ProblemError
            It breaks a rule; the message names key, rule, value and remedy.

        Examples
        --------
        >>> HostProfile.from_dict({"format": "datacollect-host-profile/1", "name": "D",
        ...     "processors": 0, "measured_at": "2026-11-30T00:00:00Z"})
        Traceback (most recent call last):
        datacollect.errors.ProblemError: processors must be a finite number > 0, got 0; measure...
        """
        values = PROFILE.read(tree)
        return cls(
            name=values["name"],
            parts=Parts(
                values["processors"],
                tuple(Cost(**row) for row in values["costs"]),
                tuple(Rate(**row) for row in values["rates"]),
                tuple(Nic(**row) for row in values["nics"]),
                tuple(PullUse(**row) for row in values["pulls"]),
            ),
            measured_at=values["measured_at"],
            seen={row["what"]: row["value"] for row in values["seen"]},
            refused={row["work"]: row["why"] for row in values["refused"]},
            machine=values["machine"],
            place=place,
        )


def host_profile(path: str | PathLike[str]) -> HostProfile:
    """Read what bytes cost a machine, from the file that ``datacollect host calibrate`` wrote.

    Parameters
    ----------
    path : path-like
        The file; ``-`` reads standard input.

    Returns
    -------
    HostProfile
        `HostProfile.receives`, `sends` and `relays` say what the machine can do, and what binds.

    Raises
    ------
    ProblemError
        There is no such file, or it breaks a rule.

    Warns
    -----
    DatacollectWarning
        It was measured more than a year ago, or is from the future.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.host_profile("nowhere.toml")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
    """
    name = document_name(path)
    profile = PROFILE.from_file(path, lambda tree, _: HostProfile.from_dict(tree, name))
    age_s = _age_s(profile.measured_at)
    if not -3600 <= age_s <= OLD_S:
        when = f"{format_duration(age_s)} ago" if age_s > 0 else "in the future"
        warnings.warn(
            f"{name}: measured_at is {profile.measured_at}, {when}: machines change; {AGAIN}",
            DatacollectWarning,
            stacklevel=2,
        )
    return profile


def _age_s(measured_at: str) -> float:
    """Return how long ago something was measured; negative where that is to come."""
    then = parsed(measured_at, "measured_at")
    return time.time() - (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()


def now_text() -> str:
    """Return the clock time of now, as profiles have it."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()
