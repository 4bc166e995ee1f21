"""The command ``datacollect tunnel``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, note
from datacollect.commands.options import Json
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from datacollect.transfer.tunnel.opening import TunnelOpener

PORT_STOP = 65_536


def tunnel(
    collection_file: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="Collection file, TOML or JSON.")
    ],
    to: Annotated[
        str,
        typer.Argument(
            metavar="AGENT:SERVICE", help="Host and service that the tunnel leads to, as S1:ssh."
        ),
    ],
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Over standard input and output: for ProxyCommand.")
    ] = False,
    listen: Annotated[
        int | None,
        typer.Option("--listen", metavar="PORT", help="A port of this host; 0: any free one."),
    ] = None,
    via: Annotated[
        str | None,
        typer.Option("--via", metavar="K1,K2", help="These relays in this order, no others."),
    ] = None,
    direct: Annotated[bool, typer.Option("--direct", help="Only the direct route.")] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail instead of falling back to the direct route."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Lead any program's TCP to a service beside an agent, also over relays.

    By default over the route with the largest of path minima, directly unless another is more than
    5 % better. What the agent's file names in its table [tunnel] can be reached.
    """
    if stdio == (listen is not None):
        given = "both" if stdio else "neither"
        raise ProblemError(f"give either --stdio or --listen PORT, got {given}")
    if listen is not None and not 0 <= listen < PORT_STOP:
        raise ProblemError(f"--listen must be a port from 0 to {PORT_STOP - 1}, got {listen}")
    if collection_file == "-":
        raise ProblemError(
            "the collection cannot come from standard input here: the tunnel may need standard "
            "input; name a file"
        )
    if as_json and stdio:
        raise ProblemError(
            "--json is for --listen: with --stdio, standard output carries the tunnel's bytes"
        )
    # Slow to import.
    from datacollect.transfer.tunnel.tunnel import opener_of

    names = None if via is None else _names(via)
    opener = opener_of(collection_file, to, via=names, direct=direct, strict=strict, tell=note)
    if listen is None:
        _carry(opener)
    else:
        _listen(opener, listen, to, as_json=as_json)


def _carry(opener: TunnelOpener) -> None:
    from datacollect.transfer.tunnel.standard_streams import carry
    from datacollect.transfer.tunnel.tunnel import Tunnel

    opened = Tunnel(opener.open())
    try:
        carry(opened)
    except BaseException:
        opened.cut("the program ends")
        raise


def _listen(opener: TunnelOpener, port: int, to: str, *, as_json: bool) -> None:
    from datacollect.transfer.tunnel.listening import LOOPBACK, TunnelListener

    listener = TunnelListener(opener, port, note)
    try:
        if as_json:
            # In one line: whoever has started it waits for it.
            emit(json.dumps({"host": LOOPBACK, "port": listener.port, "to": to}))
        else:
            emit(f"{LOOPBACK}:{listener.port} leads to {to}")
        listener.run()
    finally:
        listener.close()


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        raise ProblemError(
            f"--via must be names of relays, with commas between, got {shown(text)}; as K1,K2"
        )
    return names
