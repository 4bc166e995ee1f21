"""The command ``datacollect measure hosts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import complain_text, emit, emit_json, note_text, working
from datacollect.commands.options import Force, Json, Output, require_new
from datacollect.commands.reading import write_text
from datacollect.errors import ProblemError, TransferError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from datacollect.transfer.protocol.introduction import Introduction

NOT_ALL_FOUND = 1


def hosts(
    url: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL...", help="Where agents listen: https://host:port."),
    ] = None,
    destination: Annotated[
        str, typer.Option("--destination", metavar="NAME", help="The host that collects all data.")
    ] = "D",
    iperf3: Annotated[
        list[str] | None,
        typer.Option(
            "--iperf3",
            metavar="NAME=HOST:PORT",
            help="A host with an iperf3 server instead of an agent; repeatable.",
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            "--key",
            metavar="KEY",
            help="File of the operator's private key; the hosts' file names it as `key`.",
        ),
    ] = "operator.key",
    n_bytes: Annotated[
        str, typer.Option("--bytes", metavar="BYTES", help="Most bytes of a cycle of tests.")
    ] = "10 GB",
    seconds: Annotated[
        str, typer.Option("--time", metavar="TIME", help="Longest time of a cycle of tests.")
    ] = "1 h",
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask agents for their names and certificates, and write the file of hosts to be measured.

    Nobody vouches for what they answer: compare the fingerprints with what agents say when ready.
    Those that do not answer are named, and the exit code is 1.
    """
    from datacollect.files.documents import folder_of
    from datacollect.files.toml_tables import toml_of
    from datacollect.measuring.plan.hosts_file import HOSTS, HOSTS_FORMAT, HostsFile

    require_new(output, force=force)
    # Who measures nothing but iperf3 servers is the destination.
    found = _servers(iperf3, None if url else destination)
    with working("asking agents"):
        agents, failed = _introduced(url or ())
    for one, why in failed.items():
        complain_text(f"{one} is left out: {why}")
    _add_agents(agents, found)
    _require_destination(destination, list(found))
    tree: dict[str, Any] = {"format": HOSTS_FORMAT, "destination": destination}
    tree |= {"budget": {"bytes": n_bytes, "time": seconds}, "hosts": found}
    if url:
        tree["key"] = key
    HostsFile.from_dict(tree)
    if output is not None or not as_json:
        write_text(toml_of(HOSTS, tree).rstrip("\n"), output)
    if as_json:
        missing = [{"url": one, "why": why} for one, why in failed.items()]
        named = [{"name": name, **said} for name, said in found.items()]
        emit_json({"hosts": named, "failed": missing})
    elif output is not None:
        for name, said in found.items():
            emit(" ".join([name, *said.values()]))
    if url:
        note_text("compare each fingerprint with the one that its agent prints when it is ready")
        if output is not None and not (folder_of(output) / key).exists():
            note_text(
                f"agents accept only signed tests, and the key {key} beside {output} is missing: "
                "`datacollect keys new` makes one"
            )
    if iperf3:
        note_text("iperf3 servers were not checked: the first test is the first to connect to them")
    if failed:
        raise typer.Exit(NOT_ALL_FOUND)


def _introduced(urls: Sequence[str]) -> tuple[list[Introduction], dict[str, str]]:
    """Ask all agents who they are at once; return who answers, and why others do not."""
    from datacollect.net.fan_out import fan_out
    from datacollect.transfer.sources.agent.introducing import introduction_by

    outcomes, agents = fan_out(urls, introduction_by), []
    failed: dict[str, TransferError] = {}
    for url in dict.fromkeys(urls):
        try:
            agents.append(outcomes[url].result())
        except TransferError as error:
            failed[url] = error
    if failed and not agents:
        raise next(iter(failed.values()))
    # Errors begin with the address, which is in the URL.
    place = {url: f"{url.removeprefix('https://').rstrip('/')}: " for url in failed}
    return agents, {url: str(error).removeprefix(place[url]) for url, error in failed.items()}


def _add_agents(agents: Iterable[Introduction], found: dict[str, dict[str, str]]) -> None:
    """Add agents to the hosts that were found; refuse a second one of a name."""
    for agent in agents:
        if agent.name in found:
            raise _two_of_one_name(agent, found[agent.name])
        found[agent.name] = {"url": agent.url, "fingerprint": agent.fingerprint}


def _two_of_one_name(agent: Introduction, other: Mapping[str, str]) -> ProblemError:
    """Return what is wrong where an agent has the name of another host."""
    if "iperf3" in other:
        return ProblemError(
            f"two hosts are called {agent.name!r}: the agent {agent.url} and --iperf3 "
            f"{agent.name}={other['iperf3']}; give the one of --iperf3 another name"
        )
    if other["fingerprint"] == agent.fingerprint:
        return ProblemError(
            f"{other['url']} and {agent.url} are the same agent, {agent.name!r}, by its "
            "fingerprint; name it once"
        )
    return ProblemError(
        f"two hosts are called {agent.name!r}: {other['url']} and {agent.url}; rename one in its "
        "agent's file"
    )


def _require_destination(destination: str, names: Sequence[str]) -> None:
    """Refuse too few hosts, and a destination that is none of them; options mend both."""
    from datacollect.measurement.outcomes import listed
    from datacollect.measuring.plan.hosts_file import MOST_NAMED

    if len(names) < 2:
        raise ProblemError(
            f"hosts must be at least two, got {', '.join(names) or 'none'}; name more by the URLs "
            "of their agents, or by --iperf3"
        )
    if destination not in names:
        raise ProblemError(
            f"destination must be one of the hosts, got {destination!r}; there are "
            f"{listed(names, MOST_NAMED)}: say which one with --destination"
        )


def _servers(given: Sequence[str] | None, here: str | None) -> dict[str, dict[str, str]]:
    """Read the options --iperf3; beside servers this host is in the file, unless it is one."""
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
    if servers and here is not None:
        servers.setdefault(here, {})
    return servers
