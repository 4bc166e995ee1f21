"""The table of tools: costs are bounds, and of agents' tools each agent knows the name."""

from __future__ import annotations

import pytest

from datacollect.errors import ProblemError
from datacollect.files.units import format_bytes
from datacollect.measuring.agent.host_tools import HOST_TOOLS
from datacollect.measuring.commands.tools import bytes_in
from datacollect.measuring.operator.tools import TOOLS, tools_named


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_costs_no_more_where_less_is_expected(name):
    """10 s at 1 MB/s send 10 MB; twice that is room for a better day, 100 MB where none is known.

    Four tests are the most that a tool of several takes, and packet pairs.
    """
    unknown, slow = (TOOLS[name].settings_for(rate).cost for rate in (None, 1e6))
    assert 0 < slow.n_bytes <= min(unknown.n_bytes, 4 * 20_000_001 + 1_000_000)
    assert unknown.n_bytes <= 4 * 100_000_000 + 1_000_000
    assert 0 < slow.seconds == unknown.seconds <= 60.0


def test_agents_know_the_tools_that_are_asked_of_them():
    asked = {getattr(TOOLS[name].settings_for(None), "tool", None) for name in HOST_TOOLS}
    assert asked == set(HOST_TOOLS)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_help_says_the_defaults_of_the_settings_themselves(tool):
    """Numbers of bytes are said with a unit, and must come out as the same number."""
    usual = tool.settings()
    for name, option in tool.options.items():
        value = getattr(usual, name)
        if option.in_bytes and value is not None:
            assert bytes_in(format_bytes(value), option.flag) == value


def test_tools_come_in_the_order_of_the_table():
    """Round trips and routes first: they load nothing, and tell which wires pairs share."""
    assert list(tools_named(["tcp", "trace", "ping"])) == ["ping", "trace", "tcp"]
    loads = [tool.loads_wires for tool in TOOLS.values()]
    assert loads == sorted(loads)


def test_an_unknown_tool_is_named_with_what_is_near():
    with pytest.raises(ProblemError, match="unknown tool 'pinq'; tools of a cycle are ping, trace"):
        tools_named(["pinq"])
