"""The table of tools: what each asks of a pair of hosts, at what cost at most, for which rows.

Commands, cycles, tickets and budgets take a tool from here. A tool that agents run has settings
that are a `Settings`: their `cost` is what a budget counts and a ticket allows, their fields are
what the agent is asked for, their `row` reads what it says. A tool of several such tests has
settings with `tool` and `cost`, and says in the table how it is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from datacollect.errors import ProblemError, nearest_hint
from datacollect.measuring.operator.curve_tests import CurveSettings, measure_curve
from datacollect.measuring.operator.packet_pairs import PairsSettings
from datacollect.measuring.operator.pair_tests import PingSettings, TcpSettings, measure_pair
from datacollect.measuring.operator.traces import TraceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from datacollect.measuring.operator.pair_tests import Settings
    from datacollect.measuring.plan.budget import Cost
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

# A cycle's test with connections sends no more than this, and twice what is expected of the pair.
MOST_TEST_BYTES = 100_000_000
MORE_THAN_EXPECTED = 2.0


class Measure(Protocol):
    """How a pair is measured: see `datacollect.measuring.operator.pair_tests.measure_pair`."""

    def __call__(
        self,
        sender: AgentEntry,
        receiver: AgentEntry,
        key: PrivateKey,
        settings: Any,
        patience_s: float = 600.0,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Iterable[dict[str, Any]]:
        """Measure, and yield rows, each as soon as it is there."""


class HasCost(Protocol):
    """Settings of any tool, whose name they have."""

    tool: ClassVar[str]

    @property
    def cost(self) -> Cost:
        """What it takes at most."""


def in_one_test(
    sender: AgentEntry,
    receiver: AgentEntry,
    key: PrivateKey,
    settings: Settings,
    patience_s: float = 600.0,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Yield the one row of `measure_pair`."""
    yield measure_pair(sender, receiver, key, settings, patience_s, tell)


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes
    ----------
    settings_for : callable
        From the rate that is expected of a pair, in bytes per second, None where nothing is known,
        to the settings with which a cycle asks for it.
    measure : Measure
    loads_wires : bool
        Whether it fills a wire for some time; what does not comes first in a cycle.
    """

    settings_for: Callable[[float | None], HasCost]
    measure: Measure = in_one_test
    loads_wires: bool = True


def most_bytes(rate_bytes_per_s: float | None, seconds: float) -> int:
    """Return how much a cycle's test with connections may send.

    >>> most_bytes(None, 10.0), most_bytes(1e6, 10.0)
    (100000000, 20000001)
    """
    if rate_bytes_per_s is None:
        return MOST_TEST_BYTES
    return min(MOST_TEST_BYTES, int(MORE_THAN_EXPECTED * rate_bytes_per_s * seconds) + 1)


TOOLS = {
    "ping": Tool(lambda _: PingSettings(10, 0.5), loads_wires=False),
    "trace": Tool(lambda _: TraceSettings(), loads_wires=False),
    "pairs": Tool(lambda _: PairsSettings()),
    "tcp": Tool(lambda rate: TcpSettings(4, 10.0, most_bytes(rate, 10.0))),
    "curve": Tool(lambda rate: CurveSettings(10.0, most_bytes(rate, 10.0)), measure_curve),
}


def tools_named(names: Iterable[str], besides: Sequence[str] = ()) -> dict[str, Tool]:
    """Return some of the tools, in the order of the table.

    Parameters
    ----------
    names : iterable of str
    besides : sequence of str
        What may be named, too, where all of it is asked for: messages list it.

    Raises
    ------
    ProblemError
        There is no such tool.

    Examples
    --------
    >>> list(tools_named(["tcp", "ping"]))
    ['ping', 'tcp']
    """
    wanted = set(names)
    for name in sorted(wanted - TOOLS.keys()):
        known = [*TOOLS, *besides]
        raise ProblemError(
            f"unknown tool {name!r}; tools of a cycle are {', '.join(known)}"
            + nearest_hint(name, known)
        )
    return {name: tool for name, tool in TOOLS.items() if name in wanted}
