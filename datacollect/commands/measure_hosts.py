"""The command ``datacollect measure hosts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, emit_json, note_text, working
from datacollect.commands.options import Force, Json, Output, require_new
from datacollect.commands.reading import write_text
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence


def hosts(
    url: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL...", help="Where agents listen: https://host:port."),
    ] = None,
    destination: Annotated[
        str, typer.Option("--destination", metavar="NAME", help="The host that collects all.")
    ] = "D",
    iperf3: Annotated[
        list[str] | None,
        typer.Option(
            "--iperf3",
            metavar="NAME=HOST:PORT",
            help="A host with an iperf3 server instead of an agent; repeat it.",
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option("--key", metavar="KEY", help="File of the operator's key, as in the file."),
    ] = "operator.key",
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask agents for their names and certificates, and write the file of hosts to be measured.

    Nobody vouches for what they answer: compare the fingerprints with what agents say when ready.
    """
    from datacollect.files.documents import folder_of
    from datacollect.files.toml_tables import toml_of
    from datacollect.measurement.hosts_file import HOSTS, HOSTS_FORMAT, HostsFile
    from datacollect.transfer.sources.agent.introducing import introduction_by

    require_new(output, force=force)
    found = _servers(iperf3)
    with working("asking agents"):
        for agent in map(introduction_by, url or ()):
            if agent.name in found:
                raise ProblemError(
                    f"two hosts are called {agent.name!r}, one is {agent.url}; rename one in its "
                    "agent's file"
                )
            found[agent.name] = {"url": agent.url, "fingerprint": agent.fingerprint}
    tree = {"format": HOSTS_FORMAT, "destination": destination, "hosts": found}
    if url:
        tree["key"] = key
    HostsFile.from_dict(tree)
    if output is not None or not as_json:
        write_text(toml_of(HOSTS, tree).rstrip("\n"), output)
    if as_json:
        emit_json({"hosts": [{"name": name, **said} for name, said in found.items()]})
    elif output is not None:
        for name, said in found.items():
            emit(" ".join([name, *said.values()]))
    if url:
        note_text("compare each fingerprint with what its agent says when it is ready")
        if output is not None and not (folder_of(output) / key).exists():
            note_text(f"agents ask for {key} beside {output}: `datacollect keys new` makes one")


def _servers(given: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """Read the options --iperf3."""
    servers: dict[str, dict[str, str]] = {}
    for text in given or ():
        name, _, address = text.partition("=")
        if not name or not address:
            raise ProblemError(
                f"--iperf3 must be NAME=HOST:PORT, got {text!r}; write it like S1=s1.example:5201"
            )
        if name in servers:
            raise ProblemError(f"--iperf3 names {name!r} twice; keep one")
        servers[name] = {"iperf3": address}
    return servers
