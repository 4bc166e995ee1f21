"""Setting an agent up: its file and its certificate, and the line that a collector takes."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import NotWrittenError, ProblemError, naming
from datacollect.files.documents import (
    document_name,
    parse_toml,
    read_text,
    toml_text,
    write_atomically,
)
from datacollect.files.kinds import shown
from datacollect.net.names import host_and_port, host_port_text, require_host_name
from datacollect.net.tls import fingerprint_of_file
from datacollect.transfer.agent.config.certificate import make_own_certificate
from datacollect.transfer.agent.config.fields import AGENT_FORMAT
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.protocol.introduction import Introduction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_LISTEN = "0.0.0.0:7443"

# What listens on all addresses of a host is reached by none of these.
EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True)
class AgentSetting:
    """Contents of a new agent's file.

    Attributes
    ----------
    name : str
    collectors : sequence of str
        Public keys.
    serve : str or None
        Folder, relative to the working directory.
    connect_to : mapping
        Address by name.
    listen : str
    address : str or None
        ``HOST`` or ``HOST:PORT`` as collectors reach it. None: where it listens or, if it does so
        on all its addresses, the name that this host has.
    tunnel_to : mapping
        Services that the collectors' tunnels lead to, address by name.
    tables : mapping
        By name, what stands in tables that others bring.
    """

    name: str
    collectors: Sequence[str]
    serve: str | None = None
    connect_to: Mapping[str, str] = field(default_factory=dict)
    listen: str = DEFAULT_LISTEN
    address: str | None = None
    tunnel_to: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def set_up_agent(
    setting: AgentSetting, file: str | None = None, *, force: bool = False
) -> tuple[Path, Introduction]:
    """Write an agent's file, make its certificate, and return the file and what introduces it.

    The same again changes nothing. A certificate that is there stays, whatever the file says:
    collectors know it.

    Parameters
    ----------
    setting : AgentSetting
    file : str, optional
        The agent's file; ``NAME.toml`` if absent.
    force : bool
        Replace a file that says something else.

    Raises
    ------
    ProblemError
        No agent can be so; the message says why. Nothing is written.
    """
    require_host_name(setting.name, "the agent's name")
    path = Path(file or f"{setting.name}.toml")
    text = _text(setting, path)
    with naming(f"{document_name(path)}, which is not written"):
        config = AgentConfig.from_tree(parse_toml(text, "the agent's file"), path)
        url = _url(setting)
    is_there = path.exists() or path.is_symlink()
    is_same = is_there and path.is_file() and read_text(path) == text
    if is_there and not is_same and not (force and path.is_file()):
        raise NotWrittenError(
            f"{document_name(path)}: exists already, and differs from what would be written; "
            "--force replaces a file, -o names another"
        )
    make_own_certificate(config)
    if not is_same:
        write_atomically(path, text.encode())
    return path, Introduction(setting.name, url, fingerprint_of_file(config.certificate))


def _text(setting: AgentSetting, path: Path) -> str:
    collectors = list(dict.fromkeys(setting.collectors))
    rows: list[tuple[str, object]] = [
        ("format", AGENT_FORMAT),
        ("name", setting.name),
        ("listen", setting.listen),
        ("collectors", collectors),
    ]
    if setting.serve is not None:
        serve = Path(setting.serve).resolve()
        if path.resolve().is_relative_to(serve):
            raise ProblemError(
                f"{document_name(path)}: lies in the folder that is served, {shown(str(serve))}, "
                "and would be served with the agent's key; name another place with -o"
            )
        rows.append(("serve", str(serve)))
    lines = [f"{key} = {toml_text(value)}" for key, value in rows]
    if setting.connect_to:
        lines.append(f"connect_to = {_inline(setting.connect_to)}")
    if setting.tunnel_to:
        to = _inline(setting.tunnel_to)
        lines += ["", "[tunnel]", f"users = {toml_text(collectors)}", f"to = {to}"]
    for name, table in setting.tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {toml_text(value)}" for key, value in table.items())]
    return "\n".join([*lines, ""])


def _inline(places: Mapping[str, str]) -> str:
    rows = (f"{toml_text(name)} = {toml_text(place)}" for name, place in places.items())
    return f"{{ {', '.join(rows)} }}"


def _url(setting: AgentSetting) -> str:
    """Return where collectors reach the agent."""
    host, port = host_and_port(setting.listen, least_port=0)
    if setting.address is not None:
        host, port = _address(setting.address, port)
    elif host in EVERYWHERE:
        host = socket.getfqdn()
        if host.partition(".")[0] == "localhost":
            raise ProblemError("this host has no name of its own; give one with --address HOST")
    if port == 0:
        raise ProblemError(
            "listen: port 0 means any free port, which nobody knows yet; write a port, such as 7443"
        )
    return f"https://{host_port_text(host, port)}"


def _address(text: str, port: int) -> tuple[str, int]:
    """Split ``HOST`` or ``HOST:PORT``; the port that is given, else the one it listens at."""
    is_bare_ipv6 = text.count(":") > 1 and "]" not in text
    try:
        return host_and_port(
            f"[{text}]" if is_bare_ipv6 else text, least_port=min(port, 1), default_port=port
        )
    except ProblemError:
        raise ProblemError(
            f'--address must be HOST or HOST:PORT, got {shown(text)}; such as "s1.example"'
        ) from None
