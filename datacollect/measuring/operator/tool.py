"""A tool as operators ask for it: options, cost, which rows come of it, and what each says.

Commands are made from tools when the command line starts: a module with a tool imports what asks
hosts, and what reads rows, on first use; and named tuples are made sooner than dataclasses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.measuring.operator.agents import AskedAgent
    from datacollect.measuring.plan.budget import Cost
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

# With what leases last longer they fit into the longest that agents give.
LONGEST_TEST_S = 60.0
# A cycle's test with connections sends no more than this, and twice what is expected of the pair.
MOST_TEST_BYTES = 100_000_000
MORE_THAN_EXPECTED = 2.0
# No test sends more packets.
MOST_PACKETS = 10**9


class HasCost(Protocol):
    """Settings of any tool, whose name they have; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    tool: ClassVar[str]

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""


class Settings(HasCost, Protocol):
    """Settings of one test of a pair, by a tool that agents run.

    Its fields are what the sending agent is asked for, and what the row keeps; `tool` is what
    agents and tickets call it; no ticket allows more than its `cost`.
    """

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the test's row says, from what the sender says and the receiver knows.

        Raises
        ------
        TransferError
            No such test can say that.
        """


class Measure(Protocol):
    """Measurement of a pair: see `datacollect.measuring.operator.pair_tests.measure_pair`."""

    def __call__(
        self,
        sender: AgentEntry,
        receiver: AgentEntry,
        key: PrivateKey,
        settings: Any,
        patience_s: float = 600.0,
        report: Callable[[str], None] = lambda _: None,
    ) -> Iterable[dict[str, Any]]:
        """Measure, and yield rows, each as soon as it is there."""


class Option(NamedTuple):
    """An option of a tool's command, for a field of its settings with the same default.

    Attributes
    ----------
    flag, metavar, help : str
    least, most : float or None
        What its number may be.
    in_bytes : bool
        Whether it is a number of bytes, which may have a unit.
    """

    flag: str
    metavar: str
    help: str
    least: float | None = None
    most: float | None = None
    in_bytes: bool = False


SECONDS = Option("--seconds", "TIME", "How long each test takes.", 0.1, 60.0)
MOST_BYTES = Option("--bytes", "BYTES", "A test ends once this much is sent.", in_bytes=True)


class Tool(NamedTuple):
    """A tool that measures pairs of hosts.

    Attributes
    ----------
    settings : type
        A dataclass whose fields have defaults.
    help : str
        What its command says of it; the first sentence is in the list of commands.
    options : mapping of str to Option
        Of its command, by field of the settings, in the order of its help.
    line : callable
        Says what one of its rows says, for people.
    settings_for : callable
        From the rate that is expected of a pair, in bytes per second, None where nothing is known,
        to the settings with which a cycle asks for it.
    measure : Measure, optional
        By default in one test, as agents run it by this name.
    loads_wires : bool
        Whether it fills a wire for some time. What does not comes first in a cycle, and measures no
        rate.
    is_usual : bool
        Whether cycles run it where nobody has named tools.
    packets_of : callable, optional
        Returns of how many packets the loss of a row is; 0: it counts for nothing. By default its
        rows say no losses.
    """

    settings: type[HasCost]
    help: str
    options: Mapping[str, Option]
    line: Callable[[Mapping[str, Any]], str]
    settings_for: Callable[[float | None], HasCost]
    measure: Measure | None = None
    loads_wires: bool = True
    is_usual: bool = False
    packets_of: Callable[[Mapping[Any, Any]], int] | None = None

    @property
    def name(self) -> str:
        """As commands, rows and tickets call it."""
        return self.settings.tool


def line_of(row: Mapping[str, Any], said: str | None) -> str:
    """Say what a row says of its pair: what was measured, if anything, and why there is no more.

    >>> line_of({"from": "S", "to": "D", "ended": "D: is away"}, None)
    'S → D: D: is away'
    """
    whole = [] if said is None else [said]
    if said is None or row["ended"] != "done":
        whole.append(row["ended"])
    return f"{row['from']} → {row['to']}: {'; '.join(whole)}"


def ended_of(said: Mapping[str, Any]) -> str:
    """Return why a test has ended, as who sends says it."""
    from datacollect.net.safe_text import safe_text

    return safe_text(str(said.get("ended")))[:500]


def packets_in(settings: Mapping[str, Any], name: str) -> int:
    """Return a number of packets that settings of a row say; 0 where they do not."""
    value = settings.get(name)
    return value if type(value) is int and 0 < value < MOST_PACKETS else 0


def require_short(cost: Cost) -> None:
    """Raise where a test takes longer than agents give leases for."""
    if cost.seconds > LONGEST_TEST_S:
        raise ProblemError(
            f"a test takes at most {LONGEST_TEST_S:g} s, got {cost.seconds:g} s; ask for several "
            "tests"
        )


def most_bytes(rate_bytes_per_s: float | None, seconds: float) -> int:
    """Return how much a cycle's test with connections may send.

    >>> most_bytes(None, 10.0), most_bytes(1e6, 10.0)
    (100000000, 20000001)
    """
    if rate_bytes_per_s is None:
        return MOST_TEST_BYTES
    return min(MOST_TEST_BYTES, int(MORE_THAN_EXPECTED * rate_bytes_per_s * seconds) + 1)
