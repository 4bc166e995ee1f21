"""Assumptions of a plan: what it counts on that no test has shown of hosts.

Each link was measured alone. Where a host's links carry more together than one of them did, its
line may be what binds, and nobody knows it (`datacollect.methods.leaning` finds where).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from datacollect.files.units import format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

Direction: TypeAlias = Literal["out", "in"]

# Of longer lists the first few hosts are named.
SHOWN_HOSTS = 3

# A plan leans where more than this part of what it gains over direct goes.
PART_OF_GAIN = 0.25

# Two makespans within this part of each other are alike.
ALIKE = 0.01


@dataclass(frozen=True)
class HostLoad:
    """Load of a host in a plan: what it sends, or receives, at once, and what was shown of it.

    Attributes
    ----------
    host : str
    direction : {"out", "in"}
        Whether it sends or receives.
    planned_bytes_per_s : float
        The most that it sends, or receives, in the plan, on all its links together.
    shown_bytes_per_s : float
        The most that a test, a flood, a pull or the bandwidth of one link shows that it can.
    direct_bytes_per_s : float
        The most that direct has it send, or receive; 0 where it does not.
    """

    host: str
    direction: Direction
    planned_bytes_per_s: float
    shown_bytes_per_s: float
    direct_bytes_per_s: float

    @property
    def text(self) -> str:
        """It in a sentence."""
        does = "send" if self.direction == "out" else "receive"
        planned, shown = format_rate(self.planned_bytes_per_s), format_rate(self.shown_bytes_per_s)
        text = f"{self.host} is to {does} {planned} at once; no test has shown more than {shown}"
        if self.direct_bytes_per_s > self.shown_bytes_per_s:
            text += f", direct uses {format_rate(self.direct_bytes_per_s)}"
        return f"{text}."


@dataclass(frozen=True)
class Assumptions:
    """Assumptions of a plan about its hosts, and what the plan is worth without them.

    Attributes
    ----------
    method : str
    makespan_s : float
        Of the plan.
    direct_makespan_s : float or None
        Of direct; None where some source has no link to the destination.
    leans_on : tuple of HostLoad
        Where the plan has a host do more than was shown, and more than direct has it do; those
        that are furthest beyond it first. None of hosts whose limit the problem states.
    alike : tuple of HostLoad
        Where direct, too, has a host do more than was shown.
    cautious_makespan_s : float or None
        Of a plan by the same method where each host of `leans_on` does what was shown, or what
        direct has it do, if that is more; None where the plan leans on none, or there is no such
        plan.
    why_none : str
        Why there is no such plan; empty where there is one, or none is needed.
    """

    method: str
    makespan_s: float
    direct_makespan_s: float | None = None
    leans_on: tuple[HostLoad, ...] = ()
    alike: tuple[HostLoad, ...] = ()
    cautious_makespan_s: float | None = None
    why_none: str = ""

    @property
    def gain(self) -> float | None:
        """Return how many times longer direct takes; None where there is no such plan."""
        return _gain(self.direct_makespan_s, self.makespan_s)

    @property
    def cautious_gain(self) -> float | None:
        """Say how many times longer direct takes than the plan that leans on none of the hosts."""
        return _gain(self.direct_makespan_s, self.cautious_makespan_s)

    @property
    def matter(self) -> bool:
        """Say whether the plan is worth much less without them, so that two numbers are to be told.

        That is where more than a quarter of what it gains over direct goes; where there is no
        direct plan, where it takes more than a quarter longer.
        """
        if not self.leans_on:
            return False
        cautious_s = self.cautious_makespan_s
        if cautious_s is None:
            return True
        return is_much_later(self.makespan_s, cautious_s, self.direct_makespan_s)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return what is to be told, in sentences: nothing where they do not matter."""
        if not self.matter:
            return ()
        loads = self.leans_on[:SHOWN_HOSTS]
        more = len(self.leans_on) - len(loads)
        rest = (f"The same holds for {more} more.",) if more else ()
        return (*(load.text for load in loads), *rest, self._numbers)

    @property
    def advice(self) -> str:
        """Return what to do about it, in sentences.

        To measure, to state what is known, or to be careful.

        >>> Assumptions("coordinated", 2.0, 4.0, (HostLoad("S", "out", 2e6, 1e6, 0.0),)).advice[:49]
        "A test of S's links at once says whether it can: "
        """
        first = self.leans_on[0]
        is_out = first.direction == "out"
        option = f"--from {first.host}" if is_out else f"--to {first.host}"
        key = "uplink_bytes_per_s" if is_out else "downlink_bytes_per_s"
        has_second = self.cautious_makespan_s is not None
        which = "which of the two it is" if has_second else "whether it can"
        careful = " --cautious plans by the second number." if has_second else ""
        return (
            f"A test of {first.host}'s links at once says {which}: `datacollect measure cycle`, "
            f"or `measure flood HOSTS.toml {option}`. If you know, state {key} of "
            f'{first.host}, "none" if it has no limit.{careful}'
        )

    @property
    def _numbers(self) -> str:
        """The two makespans side by side, in a sentence."""
        name = self.method[:1].upper() + self.method[1:]
        first = f"{name} takes {format_duration(self.makespan_s)}{_over(self.gain)}"
        hosts = list(dict.fromkeys(load.host for load in self.leans_on))
        uses = [load.direct_bytes_per_s <= load.shown_bytes_per_s for load in self.leans_on]
        can = _condition(hosts, is_line=all(uses))
        if self.cautious_makespan_s is None:
            return f"{first}; {can} there is no such plan: {self.why_none}."
        second = format_duration(self.cautious_makespan_s)
        return f"{first}; {second}{_over(self.cautious_gain)}, {can}."

    def to_dict(self) -> dict[str, Any]:
        """Return the object that programs read.

        Examples
        --------
        >>> Assumptions("direct", 2.0, 2.0).to_dict()["matter"]
        False
        """
        return {
            "makespan_s": self.makespan_s,
            "gain": self.gain,
            "cautious_makespan_s": self.cautious_makespan_s,
            "cautious_gain": self.cautious_gain,
            "why_none": self.why_none or None,
            "direct_makespan_s": self.direct_makespan_s,
            "matter": self.matter,
            "leans_on": [asdict(load) for load in self.leans_on],
            "alike": [asdict(load) for load in self.alike],
        }


def is_much_later(makespan_s: float, cautious_s: float, direct_s: float | None) -> bool:
    """Return whether more than a quarter of what is gained over direct goes with a later end.

    Without a direct plan: whether it is more than a quarter later.

    >>> is_much_later(2.0, 2.2, 4.0), is_much_later(2.0, 2.5, 4.0), is_much_later(2.0, 2.4, None)
    (False, True, False)
    """
    if cautious_s <= (1 + ALIKE) * makespan_s:
        return False
    gain, left = _gain(direct_s, makespan_s), _gain(direct_s, cautious_s)
    if gain is None or left is None:
        return cautious_s > (1 + PART_OF_GAIN) * makespan_s
    return gain > 1 and gain - left > PART_OF_GAIN * (gain - 1)


def _gain(direct_s: float | None, makespan_s: float | None) -> float | None:
    if direct_s is None or makespan_s is None:
        return None
    return direct_s / makespan_s if makespan_s > 0 else 1.0


def _over(gain: float | None) -> str:
    return "" if gain is None else f", {gain:.2f} × over direct"


def _condition(hosts: Sequence[str], *, is_line: bool) -> str:
    """Say what is taken for granted of the second number."""
    if len(hosts) > SHOWN_HOSTS:
        return "if each has one line" if is_line else "if none can do more"
    *most, last = hosts
    who = f"{', '.join(most)} and {last}" if most else last
    if not is_line:
        return f"if {who} can do no more"
    return f"if {who} have one line each" if most else f"if {who} has one line"
