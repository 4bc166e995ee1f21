"""HOSTS.toml: which hosts are measured, who asks for it, and what it may cost."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.fields import ByName, Document, Field, Rows, Table
from datacollect.files.file_kinds import FileKind
from datacollect.files.kinds import Number, Text, Whole, join, shown
from datacollect.measurement.outcomes import listed
from datacollect.measuring.plan.budget import Cost
from datacollect.net.agent_entries import AgentEntry, agent_of
from datacollect.net.kinds import Address
from datacollect.problem.fields import SHARED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from datacollect.measuring.plan.rounds import Pair

# An agent, an iperf3 server, or this host.
Reached: TypeAlias = "AgentEntry | tuple[str, int] | None"

HOSTS_FORMAT = "datacollect-hosts/1"
# So many hosts are named in a message.
MOST_NAMED = 20

BUDGET = Table(
    "the budget",
    "The most bytes and time of a cycle of tests; without limit where a key is absent.",
    (
        Field(
            "bytes",
            Whole("bytes", minimum=1),
            "Most bytes of payload that all tests of a cycle may send together.",
        ),
        Field("time", Number("seconds", positive=True), "How long a cycle may take, in seconds."),
    ),
)

HOST = Table(
    "the measured host",
    "A host that runs an agent, or an iperf3 server. Without either, the destination is this host.",
    (
        Field(
            "url",
            Text(),
            "Where the host's agent listens: https://host:port, as the agent prints it when ready.",
        ),
        Field(
            "fingerprint",
            Text(),
            "Fingerprint of the agent's certificate, as the agent prints it when ready.",
        ),
        Field(
            "ca",
            Text(),
            "Instead of fingerprint: file of the authority that signed the agent's certificate.",
        ),
        Field("iperf3", Address(), "host:port of an iperf3 server, instead of an agent."),
    ),
)

HOSTS = Document(
    "the hosts' file",
    "Which hosts are measured, and what that may cost.",
    (
        Field("$schema", Text(), "JSON Schema of this file, for editors."),
        Field("format", Text((HOSTS_FORMAT,)), "Format and its version.", required=True),
        Field("destination", Text(), "The host that collects everything.", required=True),
        Field(
            "key",
            Text(),
            "File of the operator's private key; agents accept only tests that it signed.",
        ),
        Field("budget", BUDGET, "The most bytes and time that a cycle of tests may take."),
        Field("hosts", ByName(HOST), "Every host, by name; at least two.", required=True),
        Field(
            "shared",
            Rows(SHARED),
            "Known wires that several links share: tests use only one link of a wire at a time, "
            "and problem files list the wires.",
            default=(),
        ),
    ),
    remedy="the documentation has one under File formats",
)
HOSTS_KIND = FileKind("hosts", HOSTS)


@dataclass(frozen=True)
class HostsFile:
    """The hosts of a measurement, as their file describes them; see ``HOSTS``.

    Attributes
    ----------
    destination : str
        One of the hosts.
    hosts : mapping of str to AgentEntry, (str, int) or None
        How each is reached: an agent, or host and port of an iperf3 server; None is the host where
        this program runs, which has no agent and is the destination.
    key : Path or None
        The operator's private key; there is one wherever there is an agent.
    budget : Cost
        Infinite where nothing is said.
    shared : tuple of mappings
        Rows of ``[[shared]]``, as a problem file has them.

    Examples
    --------
    >>> tree = {"format": "datacollect-hosts/1", "destination": "D"}
    >>> hosts = {"S": {"iperf3": "s.example:5201"}, "D": {"iperf3": "d.example:5201"}}
    >>> HostsFile.from_dict({**tree, "hosts": hosts, "budget": {"bytes": "2 GB"}}).budget.n_bytes
    2000000000
    """

    destination: str
    hosts: Mapping[str, Reached]
    key: Path | None
    budget: Cost
    shared: tuple[Mapping[str, Any], ...] = ()

    @property
    def wires(self) -> list[frozenset[Pair]]:
        """Of each known wire its links: of these one is tested at a time."""
        return [frozenset((tail, head) for tail, head in row["links"]) for row in self.shared]

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> HostsFile:
        """Read such a file; raise `ProblemError` for none, or for one that breaks a rule."""
        return HOSTS.from_file(path, cls.from_dict)

    @classmethod
    def from_dict(cls, tree: Any, folder: str | PathLike[str] = ".") -> HostsFile:
        """Read the tree of such a file, whose own file names are relative to a folder.

        Raises
        ------
        ProblemError
            The tree breaks a rule.
        """
        values, folder = HOSTS.read(tree), Path(folder)
        given = values["hosts"]
        servers = {name for name, host in given.items() if host["iperf3"] is not None}
        here = values["destination"] if servers else None
        hosts = {
            name: None if name == here and _is_empty(host) else _reached(name, host, folder)
            for name, host in given.items()
        }
        agents = [name for name, host in hosts.items() if isinstance(host, AgentEntry)]
        if len(hosts) < 2:
            raise ProblemError(f"hosts must name at least two, got {', '.join(hosts) or 'none'}")
        if values["destination"] not in hosts:
            raise ProblemError(
                f"destination must be one of the hosts, got {shown(values['destination'])}; there "
                f"are {listed([*hosts], MOST_NAMED)}" + nearest_hint(values["destination"], hosts)
            )
        if agents and values["key"] is None:
            raise ProblemError(
                f"key is missing, and the agent of {join('hosts', agents[0])} asks for one; "
                "`datacollect keys new FILE` makes one"
            )
        _reject_one_host_twice(hosts)
        budget = values["budget"] or {"bytes": None, "time": None}
        limits = (math.inf if one is None else one for one in (budget["bytes"], budget["time"]))
        key = None if values["key"] is None else folder / values["key"]
        shared = tuple(_wire(row, f"shared[{i}]", hosts) for i, row in enumerate(values["shared"]))
        return cls(values["destination"], hosts, key, Cost(*limits), shared)


def _is_empty(host: Mapping[str, Any]) -> bool:
    return all(value is None for value in host.values())


def _reached(name: str, host: Mapping[str, Any], folder: Path) -> Reached:
    """Return how a host is reached: by its agent, or its iperf3 server."""
    place = join("hosts", name)
    if (host["url"] is None) == (host["iperf3"] is None):
        given = "neither" if host["url"] is None else "both"
        raise ProblemError(f"{place}: must have either url or iperf3, got {given}")
    if host["iperf3"] is None:
        return agent_of(name, host, folder, "hosts")
    for key in ("fingerprint", "ca"):
        if host[key] is not None:
            raise ProblemError(f"{place}.{key}: iperf3 servers have no certificate; leave it out")
    address: tuple[str, int] = host["iperf3"]
    return address


def _wire(row: Mapping[str, Any], place: str, hosts: Mapping[str, object]) -> dict[str, Any]:
    """Return a row of ``[[shared]]`` without what it does not say; its links are of the hosts."""
    for tail, head in row["links"]:
        for host in (tail, head):
            if host not in hosts:
                raise ProblemError(
                    f"{place}.links must be links of the hosts, got {shown([tail, head])}"
                    + nearest_hint(host, hosts)
                )
    return {key: value for key, value in row.items() if value is not None}


def _reject_one_host_twice(hosts: Mapping[str, Reached]) -> None:
    """Refuse two names of one host: it would be in two tests at once."""
    for what in (_address, _fingerprint):
        names = defaultdict(list)
        for name, host in hosts.items():
            if host is not None:
                names[what(host)].append(name)
        for said, same in names.items():
            if said is not None and len(same) > 1:
                raise ProblemError(
                    f"{join('hosts', same[0])} and {join('hosts', same[1])} are one host, "
                    f"{said}; keep one of them"
                )


def _address(host: AgentEntry | tuple[str, int]) -> str:
    name, port = host.address if isinstance(host, AgentEntry) else host
    return f"{name}:{port}"


def _fingerprint(host: AgentEntry | tuple[str, int]) -> str | None:
    return host.fingerprint if isinstance(host, AgentEntry) else None
