"""Configuration of an agent from its file, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.documents import folder_of
from datacollect.files.kinds import shown, wrong
from datacollect.problem.hourly_rates import HourlyRate
from datacollect.transfer.agent.config.fields import AGENT, LIMITS

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.transfer.rates.spells import Rate


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


@dataclass(frozen=True)
class AcceptConfig:
    """Configuration of accepted uploads; see ``ACCEPT``. All paths resolved."""

    event: Path
    folder: Path
    most_bytes: int
    receipt_key: Path
    expire_s: float

    @property
    def served(self) -> Path:
        """The folder that the agent serves: what is closed."""
        return self.folder / "served"


@dataclass(frozen=True)
class MeasureConfig:
    """Configuration of tests that an agent takes part in; see ``MEASURE``.

    Attributes
    ----------
    operators : frozenset of str
        Public keys.
    tools : tuple of str
    bytes_per_hour : int
    rate_bytes_per_s : float or None
    hours : tuple of int and int, or None
        From the first to the second, by the host's clock.
    udp_port : int or None
        Where packet pairs arrive; None or 0: nowhere.
    used : Path
        Where it is counted what tests have taken.
    lock : Path
        Held by the kernel while a test runs; agents with one ``state`` share it.
    """

    operators: frozenset[str]
    tools: tuple[str, ...]
    bytes_per_hour: int
    rate_bytes_per_s: float | None
    hours: tuple[int, int] | None
    udp_port: int | None
    used: Path
    lock: Path


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
    has_spool : bool
        Whether the file gives room for others' pieces.
    accept : AcceptConfig or None
        Uploads that are taken.
    measure : MeasureConfig or None
        Tests that it takes part in.
    timezone : str or None
        The zone whose clocks show the hours of ``limits.rate``.
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
    has_spool: bool = False
    accept: AcceptConfig | None = None
    measure: MeasureConfig | None = None
    timezone: str | None = None

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
        return _config(AGENT.read(tree), Path(path), folder_of(path).resolve())


def _config(values: dict[str, Any], file: Path, folder: Path) -> AgentConfig:
    limits = values["limits"] or LIMITS.read({}, "limits")
    _require_zone(limits["rate"], values["timezone"])
    state = folder / values["state"] if values["state"] else folder
    if values["state"] and not state.is_dir():
        raise wrong("state", "must be a folder that is there", values["state"], "make it first")
    tls = values["tls"]
    stem = file.stem if str(file) != "-" else values["name"]
    certificate = folder / tls["certificate"] if tls else state / f"{stem}.cert.pem"
    key = folder / tls["key"] if tls else state / f"{stem}.key.pem"
    nonces = state / f"{stem}.nonces"
    used, lock = state / f"{stem}.measured", state / "measure.lock"
    own = (certificate, key, nonces, folder / file.name, used, lock)
    accept = None if values["accept"] is None else _accepting(values["accept"], folder)
    if values["serve"] is not None and accept is not None:
        raise ProblemError(
            f"serve and accept are both given, got serve {shown(values['serve'])}: with accept the "
            f"agent serves {accept.served}, what is closed of the uploads, and nothing else; leave "
            "serve out, or run two agents"
        )
    serve = None
    if values["serve"] is not None:
        serve = _served(values["serve"], folder, own)
    elif accept is not None:
        serve = accept.served
        _require_apart(serve, str(serve), (*own, accept.receipt_key))
    if values["name"] in values["connect_to"]:
        raise ProblemError(
            f"connect_to.{values['name']}: names this agent itself; it would relay in a circle: "
            "leave it out"
        )
    for name in values["plain_http_to"]:
        if name not in values["connect_to"]:
            remedy = "give its address there, too" + nearest_hint(name, values["connect_to"])
            raise wrong("plain_http_to", "must name hosts of connect_to", name, remedy)
    measure = None if values["measure"] is None else _measuring(values["measure"], used, lock)
    if serve is None and measure is None and not values["connect_to"]:
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
        has_spool=values["spool"] is not None,
        accept=accept,
        measure=measure,
        timezone=values["timezone"],
    )


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


def _served(text: str, folder: Path, own: tuple[Path, ...]) -> Path:
    """Return the folder that is served: one that is there, and holds none of the agent's files."""
    serve = (folder / text).resolve()
    if not serve.is_dir():
        raise wrong("serve", "must be a folder that is there", text, "make it, or correct the path")
    _require_apart(serve, text, own)
    return serve


def _accepting(values: dict[str, Any], folder: Path) -> AcceptConfig:
    return AcceptConfig(
        event=folder / values["event"],
        folder=(folder / values["folder"]).resolve(),
        most_bytes=values["bytes"],
        receipt_key=folder / values["receipt_key"],
        expire_s=values["expire_s"],
    )


def _measuring(values: dict[str, Any], used: Path, lock: Path) -> MeasureConfig:
    return MeasureConfig(
        operators=frozenset(values["operators"]),
        tools=tuple(values["tools"]),
        bytes_per_hour=values["bytes_per_hour"],
        rate_bytes_per_s=values["rate"],
        hours=values["hours"],
        udp_port=values["udp_port"],
        used=used,
        lock=lock,
    )


def _require_apart(serve: Path, text: str, own: tuple[Path, ...]) -> None:
    """Raise `ProblemError` where a file of the agent's would be served."""
    for path in own:
        if path.resolve().is_relative_to(serve):
            raise ProblemError(
                f"serve must not hold the agent's own files, got {shown(text)}, where "
                f"{shown(path.name)} lies, or would; serve a folder beside or below them"
            )
