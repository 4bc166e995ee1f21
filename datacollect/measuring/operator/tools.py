"""The tools that measure pairs of hosts, a row each.

Commands, cycles, tickets, budgets, results and the page of measurements take a tool from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint
from datacollect.measuring.operator.curve_tests import CURVE
from datacollect.measuring.operator.packet_pairs import PAIRS
from datacollect.measuring.operator.pings import PING
from datacollect.measuring.operator.tcp_tests import TCP
from datacollect.measuring.operator.traces import TRACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.measuring.operator.tool import Tool

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (PING, TRACE, PAIRS, TCP, CURVE)}
# A test of several pairs at once, each of which gets a row of this name.
FLOOD = "flood"


def light_tools() -> list[str]:
    """Return the names of the tools that load no wire, and measure no rate.

    >>> light_tools()
    ['ping', 'trace']
    """
    return [name for name, tool in TOOLS.items() if not tool.loads_wires]


def usual_tools() -> list[str]:
    """Return the names of the tools that cycles run where nobody has named any.

    >>> usual_tools()
    ['ping', 'trace', 'tcp']
    """
    return [name for name, tool in TOOLS.items() if tool.is_usual]


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
