"""The command ``datacollect join``: a host keeps a part of an event."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer

from datacollect.bistro.commands.reaching import (
    Acme,
    Certificate,
    CertificateKey,
    HostAddress,
    ListenAt,
    TrustClock,
)
from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit, note_text
from datacollect.commands.options import Json
from datacollect.commands.streams import emit as emit_line


def join(
    invitation: Annotated[
        str,
        typer.Argument(
            metavar="INVITATION", help="The invitation that the organiser sent; - reads a pipe."
        ),
    ],
    role: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="ROLE",
            help="Role of this host: witness, service, bistro or destination.",
        ),
    ],
    address: HostAddress = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    acme: Acme = None,
    listen: ListenAt = None,
    folder: Annotated[
        str | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Folder for what this host keeps. Default: named as the role.",
        ),
    ] = None,
    room: Annotated[
        str | None,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help='For a bistro: room for uploads, as "2 TB". Default: a third of what is free.',
        ),
    ] = None,
    trust_clock: TrustClock = False,
    no_start: Annotated[
        bool, typer.Option("--no-start", help="Write this host's files, and start nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Keep a part of an event on this host: one command, with the organiser's line.

    Makes the keys, tells the organiser their public halves, waits until the event is open, writes
    the server's file and a unit for systemd, and runs the server. Compare the fingerprint that it
    shows with what the organiser sees. The same again goes on.
    """
    from datacollect.bistro.joining.joining import joined
    from datacollect.bistro.one_host.ways import Ways
    from datacollect.files.kinds import Whole

    def told(half: dict[str, str], fingerprint: str) -> None:
        if as_json:
            emit_line(json.dumps({**half, "fingerprint": fingerprint}))
        else:
            emit(f"{half['role']} {half['url']}")
            emit(f"fingerprint {fingerprint}")

    line = sys.stdin.readline() if invitation == "-" else invitation
    size = None if room is None else Whole("bytes", minimum=1).read(room, "--bytes")
    ways = Ways(address, listen, certificate, certificate_key, acme, vouches=trust_clock)
    done = joined(line, role, folder or role, ways, size, note_text, told)
    unit = done.folder / f"datacollect-{role}.service"
    note_text(
        f"{role}.toml is in {done.folder}; to have systemd run it: sudo systemctl link {unit}"
    )
    if no_start:
        return
    os.chdir(done.folder)
    sys.stdout.flush()
    more = ["--json"] if as_json else []
    os.execv(sys.executable, [sys.executable, "-m", "datacollect", *done.command, *more])


COMMAND = CommandSpec("join", join, has_own_log=True)
