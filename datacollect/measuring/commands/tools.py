"""Tests of chosen pairs: ``datacollect measure ping``, ``trace``, ``pairs`` and ``tcp``."""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from datacollect.commands.console import emit, emit_json, note, working
from datacollect.commands.options import Json, positive
from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.measuring.operator.ends import Ends
    from datacollect.measuring.operator.tools import HasCost as Settings
    from datacollect.measuring.plan.budget import Cost
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

    Pair: TypeAlias = tuple[AgentEntry, AgentEntry]
else:
    # typer evaluates what functions return, and the command starts without the tools.
    Settings: TypeAlias = Any

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
Seconds = Annotated[
    float, typer.Option("--seconds", metavar="S", min=0.1, max=60.0, help="How long each.")
]
MostBytes = Annotated[
    str, typer.Option("--bytes", metavar="BYTES", help="A test ends when so much is sent.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be measured, and what it costs.")
]


def of_pairs(settings_of: Callable[..., Settings]) -> Callable[..., None]:
    """Return the command that tests chosen pairs of hosts, one after the other.

    Parameters
    ----------
    settings_of : callable
        Returns the settings of a test by the command's own options, and has its name and help.
    """

    def command(
        hosts_file: Hosts,
        senders: Senders = None,
        receivers: Receivers = None,
        folder: Folder = "samples",
        patience_s: Patience = NEVER_WAITED_LONGER_S,
        dry_run: DryRun = False,
        as_json: Json = False,
        **own: Any,
    ) -> None:
        _measure(
            hosts_file,
            (senders, receivers),
            settings_of(**own),
            folder,
            patience_s,
            dry_run=dry_run,
            as_json=as_json,
        )

    hosts, by, to, *common, _ = inspect.signature(command, eval_str=True).parameters.values()
    options = inspect.signature(settings_of, eval_str=True).parameters.values()
    parameters = [hosts, by, to, *options, *common]
    wraps(settings_of)(command)
    # typer reads both.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


@of_pairs
def ping(
    n: Annotated[
        int, typer.Option("--count", metavar="N", min=1, max=100, help="Round trips.")
    ] = 10,
    every_s: Annotated[
        float, typer.Option("--every", metavar="S", min=0.2, max=10.0, help="One every S seconds.")
    ] = 1.0,
) -> Settings:
    """Measure round trips between hosts that run agents: by ping, else by handshakes of TCP."""
    from datacollect.measuring.operator.pair_tests import PingSettings

    return PingSettings(n, every_s)


@of_pairs
def trace(
    hops: Annotated[
        int, typer.Option("--hops", metavar="N", min=1, max=64, help="Most routers of a route.")
    ] = 30,
    seconds: Seconds = 30.0,
) -> Settings:
    """Find the routers between hosts that run agents: by scamper, else by traceroute."""
    from datacollect.measuring.operator.traces import TraceSettings

    return TraceSettings(hops, seconds)


@of_pairs
def pairs(
    half_width: Annotated[
        float,
        typer.Option(
            "--within",
            metavar="PART",
            min=0.01,
            max=1.0,
            help="Half of the interval that is wanted, as a part of the available bandwidth.",
        ),
    ] = 0.15,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", min=1.0, max=60.0, help="How long at most.")
    ] = 30.0,
    most_bytes: MostBytes = "3 MB",
) -> Settings:
    """Measure capacity and available bandwidth between hosts that run agents, by packet pairs.

    As many as the interval needs, over UDP, to the udp_port of the agent that receives.
    """
    from datacollect.measuring.operator.packet_pairs import PairsSettings

    return PairsSettings(half_width, seconds, bytes_in(most_bytes, "--bytes"))


@of_pairs
def tcp(
    streams: Annotated[
        int, typer.Option("--streams", metavar="N", min=1, max=64, help="Connections at a time.")
    ] = 1,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="BYTES", help="Most on its way, of each connection."),
    ] = None,
    seconds: Seconds = 10.0,
    most_bytes: MostBytes = "100 MB",
) -> Settings:
    """Measure what TCP connections carry between hosts that run agents, or to an iperf3 server."""
    from datacollect.measuring.operator.pair_tests import TcpSettings

    window_bytes = None if window is None else bytes_in(window, "--window")
    return TcpSettings(streams, seconds, bytes_in(most_bytes, "--bytes"), window_bytes)


@of_pairs
def curve(
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="S", min=0.1, max=60.0, help="Each number of streams."),
    ] = 10.0,
    most_bytes: MostBytes = "100 MB",
) -> Settings:
    """Measure how rates grow with connections, and how many of others share the narrowest wire.

    Packet pairs tell the capacity; 1, 2 and 4 connections what we get of it. Where pairs do not
    tell it, 8 connections show how far the rate grows.
    """
    from datacollect.measuring.operator.curve_tests import CurveSettings

    return CurveSettings(seconds, bytes_in(most_bytes, "--bytes"))


def _measure(
    hosts_file: str,
    ends: tuple[Sequence[str] | None, Sequence[str] | None],
    settings: Settings,
    folder: str,
    patience_s: float,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    from datacollect.measuring.operator.ends import is_by_agents, measure_ends
    from datacollect.measuring.plan.hosts_file import HostsFile

    hosts = HostsFile.from_file(hosts_file)
    pairs = [_ends_of(hosts, pair, settings) for pair in named_pairs(hosts, *ends)]
    require_budget(hosts, len(pairs), settings.cost.times(len(pairs)))
    if dry_run:
        say_tests(pairs, settings.cost.times(len(pairs)), as_json=as_json)
        return
    rows, key = [], operator_key(hosts) if any(map(is_by_agents, pairs)) else None
    for pair in pairs:
        with at_test(folder, settings.tool, [pair], _about(settings)):
            for row in measure_ends(pair, key, settings, patience_s, note):
                keep(folder, [row])
                rows.append(row)
                if not as_json:
                    emit(_with_streams(row) if settings.tool == "curve" else line_of(row))
    finish(folder, rows, as_json=as_json)


@contextmanager
def at_test(folder: str, tool: str, pairs: Sequence[Ends], about: str = "") -> Iterator[None]:
    """Say what runs, here and beside the samples."""
    from datacollect.measuring.plan.current_tests import running_test

    Path(folder).mkdir(parents=True, exist_ok=True)
    names = [(sender.name, receiver.name) for sender, receiver in pairs]
    with (
        working(f"{tool} {', '.join(f'{tail} → {head}' for tail, head in names)}"),
        running_test(Path(folder), tool, names, about),
    ):
        yield


def _about(settings: Settings) -> str:
    """Say in a few words how it tests."""
    return ", ".join(f"{name} {value}" for name, value in vars(settings).items() if value)


def say_tests(pairs: Sequence[Ends], cost: Cost, *, as_json: bool) -> None:
    """Say what would be tested, and what it costs at most."""
    if as_json:
        rows = [{"from": sender.name, "to": receiver.name} for sender, receiver in pairs]
        emit_json({"tests": rows, "most_bytes": cost.n_bytes, "most_s": cost.seconds})
        return
    for sender, receiver in pairs:
        emit(f"{sender.name} → {receiver.name}")


def operator_key(hosts: HostsFile) -> PrivateKey:
    """Read the operator's key, which a file with agents names."""
    from datacollect.net.keys import read_private_key

    assert hosts.key is not None
    return read_private_key(hosts.key)


def keep(folder: str, rows: Sequence[dict[str, Any]]) -> None:
    """Keep the rows of a test in the folder of samples, which `at_test` has made."""
    import secrets

    from datacollect.measurement.sample_store import write_part

    first = rows[0]
    write_part(Path(folder), f"{int(first['time_s'])}-{first['tool']}-{secrets.token_hex(4)}", rows)


def finish(folder: str, rows: Sequence[dict[str, Any]], *, as_json: bool, **more: Any) -> None:
    """Give the answer of a command in JSON, and end with its code where a test was not done."""
    if as_json:
        emit_json({"folder": folder, "samples": rows, **more})
    if any(row["ended"] != "done" for row in rows):
        raise typer.Exit(NOT_ALL_DONE)


def bytes_in(text: str, option: str) -> int:
    """Read an option that is a number of bytes."""
    from datacollect.files.kinds import Whole

    value = int(text) if text.isascii() and text.isdigit() else text
    return Whole("bytes", minimum=1).read(value, option)


def named_pairs(
    hosts: HostsFile, senders: Sequence[str] | None, receivers: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Return the names of the pairs that are asked for, each once."""
    to = dict.fromkeys(receivers or (hosts.destination,))
    sent_by = dict.fromkeys(senders or (name for name in hosts.hosts if name not in to))
    for name in (*sent_by, *to):
        if name not in hosts.hosts:
            known = ", ".join(hosts.hosts)
            raise ProblemError(
                f"no host is called {name!r}; there are {known}" + nearest_hint(name, hosts.hosts)
            )
    pairs = [(sender, receiver) for sender in sent_by for receiver in to if sender != receiver]
    if not pairs:
        raise ProblemError("no pair of hosts is left; name two different ones by --from and --to")
    return pairs


def pairs_of(
    hosts: HostsFile, senders: Sequence[str] | None, receivers: Sequence[str] | None
) -> list[Pair]:
    """Return the pairs that are asked for, each once; all of them have agents."""
    return [
        (_agent(hosts, sender), _agent(hosts, receiver))
        for sender, receiver in named_pairs(hosts, senders, receivers)
    ]


def _agent(hosts: HostsFile, name: str) -> AgentEntry:
    host = hosts.hosts[name]
    if host is None:
        raise ProblemError(
            f"host {name!r} has no agent, and only iperf3 servers can be measured from it; run an "
            f"agent there, and write its url and fingerprint into [hosts.{name}]"
        )
    if isinstance(host, tuple):
        raise ProblemError(
            f"host {name!r} is an iperf3 server, which these tests cannot ask; run an agent there, "
            "or measure it by `datacollect measure tcp` and `ping`"
        )
    return host


def _ends_of(hosts: HostsFile, pair: tuple[str, str], settings: Settings) -> Ends:
    """Return how the ends of a pair are reached: two agents, or a server and this host."""
    from datacollect.measuring.operator.ends import ends_of, is_by_iperf3
    from datacollect.measuring.operator.iperf3_tests import Iperf3Server, require_by_iperf3

    found = ends_of(hosts)
    ends = found[pair[0]], found[pair[1]]
    servers = [end for end in ends if isinstance(end, Iperf3Server)]
    if not servers:
        return _agent(hosts, pair[0]), _agent(hosts, pair[1])
    require_by_iperf3(settings)
    if not is_by_iperf3(ends):
        raise ProblemError(
            f"{pair[0]} → {pair[1]}: host {servers[0].name!r} is an iperf3 server, so the other "
            "end must be the host where this program runs: the destination, with an empty table "
            "[hosts.NAME]; write one, name other hosts by --from and --to, or run agents at both"
        )
    return ends


def require_budget(
    hosts: HostsFile, n_tests: int, cost: Cost, order: str = "one after the other"
) -> None:
    """Say what all tests cost at most; raise where the budget is less."""
    from datacollect.files.units import counted, format_bytes, format_duration

    note(
        f"{counted(n_tests, 'test')}, {order}: at most {format_bytes(cost.n_bytes)} and "
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


def line_of(row: dict[str, Any]) -> str:
    """Say what a row says."""
    from datacollect.files.units import format_rate, format_short_duration

    pair = f"{row['from']} → {row['to']}"
    if row.get("tool") == "curve" and row["ended"] == "done":
        said = _curve_line(row)
    elif row.get("capacity_bytes_per_s") is not None:
        said = _capacity_line(row)
    elif row.get("bandwidth_bytes_per_s") is not None:
        rate = format_rate(row["bandwidth_bytes_per_s"])
        whole = format_rate(row["bandwidth_from_connect_bytes_per_s"])
        said = f"{rate} ({whole} from connecting on)"
        if row.get("limited_by") is not None:
            said += f", limited by: {row['limited_by']}"
    elif row.get("routers") is not None:
        said = _route_line(json.loads(row["routers"]))
    elif row.get("rtt_s") is not None:
        said = f"{format_short_duration(row['rtt_s'])}, loss {row['loss']:.0%}"
    else:
        return f"{pair}: {row['ended']}"
    return f"{pair}: {said}" if row["ended"] == "done" else f"{pair}: {said}; {row['ended']}"


def _with_streams(row: dict[str, Any]) -> str:
    """Say what a row of a curve says; a test of it begins with its number of connections."""
    from datacollect.files.units import counted

    streams = json.loads(row["settings"]).get("streams")
    return line_of(row) if streams is None else f"{counted(streams, 'stream')}: {line_of(row)}"


def _capacity_line(row: dict[str, Any]) -> str:
    """Say what packet pairs tell."""
    from datacollect.files.units import format_rate

    capacity = f"capacity {format_rate(row['capacity_bytes_per_s'])}"
    if row.get("bandwidth_bytes_per_s") is None:
        why = json.loads(row["settings"]).get("no_bandwidth")
        return f"{capacity}; {why}" if why else capacity
    found, low, high = (
        format_rate(row[f"bandwidth_{which}bytes_per_s"]) for which in ("", "low_", "high_")
    )
    return f"{capacity}, available {found} ({low} to {high})"


def _curve_line(row: dict[str, Any]) -> str:
    """Say what a curve tells."""
    from datacollect.files.units import format_rate

    if row["competitors"] is None:
        return (
            f"one connection gets {format_rate(row['per_connection_bytes_per_s'])}; how many of "
            f"others there are is not known: {json.loads(row['settings']).get('no_capacity')}"
        )
    return (
        f"{format_rate(row['capacity_bytes_per_s'])} for all connections, those of others are as "
        f"{row['competitors']:.1f} of ours"
    )


def _route_line(route: list[Any]) -> str:
    """Say a route's routers: all that answered at a hop, and where none did."""
    from datacollect.measurement.routes import answering

    return " ".join(" or ".join(answering(hop)) or "*" for hop in route) or "no router between"
