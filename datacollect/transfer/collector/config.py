"""Collection files: what `datacollect pull` reads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from datacollect.documents import document_name, folder_of, read_tree
from datacollect.errors import ProblemError, naming, nearest_hint
from datacollect.kinds import join, shown, wrong
from datacollect.transfer.collector.fields import COLLECTION, LIMITS
from datacollect.transfer.web.entries import server_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from datacollect.transfer.web.entries import ServerEntry

# Names of hosts become folders: no separators, no dot in front, nothing that is not printed.
HOST_NAME = re.compile(r"[^\W_][\w.\-]{0,99}", re.ASCII)
FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class AgentEntry:
    """Where an agent is, and how to know that it is the one.

    Attributes
    ----------
    name : str
    address : (str, int)
    fingerprint : str or None
        ``sha256:`` and hexadecimal digits.
    ca : Path or None
    """

    name: str
    address: tuple[str, int]
    fingerprint: str | None = None
    ca: Path | None = None


@dataclass(frozen=True)
class SourceEntry:
    """What to collect from one agent: patterns of files, None for all."""

    name: str
    files: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Limits:
    """What a collection may use, and how long it waits; see the fields of collection files."""

    connections: int = 16
    in_flight_bytes: int = 256 * 2**20
    patience_s: float = 60.0
    timeout_s: float = 20.0
    piece_bytes: int | None = None


@dataclass(frozen=True)
class Collection:
    """What a collection file says, checked.

    Attributes
    ----------
    destination : str
    key : Path
    agents : dict of str to AgentEntry
    servers : dict of str to ServerEntry
        Other web servers.
    sources : dict of str to SourceEntry or None
        None: every agent that serves anything, and every other server, all of it.
    limits : Limits
    network : dict
        What it says of hosts, links and shared bottlenecks, as a problem file would.
    folder : Path
        What its paths are relative to.

    Examples
    --------
    >>> tree = {
    ...     "format": "datacollect-collection/1",
    ...     "destination": "D",
    ...     "key": "collector.key",
    ...     "agents": {"S1": {"url": "https://127.0.0.1:7443", "ca": "ca.pem"}},
    ... }
    >>> Collection.from_dict(tree).agents["S1"].address
    ('127.0.0.1', 7443)
    """

    destination: str
    key: Path
    agents: Mapping[str, AgentEntry]
    sources: Mapping[str, SourceEntry] | None = None
    servers: Mapping[str, ServerEntry] = field(default_factory=dict)
    limits: Limits = Limits()
    network: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Collection:
        """Read a collection file, TOML or JSON.

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.
        """
        tree = read_tree(path)
        with naming(document_name(path)):
            return cls.from_dict(tree, folder_of(path))

    @classmethod
    def from_dict(cls, tree: Any, folder: str | PathLike[str] = ".") -> Collection:
        """Return what the tree of a collection file says.

        Raises
        ------
        ProblemError
        """
        values = COLLECTION.read(tree, "")
        base = Path(folder)
        destination = values["destination"]
        _require_name(destination, "destination")
        agents = {
            name: _agent(name, entry, base, destination) for name, entry in values["agents"].items()
        }
        servers = {
            name: _server(name, entry, base, (destination, *agents))
            for name, entry in values["servers"].items()
        }
        hosts = (*agents, *servers)
        sources = values["sources"]
        if sources is not None:
            if not sources:
                raise ProblemError(
                    "sources: names no host; name what to collect, or leave it out for all of all"
                )
            sources = {
                name: _source(name, entry, hosts, destination) for name, entry in sources.items()
            }
        if not hosts:
            raise ProblemError(
                "agents: there is nothing to collect from; add [agents.NAME] with a url"
            )
        limits = Limits(**(values["limits"] or LIMITS.read({}, "limits")))
        size = limits.piece_bytes
        if size is not None and size & (size - 1):
            raise wrong("limits.piece_bytes", "must be a power of two", size, "such as 1048576")
        network = {key: values[key] for key in ("bandwidth_csv", "hosts", "links", "shared")}
        _require_no_backlogs(tree.get("hosts", {}))
        key = base / values["key"]
        return cls(destination, key, agents, sources, servers, limits, network, base)


def _agent(name: str, entry: dict[str, Any], base: Path, destination: str) -> AgentEntry:
    place = join("agents", name)
    _require_name(name, place)
    if name.casefold() == destination.casefold():
        raise ProblemError(
            f"{place}: is the destination's name; give the agent another one, as in its own file"
        )
    address = _address(entry["url"], f"{place}.url")
    fingerprint, ca = entry["fingerprint"], entry["ca"]
    if (fingerprint is None) == (ca is None):
        given = "neither" if ca is None else "both"
        raise ProblemError(
            f"{place}: must have either fingerprint or ca, got {given}; the agent says its "
            "fingerprint when it is ready"
        )
    _require_fingerprint(fingerprint, place, "copy what the agent says when it is ready")
    return AgentEntry(name, address, fingerprint, None if ca is None else base / ca)


def _server(name: str, entry: dict[str, Any], base: Path, others: Sequence[str]) -> ServerEntry:
    place = join("servers", name)
    _require_name(name, place)
    for other in others:
        if name.casefold() == other.casefold():
            raise ProblemError(
                f"{place}: {shown(other)} is another host's name; give the server one of its own"
            )
    _require_fingerprint(
        entry["fingerprint"], place, "`openssl x509 -fingerprint -sha256` tells it, in other words"
    )
    return server_of(name, entry, base)


def _require_fingerprint(fingerprint: str | None, place: str, remedy: str) -> None:
    if fingerprint is not None and not FINGERPRINT.fullmatch(fingerprint):
        raise wrong(
            f"{place}.fingerprint",
            "must be sha256: and 64 lowercase hexadecimal digits",
            fingerprint,
            remedy,
        )


def _address(url: str, place: str) -> tuple[str, int]:
    rule, remedy = "must be https://HOST:PORT", "copy what the agent says when it is ready"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong(place, rule, url, remedy) from None
    is_bare = not parts.query and not parts.fragment and parts.username is None
    if parts.scheme != "https" or not host or parts.path not in ("", "/") or not is_bare:
        raise wrong(place, rule, url, remedy)
    return host, 443 if port is None else port


def _source(
    name: str,
    entry: dict[str, Any],
    hosts: Sequence[str],
    destination: str,
) -> SourceEntry:
    place = join("sources", name)
    _require_name(name, place)
    if name.casefold() == destination.casefold():
        raise ProblemError(f"{place}: is the destination's name; what lies there is collected")
    if name not in hosts:
        hint = nearest_hint(name, hosts) or f"; add [{join('agents', name)}]"
        raise ProblemError(
            f"{place}: must be one of the agents or servers, got {shown(name)}{hint}"
        )
    files = entry["files"]
    return SourceEntry(name, None if files is None else tuple(files))


def _require_name(name: str, place: str) -> None:
    if not HOST_NAME.fullmatch(name):
        raise wrong(
            place,
            "must be a name of ASCII letters, digits, '.', '-' and '_' that begins with a letter "
            "or digit",
            name,
            "it becomes a folder's name",
        )


def _require_no_backlogs(hosts: Any) -> None:
    for name, entry in hosts.items():
        for key in ("backlog_bytes", "release_s"):
            if key in entry:
                raise ProblemError(
                    f"{join(join('hosts', name), key)}: what there is to collect is listed when "
                    "the pull begins; leave it out"
                )
