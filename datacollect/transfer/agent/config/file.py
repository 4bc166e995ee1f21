"""Configuration of an agent from its file, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.documents import folder_of
from datacollect.files.kinds import shown, wrong
from datacollect.files.refusals import refusal_of
from datacollect.problem.hourly_rates import HourlyRate
from datacollect.transfer.agent.config.fields import AGENT, LIMITS, fields_for
from datacollect.transfer.agent.config.tables import AGENT_TABLES, AgentPlaces

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.transfer.agent.config.tables import TableConfig
    from datacollect.transfer.rates.spells import Rate


# Where metrics are told unless the file names another place.
METRICS_LISTEN = ("127.0.0.1", 7444)


@dataclass(frozen=True)
class AgentLimits:
    """Limits of an agent.

    See ``LIMITS`` of `datacollect.transfer.agent.config.fields`.

    >>> AgentLimits().sessions
    1000
    """

    sessions: int = 1000
    sessions_per_address: int = 600
    new_per_s: float = 100.0
    head_s: float = 20.0
    connect_s: float = 10.0
    idle_s: float = 900.0
    drain_s: float = 60.0
    rate: Rate | None = None
    buffer_bytes: int | None = None


@dataclass(frozen=True)
class TunnelConfig:
    """Services that users reach through an agent.

    See ``TUNNEL`` of `datacollect.transfer.agent.config.fields`.

    Attributes
    ----------
    users : frozenset of str
        Public keys.
    to : dict
        Host and port by name.
    most_connections : int
    most_bytes : int or None
        Of each.
    half_idle_s : float
    """

    users: frozenset[str]
    to: dict[str, tuple[str, int]]
    most_connections: int = 16
    most_bytes: int | None = None
    half_idle_s: float = 300.0


@dataclass(frozen=True)
class SpoolConfig:
    """Room for sealed pieces that wait: where, and how much."""

    folder: Path
    most_bytes: int


@dataclass(frozen=True)
class AgentConfig:
    """An agent, as its file describes it; all paths resolved.

    Attributes
    ----------
    file : Path
        Where it stands.
    name : str
    listen : tuple of str and int
    collectors : frozenset of str
        Public keys.
    serve : Path or None
    connect_to : dict
        Host and port by name.
    certificate, key : Path
        PEM files; both are made at the first start unless the file names them.
    own_certificate : bool
        Whether they are the agent's to make.
    nonces : Path
        Where used tickets are kept.
    plain_http_to : frozenset of str
        Those of `connect_to` that are reached without TLS.
    congestion : str or None
    limits : AgentLimits
    spool : SpoolConfig or None
        Room for others' pieces.
    tables : dict
        What tables that others bring come to, by name; see
        `datacollect.transfer.agent.config.tables`.
    timezone : str or None
        The zone whose clocks show the hours of ``limits.rate``.
    tunnel : TunnelConfig or None
    metrics : tuple of str and int or None
        Where metrics are told.
    services : dict
        Services of the agent's own that tunnels lead to: by the name of the table that brings one,
        whose tickets count for it, public keys.
    """

    file: Path
    name: str
    listen: tuple[str, int]
    collectors: frozenset[str]
    serve: Path | None
    connect_to: dict[str, tuple[str, int]]
    certificate: Path
    key: Path
    own_certificate: bool
    nonces: Path
    plain_http_to: frozenset[str] = frozenset()
    congestion: str | None = None
    limits: AgentLimits = AgentLimits()
    spool: SpoolConfig | None = None
    tables: dict[str, TableConfig] = field(default_factory=dict)
    timezone: str | None = None
    tunnel: TunnelConfig | None = None
    metrics: tuple[str, int] | None = None
    services: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> AgentConfig:
        """Read an agent's file.

        Raises
        ------
        ProblemError
            It cannot be read, or says what no agent can do; the message says where.
        """
        return AGENT.from_file(path, lambda tree, _: cls.from_tree(tree, path))

    @classmethod
    def from_tree(cls, tree: Any, path: str | PathLike[str]) -> AgentConfig:
        """Return what the tree of an agent's file says that stands, or will, at a path."""
        document = fields_for(tree if isinstance(tree, Mapping) else ())
        return _config(document.read(tree), Path(path), folder_of(path).resolve())


def _config(values: dict[str, Any], file: Path, folder: Path) -> AgentConfig:
    limits = values["limits"] or LIMITS.read({}, "limits")
    _require_zone(limits["rate"], values["timezone"])
    state = folder / values["state"] if values["state"] else folder
    if values["state"] and not state.is_dir():
        raise wrong("state", "must be an existing folder", values["state"], "make it first")
    tls = values["tls"]
    stem = file.stem if str(file) != "-" else values["name"]
    certificate = folder / tls["certificate"] if tls else state / f"{stem}.cert.pem"
    key = folder / tls["key"] if tls else state / f"{stem}.key.pem"
    nonces = state / f"{stem}.nonces"
    tables = _tables(values, AgentPlaces(folder, state, stem))
    of_tables = (path for table in tables.values() for path in table.own)
    spool = _spool(values["spool"], folder)
    own = (certificate, key, nonces, folder / file.name, *of_tables)
    serve = _serve(values["serve"], folder, own, tables)
    _require_spool_apart(serve, spool)
    if values["name"] in values["connect_to"]:
        raise ProblemError(
            f"connect_to.{values['name']}: names this agent itself; it would relay in a circle: "
            "leave it out"
        )
    for name in values["plain_http_to"]:
        if name not in values["connect_to"]:
            remedy = "give its address there, too" + nearest_hint(name, values["connect_to"])
            raise wrong("plain_http_to", "must name hosts of connect_to", name, remedy)
    tunnel = _tunnel(values["tunnel"])
    if serve is None and tunnel is None and not tables and not values["connect_to"]:
        raise ProblemError(
            "serve and connect_to are both missing: the agent would have nothing to do; give one"
        )
    return AgentConfig(
        file=file,
        name=values["name"],
        listen=values["listen"],
        collectors=frozenset(values["collectors"]),
        serve=serve,
        connect_to=values["connect_to"],
        plain_http_to=frozenset(values["plain_http_to"]),
        certificate=certificate,
        key=key,
        own_certificate=tls is None,
        nonces=nonces,
        congestion=values["congestion"],
        limits=AgentLimits(**limits),
        spool=spool,
        tables=tables,
        timezone=values["timezone"],
        tunnel=tunnel,
        metrics=values["metrics"] and (values["metrics"]["listen"] or METRICS_LISTEN),
        services=_services(tables, tunnel),
    )


def _spool(values: dict[str, Any] | None, folder: Path) -> SpoolConfig | None:
    if values is None:
        return None
    return SpoolConfig((folder / values["folder"]).resolve(), values["bytes"])


def _require_spool_apart(serve: Path | None, spool: SpoolConfig | None) -> None:
    """Raise `ProblemError` where what waits would be served, or what is served would be dropped."""
    if serve is None or spool is None:
        return
    if spool.folder.is_relative_to(serve) or serve.is_relative_to(spool.folder):
        raise wrong(
            "spool.folder",
            "must lie apart from the folder that is served",
            str(spool.folder),
            f"name one beside {serve}",
        )


def _tunnel(values: dict[str, Any] | None) -> TunnelConfig | None:
    if values is None:
        return None
    return TunnelConfig(**values | {"users": frozenset(values["users"])})


def _require_zone(rate: Rate | None, timezone: str | None) -> None:
    """Reject an unknown time zone, and hours without one."""
    if timezone is not None:
        from datacollect.files.clock import zone_of

        zone_of(timezone)
    elif isinstance(rate, HourlyRate):
        raise ProblemError(
            "limits.rate: hours of the day need the zone whose clocks show them; add timezone = "
            '"Europe/Zurich" at the top'
        )


def _tables(values: dict[str, Any], places: AgentPlaces) -> dict[str, TableConfig]:
    """Return what the tables that others bring come to."""
    given = [name for name in values if name not in AGENT.by_name and values[name] is not None]
    return {name: AGENT_TABLES.get(name).configured(values[name], places) for name in given}


def _services(
    tables: dict[str, TableConfig], tunnel: TunnelConfig | None
) -> dict[str, frozenset[str]]:
    """Return the services that tables bring, and their users."""
    found: dict[str, frozenset[str]] = {}
    for name, table in tables.items():
        users = AGENT_TABLES.get(name).users
        if users is None:
            continue
        if tunnel is not None and name in tunnel.to:
            raise ProblemError(
                f"tunnel.to.{name}: with the table {name} the agent has a service of this name "
                "itself; give this one another name"
            )
        found[name] = users(table)
    return found


def _serve(
    text: str | None, folder: Path, own: tuple[Path, ...], tables: dict[str, TableConfig]
) -> Path | None:
    """Return the folder that is served: the file's, or a table's, not both."""
    serving = [name for name, table in tables.items() if table.served is not None]
    if text is not None:
        for name in serving:
            raise ProblemError(
                f"serve and {name} are both given, got serve {shown(text)}: with {name} the agent "
                f"serves {tables[name].served}, {AGENT_TABLES.get(name).serves}, and nothing else; "
                "leave serve out, or run two agents"
            )
        return _served(text, folder, own)
    if len(serving) > 1:
        raise ProblemError(
            f"{' and '.join(serving)} are both given: with each the agent serves a folder of its "
            "own; run two agents"
        )
    for name in serving:
        serve = tables[name].served
        assert serve is not None
        _require_apart(serve, str(serve), own)
        return serve
    return None


def _served(text: str, folder: Path, own: tuple[Path, ...]) -> Path:
    """Return the folder that is served: one that is there, and holds none of the agent's files."""
    try:
        serve = (folder / text).resolve()
        is_there = serve.is_dir()
    except OSError as error:
        reason, remedy = refusal_of(error)
        rule = f"must be a folder that can be looked at: {reason}"
        raise wrong("serve", rule, text, remedy or "correct the path") from None
    if not is_there:
        raise wrong("serve", "must be an existing folder", text, "make it, or correct the path")
    _require_apart(serve, text, own)
    return serve


def _require_apart(serve: Path, text: str, own: tuple[Path, ...]) -> None:
    """Raise `ProblemError` where a file of the agent's would be served."""
    for path in own:
        if path.resolve().is_relative_to(serve):
            raise ProblemError(
                f"serve must not hold the agent's own files, got {shown(text)}, where "
                f"{shown(path.name)} lies, or would; serve a folder beside or below them"
            )
