"""Remedies are carried out: what they name is there, and an example of each comes out well.

`judges.remedies` finds them in the source. Each is provoked by an example, here or on the command
line (`tests/commands/test_remedies.py`), or stands in `instances/remedies_untried.txt`, which only
gets shorter: a new remedy needs an example.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import runpy
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import typer
from judges.public import callables
from judges.remedies import Template, templates

import datacollect as dc
from datacollect.commands import json_schemas
from datacollect.commands.main import app, run
from datacollect.commands.method_options import brought_methods
from datacollect.errors import DatacollectError
from datacollect.exports.export import export
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import Files
from datacollect.topologies.routing import shortest_routes
from datacollect.topologies.small import line

UNTRIED = Path(__file__).parent / "instances" / "remedies_untried.txt"

# Options of programs of others.
OF_OTHERS = {
    *(
        "--nthreads",
        "--bidir",
        "--json-stream",
        "--fq-rate",
        "--sport",
        "--output-format",
        "--checksum-mode",
    ),
    *("--editable", "--python"),  # of pip, uv; the others of Dask, iperf3, scamper, esmond, FTS
    *("--help", "--checksum"),  # of every command, and of pulls --as fts
}


# What they name is there -----------------------------------------------------------------------


def command_line() -> dict[str, set[str]]:
    """Return the options of every command, by its words."""
    found: dict[str, set[str]] = {}

    def walk(words: tuple[str, ...], command: Any) -> None:
        flags = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
        found[" ".join(words)] = flags
        for name, inner in getattr(command, "commands", {}).items():
            walk((*words, name), inner)

    walk((), typer.main.get_command(app(brought=brought_methods(()))))
    return found


def known_keys() -> set[str]:
    """Return all keys of our files, arguments of public functions, and columns of tables."""
    found: set[str] = set()

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            found.update(schema.get("properties", {}))
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    for kind in json_schemas.kinds_of_files():
        walk(json_schemas.schema_of(kind))
    for function in callables().values():
        found.update(inspect.signature(function).parameters)
    return found


def test_every_option_and_command_that_a_text_names_is_there():
    lines = command_line()
    known = set().union(*lines.values()) | OF_OTHERS
    unknown = {(each.module, option) for each in templates() for option in each.options - known}
    # What follows a command in small letters may be the name of a file.
    unknown |= {
        (each.module, words)
        for each in templates()
        for words in each.commands
        if words not in lines and words.rpartition(" ")[0] not in lines
    }
    assert unknown == set()


def test_every_key_that_a_remedy_names_is_there():
    known = known_keys() | OTHER_KEYS
    unknown = {(each.module, key) for each in templates() for key in each.keys - known}
    assert unknown == set()


# Columns of samples, arguments of functions that are not public, settings of the system.
OTHER_KEYS = {
    *("src_tier", "limited_by"),
    *("hot_potato", "largest_component", "keep_external", "shortest_routes", "plan_remaining"),
}


# They help ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """Example that provokes a message with a text in it, and the same as the message advises."""

    says: str
    bad: Callable[[], object]
    good: Callable[[], object]


START = "2026-11-22T20:00:00+01:00"


def read(host=None, link=None, **top):
    """Read a problem of S with 1 MB and a link to D; what is None is left out."""
    first = {"backlog_bytes": 1_000_000} | (host or {})
    between = {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e6} | (link or {})
    between = {key: value for key, value in between.items() if value is not None}
    tree = {"destination": "D", "hosts": {"S": first, "K": {}, "D": {}}, "links": [between]} | top
    return dc.Problem.from_dict(tree)


def priced(price=None):
    return dc.front(read(link={} if price is None else {"price_per_gb": price}), slack=[0.0])


def in_frame(**columns):
    links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": [5.0]})
    for name, values in columns.items():
        links[name] = values
    return links


def from_graph(graph):
    nx.set_edge_attributes(graph, 5.0, "bandwidth_bytes_per_s")
    first, last = list(graph)
    return dc.Problem.from_networkx(graph, last, backlog={first: 10})


def addressed(kind, own=(), relayed=(), size=1_000_000):
    manifest = {"S": Files(("a",), np.array([size]), ("",))}
    hosts = {"S": {"backlog_bytes": 1_000_000}, "K": {}, "D": {}}
    pairs = [("S", "K"), ("K", "D")]
    links = [{"from": a, "to": b, "bandwidth_bytes_per_s": 1e6} for a, b in pairs]
    problem = dc.Problem.from_dict({"destination": "D", "hosts": hosts, "links": links})
    found = read_templates(own, relayed, problem.names, is_url=kind == "curl")
    return export(problem, dc.coordinated(problem), manifest, kind, found)


BY_CONNECTIONS = {"per_connection_bytes_per_s": 1e6, "competitors": 1}
HOURS = "08:00 1 MB/s, 20:00 2 MB/s"
RELAYED = ["{host}:{source}/{path}"]
LINE = line(3, rate_bytes_per_s=1e6, delay_s=0.01)
BY_DAY = ["08:00", "20:00"]
FORECAST = {"bandwidth_bytes_per_s": [1e6, 2e6]}

P = """
destination = "D"
[hosts.D]
[hosts.K]
[hosts.S]
backlog_bytes = 1_000_000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 250_000
"""
FILES = "host,path,bytes\nS,a,1000000\n"
PLAN = "plan p.toml -o s.json --force"
URL = "--url https://{host}/{source}/{path} -o out --force"
SAMPLES = (
    "src_region,src_tier,dst_region,throughput_received\n"
    "x,PREMIUM,y,8000000\nx,STANDARD,y,4000000\n"
)


LINE_OF_S = f"S https://s.example:7443 sha256:{'ab' * 32}"


def in_folder(*lines, **files):
    """Return what runs commands in a folder with some files, and raises what the last is told."""

    def run_all():
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for name, content in files.items():
                Path(name.replace("_", ".")).write_text(content, encoding="utf-8")
            for line in lines:
                said.seek(0)
                said.truncate()
                with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                    code = run(shlex.split(line))
        if code:
            raise DatacollectError(" ".join(said.getvalue().split()))

    return run_all


IN_FOLDERS = [
    Example(
        "give --manifest FILE, a CSV",
        in_folder(PLAN, f"pulls p.toml s.json --as curl {URL}", p_toml=P),
        in_folder(
            PLAN, f"pulls p.toml s.json --as curl --manifest f.csv {URL}", p_toml=P, f_csv=FILES
        ),
    ),
    Example(
        'or name it in the problem: manifest = "FILE"',
        in_folder(PLAN, f"pulls p.toml s.json --as curl {URL}", p_toml=P),
        in_folder(
            PLAN,
            f"pulls p.toml s.json --as curl {URL}",
            p_toml=f'manifest = "f.csv"\n{P}',
            f_csv=FILES,
        ),
    ),
    Example(
        "--host is for scripts; --as csv is one for all hosts",
        in_folder(
            PLAN, "pulls p.toml s.json --as csv --manifest f.csv --host D", p_toml=P, f_csv=FILES
        ),
        in_folder(PLAN, "pulls p.toml s.json --as csv --manifest f.csv", p_toml=P, f_csv=FILES),
    ),
    Example(
        "--force overwrites, -o DIR avoids it",
        in_folder("example figure1", "example figure1"),
        in_folder("example figure1", "example figure1 --force"),
    ),
    Example(
        "--force overwrites, -o DIR avoids it",
        in_folder("example figure1", "example figure1"),
        in_folder("example figure1", "example figure1 -o other"),
    ),
    Example(
        "write it like src_tier=PREMIUM",
        in_folder("estimate s.csv --only PREMIUM", s_csv=SAMPLES),
        in_folder("estimate s.csv --only src_tier=PREMIUM", s_csv=SAMPLES),
    ),
    Example(
        "`datacollect keys new FILE` writes one",
        in_folder("keys show k.key", k_key="nothing"),
        in_folder("keys new other.key", "keys show other.key", k_key="nothing"),
    ),
    Example(
        "`datacollect sweep EXPERIMENT.toml -o",
        in_folder("report ."),
        in_folder(
            "sweep e.toml -o out --workers 0",
            "report out",
            e_toml='scenario = "s.toml"\nengine = "fluid"\nseeds = { least = 1, most = 1 }\n'
            '[[axes]]\nname = "rate"\nvalues = [\n'
            '{ label = "a", set = { "topology.rate_bytes_per_s" = 4e5 } } ]\n',
            s_toml='topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }\n'
            'hosts = { destination = { at = "N1" }, sources = [{ name = "S", at = "N0" }] }\n'
            "backlog = { least_bytes = 1_000_000, most_bytes = 9_000_000 }\n",
        ),
    ),
    Example(
        "no such file; `datacollect collection new` makes one",
        in_folder(f"collection add {LINE_OF_S}"),
        in_folder("collection new", f"collection add {LINE_OF_S}"),
    ),
    Example(
        "with another address or fingerprint; --force replaces both",
        in_folder(
            "collection new",
            f"collection add {LINE_OF_S}",
            f"collection add {LINE_OF_S.replace('s.example', 't.example')}",
        ),
        in_folder(
            "collection new",
            f"collection add {LINE_OF_S}",
            f"collection add {LINE_OF_S.replace('s.example', 't.example')} --force",
        ),
    ),
    Example(
        "copy what `datacollect agent init` prints",
        in_folder("collection new", "collection add S s.example:7443"),
        in_folder("collection new", f"collection add {LINE_OF_S}"),
    ),
]

EXAMPLES = [
    Example(
        "open needs start",
        lambda: read({"open": "20:00-06:00"}),
        lambda: read({"open": "20:00-06:00"}, start=START),
    ),
    Example(
        "open and periods_s exclude each other",
        lambda: read({"open": "20:00-06:00"}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read({"open": "20:00-06:00"}, FORECAST, start=START, daily_periods=BY_DAY),
    ),
    Example(
        "open and periods_s exclude each other",
        lambda: read({"open": "20:00-06:00"}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read(None, {"bandwidth_bytes_per_s": [0.0, 1e6]}, start=START, periods_s=[0, 60]),
    ),
    Example(
        "open and rates by connections exclude",
        lambda: read({"open": "20:00-06:00"}, BY_CONNECTIONS, start=START),
        lambda: read({"open": "20:00-06:00"}, start=START),
    ),
    Example(
        "open and rates by connections exclude",
        lambda: read({"open": "20:00-06:00"}, BY_CONNECTIONS, start=START),
        lambda: read(None, BY_CONNECTIONS, start=START),
    ),
    Example(
        "a clock time needs start",
        lambda: read({"release_s": "2026-11-22T21:00"}),
        lambda: read({"release_s": "2026-11-22T21:00"}, start=START),
    ),
    Example(
        "a clock time needs start",
        lambda: read({"release_s": "21:00"}),
        lambda: read({"release_s": 3600}),
    ),
    Example(
        "daily_periods needs start",
        lambda: read(None, FORECAST, daily_periods=BY_DAY),
        lambda: read(None, FORECAST, daily_periods=BY_DAY, start=START),
    ),
    Example(
        "hours of the day need start",
        lambda: read({"uplink_bytes_per_s": HOURS}),
        lambda: read({"uplink_bytes_per_s": HOURS}, start=START),
    ),
    Example(
        "hours of the day and periods_s exclude each other",
        lambda: read({"uplink_bytes_per_s": HOURS}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read({"uplink_bytes_per_s": HOURS}, FORECAST, start=START, daily_periods=BY_DAY),
    ),
    Example(
        "hours of the day and periods_s exclude each other",
        lambda: read({"uplink_bytes_per_s": HOURS}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read({"uplink_bytes_per_s": [1e6, 2e6]}, FORECAST, start=START, periods_s=[0, 60]),
    ),
    Example(
        "must have an offset from UTC, or timezone be given",
        lambda: read(start="2026-11-22T20:00:00"),
        lambda: read(start="2026-11-22T20:00:00+01:00"),
    ),
    Example(
        "must have an offset from UTC, or timezone be given",
        lambda: read(start="2026-11-22T20:00:00"),
        lambda: read(start="2026-11-22T20:00:00", timezone="Europe/Zurich"),
    ),
    Example(
        "say what limits it: capacity_bytes_per_s or competitors",
        lambda: read(link={"per_connection_bytes_per_s": 2e6}),
        lambda: read(link={"per_connection_bytes_per_s": 2e6, "competitors": 1}),
    ),
    Example(
        "raise storage_bytes or correct held",
        lambda: read(
            hosts={"S": {"backlog_bytes": 100}, "K": {"storage_bytes": 10}, "D": {}},
            held=[{"host": "K", "source": "S", "offset_bytes": 0, "bytes": 50}],
        ),
        lambda: read(
            hosts={"S": {"backlog_bytes": 100}, "K": {"storage_bytes": 50}, "D": {}},
            held=[{"host": "K", "source": "S", "offset_bytes": 0, "bytes": 50}],
        ),
    ),
    Example(
        "raise storage_bytes or correct held",
        lambda: read(
            hosts={"S": {"backlog_bytes": 100}, "K": {"storage_bytes": 10}, "D": {}},
            held=[{"host": "K", "source": "S", "offset_bytes": 0, "bytes": 50}],
        ),
        lambda: read(
            hosts={"S": {"backlog_bytes": 100}, "K": {"storage_bytes": 10}, "D": {}},
            held=[{"host": "K", "source": "S", "offset_bytes": 0, "bytes": 10}],
        ),
    ),
    Example(
        "list all its files, and set backlog_bytes to their sum",
        lambda: addressed("curl", ["https://{host}/{source}/{path}"], size=999),
        lambda: addressed("curl", ["https://{host}/{source}/{path}"]),
    ),
    Example(
        "relabel_nodes(graph, str) turns all names into text",
        lambda: from_graph(nx.DiGraph([(1, 2)])),
        lambda: from_graph(nx.relabel_nodes(nx.DiGraph([(1, 2)]), str)),
    ),
    Example(
        "graph.to_directed() makes two links of each edge",
        lambda: from_graph(nx.Graph([("1", "2")])),
        lambda: from_graph(nx.Graph([("1", "2")]).to_directed()),
    ),
    Example(
        "mark them with kind='peering', or route without hot_potato",
        lambda: shortest_routes(LINE, ["N1"], hot_potato=True),
        lambda: shortest_routes(LINE, ["N1"]),
    ),
    Example(
        "name it among the destinations of shortest_routes",
        lambda: shortest_routes(LINE, ["N1"]).path("N1", "N0"),
        lambda: shortest_routes(LINE, ["N0"]).path("N1", "N0"),
    ),
    *IN_FOLDERS,
    Example("give links a price_per_gb", priced, lambda: priced(0.1)),
    Example(
        "leave slot_s out, or the limit",
        lambda: dc.coordinated(read(), slot_s=1.0, most_transfers=1),
        lambda: dc.coordinated(read(), most_transfers=1),
    ),
    Example(
        "leave slot_s out, or the limit",
        lambda: dc.coordinated(read(), slot_s=1.0, most_transfers=1),
        lambda: dc.coordinated(read(), slot_s=1.0),
    ),
    Example(
        "write one rate, or in a problem file a list of one for each of its daily_periods",
        lambda: read(link={"bandwidth_bytes_per_s": HOURS}, start=START),
        lambda: read(link={"bandwidth_bytes_per_s": "1 MB/s"}, start=START),
    ),
    Example(
        "write one rate, or in a problem file a list of one for each of its daily_periods",
        lambda: read(link={"bandwidth_bytes_per_s": HOURS}, start=START),
        lambda: read(link=FORECAST, start=START, daily_periods=BY_DAY),
    ),
    Example(
        "periods_s lists the starts of",
        lambda: dc.Problem.from_dataframe(in_frame(period=[1]), {"S": 10}, "D", periods_s=[0.0]),
        lambda: dc.Problem.from_dataframe(in_frame(period=[0]), {"S": 10}, "D", periods_s=[0.0]),
    ),
    Example(
        "give --url 'S=TEMPLATE', such as",
        lambda: addressed("curl", ["K=https://k/{source}/{path}"]),
        lambda: addressed("curl", ["K=https://k/{source}/{path}", "S=https://s/{path}"]),
    ),
    Example(
        "give --relay-url 'K=TEMPLATE' with {source} in it",
        lambda: addressed("curl", ["https://{host}/{path}"]),
        lambda: addressed("curl", ["https://{host}/{path}"], ["K=https://k/{source}/{path}"]),
    ),
    Example(
        "give it another one: --url 'S=",
        lambda: addressed(
            "rclone", ["{host}:{path}", "S=zürich:{path}"], ["{host}:{source}/{path}"]
        ),
        lambda: addressed("rclone", ["{host}:{path}", "S=zrh:{path}"], ["{host}:{source}/{path}"]),
    ),
]


def commands_remedies() -> dict[str, Any]:
    """Return the table of the command line's tests, a module that lies in no package."""
    path = Path(__file__).parent / "commands" / "test_remedies.py"
    return runpy.run_path(str(path))["REMEDIES"]


def message_of(example: Example) -> str:
    with pytest.raises(DatacollectError) as refused:
        example.bad()
    return str(refused.value)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.says)
def test_carried_out_a_remedy_helps(example):
    assert example.says in message_of(example)
    example.good()


def messages_of_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what the examples of the command line are told, in one line each."""
    found = []
    for i, remedy in enumerate(commands_remedies().values()):
        place = folder / str(i)
        place.mkdir()
        with contextlib.chdir(place):
            for name, content in remedy.given.items():
                data = content if isinstance(content, bytes) else content.encode()
                Path(name).write_bytes(data)
            run(remedy.command)
        found.append(" ".join(capsys.readouterr().err.split()))
    return found


def test_every_remedy_has_an_example_or_is_known_to_have_none(tmp_path, capsys):
    """What is known to have none stands in a list, which a new example makes shorter."""
    messages = [message_of(each) for each in EXAMPLES]
    messages += messages_of_commands(tmp_path, capsys)
    untried = {
        _line(each)
        for each in templates()
        if each.is_remedy and not any(each.comes_to(message) for message in messages)
    }
    listed = set(UNTRIED.read_text(encoding="utf-8").splitlines())
    assert sorted(untried - listed) == [], "add an example to EXAMPLES, or to REMEDIES"
    assert sorted(listed - untried) == [], "these have one, or are gone: take them from the list"


def _line(template: Template) -> str:
    return " ".join(f"{template.module}: {template.text}".split())
