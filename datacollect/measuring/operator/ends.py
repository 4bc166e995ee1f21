"""Ends of a pair: agents at both, or an iperf3 server and this host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.measuring.operator.iperf3_tests import (
    Iperf3Server,
    ThisHost,
    measure_by_iperf3,
)
from datacollect.measuring.operator.pair_tests import in_one_test
from datacollect.measuring.operator.tools import TOOLS
from datacollect.net.agent_entries import AgentEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datacollect.measuring.operator.tool import HasCost, Measure
    from datacollect.measuring.plan.hosts_file import HostsFile, Reached
    from datacollect.net.keys import PrivateKey

End: TypeAlias = AgentEntry | Iperf3Server | ThisHost
Ends: TypeAlias = tuple[End, End]


def ends_of(hosts: HostsFile) -> dict[str, End]:
    """Return how each host of a file is reached.

    Examples
    --------
    >>> from datacollect.measuring.plan.hosts_file import HostsFile
    >>> hosts = {"S": {"iperf3": "s.example:5201"}, "D": {}}
    >>> tree = {"format": "datacollect-hosts/1", "destination": "D", "hosts": hosts}
    >>> ends = ends_of(HostsFile.from_dict(tree))
    >>> ends["D"], is_by_iperf3((ends["S"], ends["D"]))
    (ThisHost(name='D'), True)
    """
    return {name: _end(name, host) for name, host in hosts.hosts.items()}


def _end(name: str, host: Reached) -> End:
    if host is None:
        return ThisHost(name)
    return Iperf3Server(name, host) if isinstance(host, tuple) else host


def is_by_agents(ends: Ends) -> bool:
    """Return whether both ends have agents."""
    return all(isinstance(end, AgentEntry) for end in ends)


def is_by_iperf3(ends: Ends) -> bool:
    """Return whether one end is an iperf3 server, and the other this host."""
    return {type(end) for end in ends} == {Iperf3Server, ThisHost}


def measure_ends(
    ends: Ends,
    key: PrivateKey | None,
    settings: HasCost,
    patience_s: float,
    report: Callable[[str], None],
) -> Iterable[dict[str, Any]]:
    """Measure a pair, and return its rows, each as soon as it is there.

    Parameters
    ----------
    ends : pair of ends
        By agents or by iperf3, see `is_by_agents` and `is_by_iperf3`.
    key : PrivateKey or None
        The operator's, for agents.
    settings
        Of the test.
    patience_s, report
        As for `datacollect.measuring.operator.pair_tests.measure_pair`.
    """
    sender, receiver = ends
    if isinstance(sender, AgentEntry) and isinstance(receiver, AgentEntry):
        assert key is not None
        measure: Measure = TOOLS[settings.tool].measure or in_one_test
        return measure(sender, receiver, key, settings, patience_s, report)
    assert not isinstance(sender, AgentEntry)
    assert not isinstance(receiver, AgentEntry)
    return [measure_by_iperf3(sender, receiver, settings)]
