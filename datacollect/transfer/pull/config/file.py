"""Collection files: what `datacollect pull` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.clock import zone_of
from datacollect.files.kinds import join, shown, wrong
from datacollect.net.names import require_host_name
from datacollect.problem.hourly_rates import HourlyRate
from datacollect.problem.windows import Window
from datacollect.transfer.protocol.patterns import Narrowing, WantedFiles
from datacollect.transfer.pull.config.fields import COLLECTION, LIMITS, collection_with
from datacollect.transfer.sources.kinds import KINDS

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.transfer.rates.spells import Rate


@dataclass(frozen=True)
class SourceEntry:
    """Files to collect from one host: patterns, and how large they may be; None: all."""

    name: str
    files: tuple[str, ...] | None = None
    largest_bytes: int | None = None


@dataclass(frozen=True)
class Limits:
    """Limits of a collection, and how long it waits; see the fields of collection files."""

    connections: int = 16
    in_flight_bytes: int = 256 * 2**20
    patience_s: float = 60.0
    timeout_s: float = 20.0
    piece_bytes: int | None = None
    time_s: float | None = None
    spare_bytes: int = 16 * 2**20
    rate: Rate | None = None


@dataclass(frozen=True)
class Collection:
    """Contents of a collection file, checked.

    Attributes
    ----------
    destination : str
    key : Path
    entries : dict of str to dict
        By the key of a kind of hosts (`datacollect.transfer.sources.kinds`), what the file says of
        each, by name.
    sources : dict of str to SourceEntry or None
        None: every host that serves anything, all of it.
    limits : Limits
    planning : dict
        What methods are asked for: values by the names of options.
    network : dict
        What it says of hosts, links and shared bottlenecks, as a problem file would.
    folder : Path
        What its paths are relative to.
    timezone : str or None
        The zone whose clocks show the hours at which limits change, and hosts and links open.
    include, exclude : tuple of str
        Which files of all hosts are wanted this time, as patterns; include None: all.

    Examples
    --------
    >>> tree = {
    ...     "format": "datacollect-collection/1",
    ...     "destination": "D",
    ...     "key": "collector.key",
    ...     "agents": {"S1": {"url": "https://127.0.0.1:7443", "ca": "ca.pem"}},
    ... }
    >>> Collection.from_dict(tree).entries["agents"]["S1"].address
    ('127.0.0.1', 7443)
    """

    destination: str
    key: Path
    entries: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, SourceEntry] | None = None
    limits: Limits = Limits()
    planning: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    timezone: str | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Collection:
        """Read a collection file, TOML or JSON.

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.
        """
        return COLLECTION.from_file(path, cls.from_dict)

    @classmethod
    def from_dict(cls, tree: Any, folder: str | PathLike[str] = ".") -> Collection:
        """Return what the tree of a collection file says.

        Raises
        ------
        ProblemError
        """
        document = collection_with(tree if isinstance(tree, Mapping) else ())
        values = document.read(tree)
        base = Path(folder)
        destination = values["destination"]
        require_host_name(destination, "destination")
        entries = _entries(values, destination, base)
        hosts = [name for each in entries.values() for name in each]
        sources = values["sources"]
        if sources is not None:
            if not sources:
                raise ProblemError(
                    "sources: names no host; name what to collect, or leave it out to collect "
                    "everything"
                )
            sources = {
                name: _source(name, entry, entries, destination) for name, entry in sources.items()
            }
        if not hosts:
            raise ProblemError(
                "agents: there is no host to collect from; `datacollect collection add` adds what "
                "`datacollect agent init` prints on a host"
            )
        planning = values["planning"] or {}
        limits = Limits(**(values["limits"] or LIMITS.read({}, "limits")))
        size = limits.piece_bytes
        if size is not None and size & (size - 1):
            raise wrong("limits.piece_bytes", "must be a power of two", size, "such as 1048576")
        network = {key: values[key] for key in ("bandwidth_csv", "hosts", "links", "shared")}
        _require_no_backlogs(tree.get("hosts", {}))
        _require_zone(values, limits)
        key = base / values["key"]
        zone = values["timezone"]
        return cls(destination, key, entries, sources, limits, planning, network, base, zone)

    @property
    def hosts(self) -> list[str]:
        """The names of all hosts that bytes may come from, whatever they are."""
        return [name for each in self.entries.values() for name in each]

    def patterns(self, name: str) -> tuple[str, ...] | None:
        """Return which files of a host are wanted; None: all."""
        source = (self.sources or {}).get(name)
        return None if source is None else source.files

    @property
    def view(self) -> Narrowing:
        """Return what this start asks for, of all that the collection wants."""
        return Narrowing(self.include, self.exclude)

    def wanted(self, name: str) -> WantedFiles:
        """Return which files of a host are wanted this time."""
        return replace(self.wanted_in_all(name), include=self.include, exclude=self.exclude)

    def wanted_in_all(self, name: str) -> WantedFiles:
        """Return which files of a host the collection wants, whatever this start asks for."""
        source = (self.sources or {}).get(name)
        largest_bytes = None if source is None else source.largest_bytes
        return WantedFiles(
            self.patterns(name), largest_bytes=largest_bytes, said=self._said_of(name)
        )

    def _said_of(self, name: str) -> str | None:
        """Return a short text for what the file says of a host's files."""
        for kind, entries in self.entries.items():
            if name in entries:
                return KINDS.get(kind).said(entries[name])
        return None


def _entries(values: Mapping[str, Any], destination: str, base: Path) -> dict[str, dict[str, Any]]:
    """Return what the file says of hosts, by kind; no two of all share a name."""
    seen = {destination.casefold(): f"{shown(destination)} is the destination's name"}
    entries: dict[str, dict[str, Any]] = {}
    kinds = [key for key in values if key in KINDS.own or key not in COLLECTION.by_name]
    for kind in kinds:
        entries[kind] = {}
        for name, entry in values[kind].items():
            place = join(kind, name)
            require_host_name(name, place)
            if name.casefold() in seen:
                raise ProblemError(
                    f"{place}: {seen[name.casefold()]}; give it a name of its own, in its own "
                    "file, too"
                )
            seen[name.casefold()] = f"{shown(name)} is another host's name"
            entries[kind][name] = KINDS.get(kind).read(name, entry, base)
    return entries


def _source(
    name: str,
    entry: dict[str, Any],
    kinds: Mapping[str, Mapping[str, Any]],
    destination: str,
) -> SourceEntry:
    place = join("sources", name)
    require_host_name(name, place)
    if name.casefold() == destination.casefold():
        raise ProblemError(
            f"{place}: is the destination's name, and its own data need not be collected; leave "
            "this source out"
        )
    hosts = [host for entries in kinds.values() for host in entries]
    if name not in hosts:
        hint = nearest_hint(name, hosts) or f"; add [{join('agents', name)}]"
        raise ProblemError(
            f"{place}: must be one of the {' or '.join(kinds)}, got {shown(name)}{hint}"
        )
    files = entry["files"]
    return SourceEntry(name, None if files is None else tuple(files), entry["largest_bytes"])


def _require_no_backlogs(hosts: Any) -> None:
    for name, entry in hosts.items():
        for key in ("backlog_bytes", "release_s", "produces_bytes_per_s", "made_bytes"):
            if key in entry:
                raise ProblemError(
                    f"{join(join('hosts', name), key)}: what there is to collect is listed when "
                    "the pull begins; leave this key out"
                )


def _require_zone(values: Mapping[str, Any], limits: Limits) -> None:
    """Reject unknown time zones, and hours without one."""
    if values["timezone"] is not None:
        zone_of(values["timezone"])
        return
    said = {"limits.rate": limits.rate}
    for name, entry in values["hosts"].items():
        said |= {join(join("hosts", name), key): value for key, value in entry.items()}
    said |= {f"links[{i}].open": link["open"] for i, link in enumerate(values["links"])}
    for place, value in said.items():
        if _has_hours(value):
            raise ProblemError(
                f"{place}: hours of the day need the zone whose clocks show them; add timezone = "
                '"Europe/Zurich" at the top'
            )


def _has_hours(value: Any) -> bool:
    """Return whether a rate follows hours, or windows are of no zone of their own."""
    if isinstance(value, HourlyRate):
        return True
    windows = value if isinstance(value, tuple) else ()
    return any(isinstance(each, Window) and each.zone is None for each in windows)
