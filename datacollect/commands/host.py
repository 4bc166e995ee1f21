"""The commands ``datacollect host …``: what a machine can take in and send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.at_work import at_work
from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit, emit_facts, emit_json, note_text
from datacollect.commands.help_option import Command, Group
from datacollect.commands.host_simulate import simulate
from datacollect.commands.options import Json
from datacollect.commands.wing_commands import add_brought
from datacollect.files.registry import Registry
from datacollect.wings import HOST_COMMANDS, LISTED_HOST_COMMANDS

if TYPE_CHECKING:
    from datacollect.machine.throughput import Throughput

host = typer.Typer(
    cls=Group,
    help="Show what a machine can receive and send, and what limits it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

# Commands of this group that wings bring, and other packages.
BROUGHT = Registry("command", "datacollect.host_commands", CommandSpec, HOST_COMMANDS)


def predict(
    profile_file: Annotated[
        str,
        typer.Argument(metavar="PROFILE", help="What `host calibrate` wrote; - is standard input."),
    ],
    to_disk: Annotated[
        bool, typer.Option("--to-disk", help="Write what is received to disk, as pulls do.")
    ] = False,
    tls: Annotated[bool, typer.Option("--tls", help="Use TLS, as agents and pulls do.")] = False,
    relay: Annotated[
        bool, typer.Option("--relay", help="Also show what the machine passes on as a relay.")
    ] = False,
    connections: Annotated[
        int | None,
        typer.Option(
            "--connections",
            metavar="N",
            help="Connections at a time. Default: as many as are needed.",
        ),
    ] = None,
    packet_bytes: Annotated[
        str | None,
        typer.Option("--packet-bytes", metavar="N", help="Datagrams of this size, not TCP."),
    ] = None,
    nic: Annotated[
        str | None,
        typer.Option("--nic", metavar="RATE", help='Rate of the network card, "10 Gbit/s".'),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="BYTES", help="Most bytes in flight on each connection."),
    ] = None,
    rtt: Annotated[
        str | None, typer.Option("--rtt", metavar="TIME", help='Round trip of the path, "20 ms".')
    ] = None,
    cores: Annotated[
        float | None, typer.Option("--cores", metavar="N", help="Processors to use. Default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a machine can take in and send, what binds, and what would bind next."""
    from datacollect.machine.profile import host_profile

    profile = host_profile(profile_file)
    path: dict[str, Any] = {
        "connections": connections,
        "nic_bytes_per_s": nic,
        "window_bytes": window,
        "rtt_s": rtt,
        "cores": cores,
    }
    sized: dict[str, Any] = {**path, "packet_bytes": _whole_number(packet_bytes)}
    found = [profile.receives(tls=tls, to_disk=to_disk, **sized), profile.sends(tls=tls, **sized)]
    if relay:
        found.append(profile.relays(**path))
    if as_json:
        emit_json({"name": profile.name, "predictions": [each.to_dict() for each in found]})
    for i, each in enumerate(() if as_json else found):
        if i:
            emit("")
        _show(each)
    if any(each.was_busy for each in found):
        busy = max(each.load for each in found)
        note_text(
            f"note: when {profile.name} was measured, other programs kept {busy:.0%} of its "
            "processors busy: its costs may be far off. Calibrate again while it is idle."
        )


host.command(cls=Command)(simulate)


def _whole_number(text: str | None) -> int | str | None:
    """Return a number of bytes without its unit as a number; the rest is judged where it counts."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


_KEYS = {"receives": "downlink_bytes_per_s", "sends": "uplink_bytes_per_s"}


def _show(found: Throughput) -> None:
    """Show what there is, what binds, what is next and what would help."""
    from datacollect.machine.throughput import rounded_rate

    binds, *others = found.limits
    low, high = map(rounded_rate, (found.low_bytes_per_s, found.high_bytes_per_s))
    between = "" if low == high else f" ({low} to {high})"
    emit(f"{found.does}: {found.rate_words}{between}")
    facts = [("binds", f"{binds.part}: {binds.why}")]
    if others:
        facts.append(("next", f"{others[0].part}, at {rounded_rate(others[0].bytes_per_s)}"))
    else:
        facts.append(("next", "nothing known: give --nic, or --window and --rtt"))
    helps = [f"{each.what}: {rounded_rate(each.bytes_per_s)}" for each in found.remedies]
    facts.append(("would help", "; ".join(helps) or "nothing that is known"))
    if key := _KEYS.get(found.does.partition(" ")[0]):
        rate = int(float(f"{found.bytes_per_s:.3g}"))
        facts.append(("for a file", f"[hosts.D] {key} = {rate:_}"))
    emit_facts(facts)


host.command(cls=Command)(at_work(predict))


def whole_host() -> typer.Typer:
    """Return the group with what wings bring to it, which is imported where the group is called."""
    known = {info.name for info in host.registered_commands}
    for name in BROUGHT.names():
        if name not in known:
            add_brought(host, BROUGHT, name, LISTED_HOST_COMMANDS.get(name))
    return host
