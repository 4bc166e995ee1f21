"""Tests of chosen pairs: a command ``datacollect measure TOOL`` for each tool."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from datacollect.commands.console import emit, emit_json, note, working
from datacollect.commands.conversion import TIME
from datacollect.commands.options import Json, positive
from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.units import counted, format_bytes, format_duration
from datacollect.measuring.operator.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from datacollect.measuring.operator.ends import Ends
    from datacollect.measuring.operator.tool import HasCost, Option, Tool
    from datacollect.measuring.plan.budget import Cost
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

    Pair: TypeAlias = tuple[AgentEntry, AgentEntry]

NOT_ALL_DONE = 1
NEVER_WAITED_LONGER_S = 600.0

Hosts = Annotated[
    str, typer.Argument(metavar="HOSTS", help="File of the hosts and the budget, TOML.")
]
Senders = Annotated[
    list[str] | None,
    typer.Option(
        "--from", metavar="HOST", help="Hosts that send; repeatable. Default: all others."
    ),
]
Receivers = Annotated[
    list[str] | None,
    typer.Option(
        "--to", metavar="HOST", help="Hosts that receive; repeatable. Default: destination."
    ),
]
Folder = Annotated[
    str, typer.Option("-o", "--output", metavar="DIR", help="Folder of the samples.")
]
Patience = Annotated[
    float,
    typer.Option(
        "--patience",
        metavar=TIME,
        callback=positive,
        help="How long to wait for other tests to end.",
    ),
]
Seconds = Annotated[
    float,
    typer.Option("--seconds", metavar=TIME, min=0.1, max=60.0, help="How long each test takes."),
]
MostBytes = Annotated[
    str, typer.Option("--bytes", metavar="BYTES", help="A test ends once this much is sent.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be measured, and what it costs.")
]


def command_of(tool: Tool) -> Callable[..., None]:
    """Return the command that tests chosen pairs of hosts by a tool, one after the other."""

    def command(**given: Any) -> None:
        own = {name: given.pop(name) for name in tool.options}
        _measure(_settings_of(tool, own), **given)

    hosts, by, to, *common = _parameters_of_all()
    options = [_parameter(tool, name, option) for name, option in tool.options.items()]
    parameters = [hosts, by, to, *options, *common]
    command.__name__, command.__doc__ = tool.name, tool.help
    # typer reads both.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


@cache
def _parameters_of_all() -> Sequence[inspect.Parameter]:
    """Return what the commands of all tools take."""
    _, *parameters = inspect.signature(_measure, eval_str=True).parameters.values()
    return parameters


def _parameter(tool: Tool, name: str, option: Option) -> inspect.Parameter:
    """Return the parameter of a command that a field of a tool's settings is given by."""
    default = tool.settings.__dataclass_fields__[name].default
    kind: Any = type(default)
    rules: dict[str, Any] = {"min": option.least, "max": option.most}
    if option.in_bytes:
        kind, rules = str | None if default is None else str, {}
        default = default if default is None else format_bytes(default)
    declared = typer.Option(option.flag, metavar=option.metavar, help=option.help, **rules)
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=Annotated[kind, declared],
    )


def _settings_of(tool: Tool, given: Mapping[str, Any]) -> HasCost:
    """Return the settings of a test by the values of its command's options."""
    values = {
        name: bytes_in(given[name], option.flag)
        if option.in_bytes and given[name] is not None
        else given[name]
        for name, option in tool.options.items()
    }
    return tool.settings(**values)


def _measure(
    settings: Any,  # typer evaluates what annotations name: this would be `HasCost`
    hosts_file: Hosts,
    senders: Senders = None,
    receivers: Receivers = None,
    folder: Folder = "samples",
    patience_s: Patience = NEVER_WAITED_LONGER_S,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Test pairs of hosts as settings of a tool say."""
    from datacollect.measuring.operator.ends import is_by_agents, measure_ends
    from datacollect.measuring.plan.hosts_file import HostsFile

    hosts = HostsFile.from_file(hosts_file)
    pairs = [_ends_of(hosts, pair, settings) for pair in named_pairs(hosts, senders, receivers)]
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
                    emit(TOOLS[settings.tool].line(row))
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


def _about(settings: HasCost) -> str:
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


def _ends_of(hosts: HostsFile, pair: tuple[str, str], settings: HasCost) -> Ends:
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
