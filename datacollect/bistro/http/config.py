"""Configuration of services and witnesses: their files, read and checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.http.config_fields import DESTINATION, SERVICE, WITNESS
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes
from datacollect.files.kinds import shown
from datacollect.net.keys import read_private_key

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.http.config_fields import IPNetwork
    from datacollect.files.choices import RunMethod
    from datacollect.net.keys import PrivateKey


# What stands for a key that nobody has any more.
LOST_KEY = "lost"


@dataclass(frozen=True)
class Listening:
    """Address where a server listens, and its certificate; `tls` None: plain HTTP."""

    address: tuple[str, int]
    tls: tuple[Path, Path] | None


@dataclass(frozen=True)
class ServiceConfig:
    """A service, as its file describes it: ``SERVICE`` of `datacollect.bistro.http.config_fields`.

    Attributes
    ----------
    event : Event
    event_data : bytes
        The bytes of its file.
    key : PrivateKey
    listening : Listening
    folder : Path
    workers : int
    behind : tuple of networks
    mirrors : tuple of Path
        Folders into which the log's entries are written before witnesses are asked.
    """

    event: Event
    event_data: bytes
    key: PrivateKey
    listening: Listening
    folder: Path
    workers: int
    behind: tuple[IPNetwork, ...]
    mirrors: tuple[Path, ...] = ()

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> ServiceConfig:
        """Read a service's file, the event and the key that it names.

        Raises
        ------
        ProblemError
            One of them cannot be read, or is none; the message says where.
        """
        return SERVICE.from_file(path, lambda tree, folder: _service(SERVICE.read(tree), folder))


@dataclass(frozen=True)
class WitnessConfig:
    """A witness, as its file describes it: ``WITNESS`` of `datacollect.bistro.http.config_fields`.

    Attributes
    ----------
    name : str
    key : PrivateKey
    listening : Listening
    folder : Path
    is_trusted : bool
        Whether its clock counts whatever the kernel says.
    logs : tuple of VerifierKey
    behind : tuple of networks
    """

    name: str
    key: PrivateKey
    listening: Listening
    folder: Path
    is_trusted: bool
    logs: tuple[VerifierKey, ...]
    behind: tuple[IPNetwork, ...] = ()

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> WitnessConfig:
        """Read a witness's file, and the key that it names; raise `ProblemError` for no such."""
        return WITNESS.from_file(path, lambda tree, folder: _witness(WITNESS.read(tree), folder))


@dataclass(frozen=True)
class DestinationConfig:
    """A destination, as its file describes it; see ``DESTINATION`` of its fields.

    Attributes
    ----------
    key : PrivateKey
        Of the log of verdicts.
    mark_key : PrivateKey or None
        Of the one that the event's file names; None: it is lost.
    collector : Path or None
    identities : tuple of Path
    tickets : Path or None
    folder : Path
    register : str
        The folder of SQLite's file, or ``postgresql://…``.
    collection : Path or None
    method : str
        Of the pull.
    receipts : Path or None
    listening : Listening or None
    behind : tuple of networks
    workers : int
    every_s : float
    mirrors : tuple of Path
        Of the log of verdicts, as of a service.
    """

    key: PrivateKey
    mark_key: PrivateKey | None
    collector: Path | None
    identities: tuple[Path, ...]
    tickets: Path | None
    folder: Path
    register: str
    collection: Path | None
    method: RunMethod
    receipts: Path | None
    listening: Listening | None
    behind: tuple[IPNetwork, ...]
    workers: int
    every_s: float
    mirrors: tuple[Path, ...] = ()

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> DestinationConfig:
        """Read a destination's file, and the key that it names.

        Raises
        ------
        ProblemError
            One of them cannot be read, or is none; the message says where.
        """
        return DESTINATION.from_file(
            path, lambda tree, folder: _destination(DESTINATION.read(tree), folder)
        )


def _service(values: dict[str, Any], folder: Path) -> ServiceConfig:
    event_file = folder / values["event"]
    event_data = read_bytes(event_file)
    event = read_event(event_data, document_name(event_file))
    require_current(event, document_name(event_file))
    return ServiceConfig(
        event=event,
        event_data=event_data,
        key=read_private_key(folder / values["key"]),
        listening=_listening(values, folder),
        folder=folder / values["folder"],
        workers=values["workers"],
        behind=tuple(values["behind"]),
        mirrors=_mirrors(values, folder),
    )


def _witness(values: dict[str, Any], folder: Path) -> WitnessConfig:
    logs = tuple(values["logs"])
    for name, n_times in Counter(log.name for log in logs).items():
        if n_times > 1:
            raise ProblemError(
                f"logs must name each log once, got {name} twice; leave one of them out"
            )
    return WitnessConfig(
        name=values["name"],
        key=read_private_key(folder / values["key"]),
        listening=_listening(values, folder),
        folder=folder / values["folder"],
        is_trusted=values["clock"] == "trusted",
        logs=logs,
        behind=tuple(values["behind"]),
    )


def _destination(values: dict[str, Any], folder: Path) -> DestinationConfig:
    def path(key: str) -> Path | None:
        return None if values[key] is None else folder / values[key]

    if values["collector"] is None and values["collection"] is None:
        raise ProblemError(
            "collector must be the file of the key by which bistros know who collects; "
            "`datacollect keys new collector.key` makes one"
        )
    if values["listen"] is None and values["tls"] is not None:
        raise ProblemError("tls is only for listening; add listen, or leave tls out")
    into = folder / values["folder"]
    key, marks = values["key"], values["mark_key"] or values["key"]
    return DestinationConfig(
        key=read_private_key(folder / key),
        mark_key=None if marks == LOST_KEY else read_private_key(folder / marks),
        collector=path("collector"),
        identities=tuple(folder / each for each in values["identities"]),
        tickets=path("tickets"),
        folder=into,
        register=values["register"] or str(into / "register"),
        collection=path("collection"),
        method=values["method"],
        receipts=path("receipts"),
        listening=None if values["listen"] is None else _listening(values, folder),
        behind=tuple(values["behind"]),
        workers=values["workers"],
        every_s=values["every_s"],
        mirrors=_mirrors(values, folder),
    )


def _mirrors(values: dict[str, Any], folder: Path) -> tuple[Path, ...]:
    for each in values["mirrors"]:
        if "://" in each:
            raise ProblemError(
                f"mirrors must be folders, got {shown(each)}; mount the disk of another host, and "
                "name a folder there"
            )
    return tuple(folder / each for each in values["mirrors"])


def _listening(values: dict[str, Any], folder: Path) -> Listening:
    tls = values["tls"]
    files = (folder / tls["certificate"], folder / tls["key"]) if tls else None
    return Listening(values["listen"], files)
