"""Tests of chosen pairs: ``datacollect measure ping`` and ``datacollect measure tcp``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from datacollect.commands.console import emit, emit_json, note, working
from datacollect.commands.options import Json, positive
from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.measurement.asking.pair_tests import PingSettings, TcpSettings
    from datacollect.measurement.hosts_file import HostsFile
    from datacollect.net.agent_entries import AgentEntry

    Pair: TypeAlias = tuple[AgentEntry, AgentEntry]

NOT_ALL_DONE = 1
NEVER_WAITED_LONGER_S = 600.0

Hosts = Annotated[
    str, typer.Argument(metavar="HOSTS", help="File of the hosts and the budget, TOML.")
]
Senders = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="HOST", help="Who sends; repeatable. Default: all others."),
]
Receivers = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="HOST", help="Who receives; repeatable. Default: destination."),
]
Folder = Annotated[
    str, typer.Option("-o", "--output", metavar="DIR", help="Folder of the samples.")
]
Patience = Annotated[
    float,
    typer.Option(
        "--patience", metavar="S", callback=positive, help="How long others' tests are waited for."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be measured, and what it costs.")
]


def ping(
    hosts_file: Hosts,
    senders: Senders = None,
    receivers: Receivers = None,
    n: Annotated[
        int, typer.Option("--count", metavar="N", min=1, max=100, help="Round trips.")
    ] = 10,
    every_s: Annotated[
        float, typer.Option("--every", metavar="S", min=0.2, max=10.0, help="One every S seconds.")
    ] = 1.0,
    folder: Folder = "samples",
    patience_s: Patience = NEVER_WAITED_LONGER_S,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Measure round trips between hosts that run agents: by ping, else by handshakes of TCP."""
    from datacollect.measurement.asking.pair_tests import PingSettings

    _measure(
        hosts_file,
        (senders, receivers),
        PingSettings(n, every_s),
        folder,
        patience_s,
        dry_run=dry_run,
        as_json=as_json,
    )


def tcp(
    hosts_file: Hosts,
    senders: Senders = None,
    receivers: Receivers = None,
    streams: Annotated[
        int, typer.Option("--streams", metavar="N", min=1, max=64, help="Connections at a time.")
    ] = 1,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", min=0.1, max=60.0, help="How long each.")
    ] = 10.0,
    most_bytes: Annotated[
        str,
        typer.Option("--bytes", metavar="BYTES", help="A test ends when so much is sent."),
    ] = "100 MB",
    folder: Folder = "samples",
    patience_s: Patience = NEVER_WAITED_LONGER_S,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Measure what TCP connections carry between hosts that run agents, and what limits them."""
    from datacollect.files.kinds import Whole
    from datacollect.measurement.asking.pair_tests import TcpSettings

    text = int(most_bytes) if most_bytes.isascii() and most_bytes.isdigit() else most_bytes
    n_bytes = Whole("bytes", minimum=1).read(text, "--bytes")
    _measure(
        hosts_file,
        (senders, receivers),
        TcpSettings(streams, seconds, n_bytes),
        folder,
        patience_s,
        dry_run=dry_run,
        as_json=as_json,
    )


def _measure(
    hosts_file: str,
    ends: tuple[Sequence[str] | None, Sequence[str] | None],
    settings: PingSettings | TcpSettings,
    folder: str,
    patience_s: float,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    from datacollect.measurement.hosts_file import HostsFile

    hosts = HostsFile.from_file(hosts_file)
    pairs = _pairs(hosts, *ends)
    cost = _paid_for(hosts, len(pairs), settings)
    if dry_run:
        if as_json:
            rows = [{"from": sender.name, "to": receiver.name} for sender, receiver in pairs]
            emit_json({"tests": rows, "most_bytes": cost.n_bytes, "most_s": cost.seconds})
        else:
            for sender, receiver in pairs:
                emit(f"{sender.name} → {receiver.name}")
        return
    rows = _run(hosts, pairs, settings, Path(folder), patience_s, says_each=not as_json)
    if as_json:
        emit_json({"folder": folder, "samples": rows})
    if any(row["ended"] != "done" for row in rows):
        raise typer.Exit(NOT_ALL_DONE)


def _run(
    hosts: HostsFile,
    pairs: Sequence[Pair],
    settings: PingSettings | TcpSettings,
    folder: Path,
    patience_s: float,
    *,
    says_each: bool,
) -> list[dict[str, Any]]:
    """Run one test after the other, and keep each row when it is there."""
    import secrets

    from datacollect.measurement.asking.pair_tests import measure_pair
    from datacollect.measurement.sample_store import write_part
    from datacollect.net.keys import read_private_key

    assert hosts.key is not None
    key = read_private_key(hosts.key)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for sender, receiver in pairs:
        with working(f"{settings.tool} {sender.name} → {receiver.name}"):
            row = measure_pair(sender, receiver, key, settings, patience_s, note)
        test_id = f"{int(row['time_s'])}-{settings.tool}-{secrets.token_hex(4)}"
        write_part(folder, test_id, [row])
        rows.append(row)
        if says_each:
            emit(_line(row))
    return rows


def _pairs(
    hosts: HostsFile, senders: Sequence[str] | None, receivers: Sequence[str] | None
) -> list[Pair]:
    """Return the pairs that are asked for, each once."""
    to = dict.fromkeys(receivers or (hosts.destination,))
    sent_by = dict.fromkeys(senders or (name for name in hosts.hosts if name not in to))
    pairs = [
        (_agent(hosts, sender), _agent(hosts, receiver))
        for sender in sent_by
        for receiver in to
        if sender != receiver
    ]
    if not pairs:
        raise ProblemError("no pair of hosts is left; name two different ones by --from and --to")
    return pairs


def _agent(hosts: HostsFile, name: str) -> AgentEntry:
    if name not in hosts.hosts:
        known = ", ".join(hosts.hosts)
        raise ProblemError(
            f"no host is called {name!r}; there are {known}" + nearest_hint(name, hosts.hosts)
        )
    host = hosts.hosts[name]
    if isinstance(host, tuple):
        raise ProblemError(
            f"host {name!r} is an iperf3 server, which these tests cannot ask; run an agent there, "
            "or measure it by iperf3 and `datacollect estimate`"
        )
    return host


def _paid_for(hosts: HostsFile, n: int, settings: PingSettings | TcpSettings) -> Any:
    """Return what all tests cost at most, and say it; raise where the budget is less."""
    from datacollect.files.units import counted, format_bytes, format_duration
    from datacollect.measurement.cycle.budget import Cost

    cost = Cost(n * settings.cost.n_bytes, n * settings.cost.seconds)
    note(
        f"{counted(n, 'test')}, one after the other: at most {format_bytes(cost.n_bytes)} and "
        f"{format_duration(cost.seconds)}, without waiting for others"
    )
    for name, needed, allowed in (
        ("bytes", cost.n_bytes, hosts.budget.n_bytes),
        ("time", cost.seconds, hosts.budget.seconds),
    ):
        if needed > allowed:
            raise ProblemError(
                f"budget.{name} is {allowed:g}, and the tests may take {needed:g}; name fewer "
                "hosts, ask for less of each test, or allow more in the file of the hosts"
            )
    return cost


def _line(row: dict[str, Any]) -> str:
    from datacollect.files.units import format_duration, format_rate

    pair = f"{row['from']} → {row['to']}"
    if row.get("bandwidth_bytes_per_s") is not None:
        rate = format_rate(row["bandwidth_bytes_per_s"])
        whole = format_rate(row["bandwidth_from_connect_bytes_per_s"])
        said = f"{rate} ({whole} from connecting on), limited by: {row['limited_by']}"
    elif row.get("rtt_s") is not None:
        said = f"{format_duration(row['rtt_s'])}, loss {row['loss']:.0%}"
    else:
        return f"{pair}: {row['ended']}"
    return f"{pair}: {said}" if row["ended"] == "done" else f"{pair}: {said}; {row['ended']}"
