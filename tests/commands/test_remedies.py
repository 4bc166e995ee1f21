"""Advice is tried: remedies that messages give are carried out on what provoked them, and help."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field

import pytest

PROBLEM = """\
destination = "D"
[hosts.D]
[hosts.S]
backlog_bytes = 1_000_000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 250_000
"""
GRID = 'destination = "D"\nbandwidth_csv = "grid.csv"\n[hosts.D]\n[hosts.S]\nbacklog_bytes = 1\n'
SAMPLES = "from,to,time_s,bandwidth_mbit_per_s\na,b,0,8\n"


def result(seconds, **received):
    """Return what iperf3 -J prints of a test at 8 Mbit/s."""
    total = {"seconds": 1.0, "bytes": 10**6, "bits_per_second": 8e6} | received
    return json.dumps(
        {
            "start": {
                "connected": [{"local_host": "a", "remote_host": "b"}],
                "timestamp": {"timesecs": seconds},
                "test_start": {"num_streams": 1, "reverse": 0},
            },
            "end": {"sum_received": total},
        }
    )


FAILED = json.dumps({"start": {}, "end": {}, "error": "unable to connect"})
TIERS = (
    "src_region,src_tier,dst_region,throughput_received\n"
    "x,PREMIUM,y,8000000\nx,STANDARD,y,4000000\n"
)
SIMULATE = ("simulate", "s.toml", "--engine", "fluid", "--json")
SCENARIO = (
    'topology = { kind = "graphml", file = "map.gml", default_rate_bytes_per_s = 1e6 }\n'
    'hosts = { destination = { at = "A" }, sources = [{ at = "B", backlog_bytes = 1_000_000 }] }\n'
)
MAP = (
    'graph [ node [ id 0 label "A" ] node [ id 1 label "B" ]'
    " edge [ source 0 target 1 LinkSpeedRaw 8000000 ] ]\n"
)
CONTRADICTION = 'LinkSpeedRaw 8000000 LinkSpeed "1" LinkSpeedUnits "G"'
SWEEP = {
    "line.toml": (
        'topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }\n'
        'hosts = { destination = { at = "N1" }, sources = [{ name = "S", at = "N0" }] }\n'
        "backlog = { least_bytes = 1_000_000, most_bytes = 9_000_000 }\n"
    ),
    "e.toml": (
        'scenario = "line.toml"\nengine = "fluid"\nseeds = { least = 1, most = 1 }\n'
        '[[axes]]\nname = "rate=x"\nvalues = [\n'
        ' { label = "slow, a", set = { "topology.rate_bytes_per_s" = 4e5 } },\n'
        ' { label = "slow", set = { "topology.rate_bytes_per_s" = 5e5 } },\n'
        ' { label = "a", set = { "topology.rate_bytes_per_s" = 1e6 } },\n]\n'
    ),
}


@dataclass(frozen=True)
class Remedy:
    """An input that provokes a message; what it advises, carried out; what then comes out.

    `says` is a pattern of the message, with the advice. `files` are what the advice changes in
    them (old text, new text), `more` what it adds to the command; ``{1}`` is what the pattern's
    first group found in the message.
    """

    command: tuple[str, ...]
    given: dict[str, str | bytes]
    says: str
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    gives: str = ""


PLAN = ("plan", "p.toml", "--json")
ESTIMATE = ("estimate", "s.txt")
RATE = r"a,b,1000000\.0"

PROFILE = """\
format = "datacollect-host-profile/1"
measured_at = 2200-01-01T00:00:00Z
name = "D"
processors = 2
[[costs]]
work = "tcp"
end = "receives"
over = "veth"
s_per_gib = 0.5
low_s_per_gib = 0.5
high_s_per_gib = 0.5
[[costs]]
work = "tcp"
end = "sends"
over = "veth"
s_per_gib = 0.5
low_s_per_gib = 0.5
high_s_per_gib = 0.5
"""
PREDICT = ("host", "predict", "h.toml", "--json")

REMEDIES = {
    "a rate without its unit": Remedy(
        (*PREDICT, "--nic", "10"),
        {"h.toml": PROFILE},
        r'give the unit, such as "(10 Gbit/s)"',
        instead=(*PREDICT, "--nic", "{1}"),
        gives=r'"binds": "NIC"',
    ),
    "a comma that may group digits, meant so": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("1_000_000", '"1,500 TB"')},
        r'write "(1500 TB)" or "1\.500 TB"',
        files={"p.toml": ("1,500 TB", "{1}")},
        gives=r'"makespan_s": 6000000000\.0',
    ),
    "a comma that may group digits, meant as a point": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("1_000_000", '"1,500 TB"')},
        r'write "1500 TB" or "(1\.500 TB)"',
        files={"p.toml": ("1,500 TB", "{1}")},
        gives=r'"makespan_s": 6000000\.0',
    ),
    "a decimal comma": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("1_000_000", '"2,5 MB"')},
        r'write a point, no comma: "(2\.5 MB)"',
        files={"p.toml": ("2,5 MB", "{1}")},
        gives=r'"makespan_s": 10\.0',
    ),
    "groups of digits": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("1_000_000", '"2,500,000 B"')},
        r'write no commas: "(2500000 B)"',
        files={"p.toml": ("2,500,000 B", "{1}")},
        gives=r'"makespan_s": 10\.0',
    ),
    "a name with dots": Remedy(
        PLAN,
        {
            "p.toml": PROBLEM.replace("[hosts.S]", "[hosts.s.example.org]").replace(
                '"S"', '"s.example.org"'
            )
        },
        r"begins another table; write (\[hosts\..*\])",
        files={"p.toml": ("[hosts.s.example.org]", "{1}")},
        gives=r'"makespan_s": 4\.0',
    ),
    "an address": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("[hosts.S]", "[hosts.10.0.0.1]").replace('"S"', '"10.0.0.1"')},
        r"begins another table; write (\[hosts\..*\])",
        files={"p.toml": ("[hosts.10.0.0.1]", "{1}")},
        gives=r'"makespan_s": 4\.0',
    ),
    "a region": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("[hosts.S]", "[hosts.aws:x-1]").replace('"S"', '"aws:x-1"')},
        r"stands in quotes: (\[hosts\..*\])",
        files={"p.toml": ("[hosts.aws:x-1]", "{1}")},
        gives=r'"makespan_s": 4\.0',
    ),
    "a comma in a CSV of bandwidths": Remedy(
        PLAN,
        {"p.toml": GRID, "grid.csv": "from;to;bandwidth_mbit_per_s\nS;D;0,000008\n"},
        r"got '0,000008'; write (\S+)",
        files={"grid.csv": ("0,000008", "{1}")},
        gives=r'"makespan_s": 1\.0',
    ),
    "two separators in a header": Remedy(
        PLAN,
        {"p.toml": GRID, "grid.csv": "from,to,bandwidth_bytes_per_s;\nS,D,1\n"},
        r"a line before it, such as (sep=,)",
        files={
            "grid.csv": ("from,to,bandwidth_bytes_per_s;", "{1}\nfrom,to,bandwidth_bytes_per_s")
        },
        gives=r'"makespan_s": 1\.0',
    ),
    "a column without a name": Remedy(
        ESTIMATE,
        {"s.txt": ",from,to,time_s,bandwidth_mbit_per_s\nx,a,b,0,8\n"},
        r"column 1 has no name, .*; name it in the header, or remove it",
        files={
            "s.txt": (
                ",from,to,time_s,bandwidth_mbit_per_s\nx,",
                "from,to,time_s,bandwidth_mbit_per_s\n",
            )
        },
        gives=RATE,
    ),
    "no times": Remedy(
        ESTIMATE,
        {"s.txt": "from,to,bandwidth_mbit_per_s\na,b,8\n"},
        r"as equally old, in the order of the lines, with (--no-times)",
        more=("{1}",),
        gives=RATE,
    ),
    "seconds as a date": Remedy(
        ESTIMATE,
        {"s.txt": SAMPLES.replace("time_s", "time").replace(",0,", ",1200,")},
        r"or seconds in a column called (time_s)",
        files={"s.txt": ("time,", "{1},")},
        gives=RATE,
    ),
    "failed tests among good ones": Remedy(
        ("estimate", "s.txt", "--json"),
        {"s.txt": "\n".join([result(1), FAILED, result(2)])},
        r"skip what failed with (--skip-failed), which leaves 2 good ones",
        more=("{1}",),
        gives=r'"n_samples": 2',
    ),
    "rows without a value": Remedy(
        ESTIMATE,
        {"s.txt": SAMPLES + "a,b,9,None\n"},
        r"skip what failed with (--skip-failed), which leaves 1 good one",
        more=("{1}",),
        gives=RATE,
    ),
    "a value that no row has": Remedy(
        (*ESTIMATE, "--only", "src_tier=premium"),
        {"s.txt": TIERS},
        r"no row has 'premium' in column src_tier; there are (PREMIUM), STANDARD",
        instead=(*ESTIMATE, "--only", "src_tier={1}"),
        gives=r"x,y,1000000\.0",
    ),
    "a file that is there": Remedy(
        ("plan", "p.toml", "-o", "s.json", "--json"),
        {"p.toml": PROBLEM, "s.json": "{}"},
        r"s\.json: exists already; (--force) overwrites it",
        more=("{1}",),
        gives=r'"makespan_s": 4\.0',
    ),
    "a label with a comma among others": Remedy(
        ("sweep", "e.toml", "-o", "out", "--workers", "0", "--only", "rate=x=slow, a"),
        SWEEP,
        r"may be one label or 2; write (rate=x=\"slow, a\") or",
        instead=("sweep", "e.toml", "-o", "out", "--workers", "0", "--only", "{1}"),
        gives=r"1 of 1 finished",
    ),
    "an axis that is not there": Remedy(
        ("sweep", "e.toml", "-o", "out", "--workers", "0", "--only", "rate=a"),
        SWEEP,
        r"did you mean '(.*)'\?",
        instead=("sweep", "e.toml", "-o", "out", "--workers", "0", "--only", "{1}=a"),
        gives=r"1 of 1 finished",
    ),
    "a host that only the CSV knows": Remedy(
        PLAN,
        {
            "p.toml": GRID,
            "grid.csv": "from,to,bandwidth_bytes_per_s\nS,D,1\nberlin.example,D,1\n",
        },
        r"add (\[hosts\..*\]) to the problem file",
        files={"p.toml": ("[hosts.D]", "[hosts.D]\n{1}")},
        gives=r'"makespan_s": 1\.0',
    ),
    "a destination that is not declared": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("[hosts.D]", "").replace('"D"', '"c d"')},
        r"declare it: (\[hosts\..*\])",
        files={"p.toml": ("[hosts.S]", "{1}\n[hosts.S]")},
        gives=r'"makespan_s": 4\.0',
    ),
    "a unit that may be bits or bytes": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("250_000", '"2 Mb/s"')},
        r"may be bits or bytes; write (Mbit/s) or MB/s",
        files={"p.toml": ("Mb/s", "{1}")},
        gives=r'"makespan_s": 4\.0',
    ),
    "a number in quotes": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("1_000_000", '"1000000"')},
        r"leave out the quotes, or give the unit",
        files={"p.toml": ('"1000000"', "1000000")},
        gives=r'"makespan_s": 4\.0',
    ),
    "one bracket for two": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("[[links]]", "[links]")},
        r"write (\[\[links\]\]), with two brackets",
        files={"p.toml": ("[links]", "{1}")},
        gives=r'"makespan_s": 4\.0',
    ),
    "a unit in the name of a key": Remedy(
        PLAN,
        {"p.toml": PROBLEM.replace("backlog_bytes = 1_000_000", "backlog_mbytes = 1")},
        r"the nearest, '(backlog_bytes)', .*: convert, or write the number with its unit",
        files={"p.toml": ("backlog_mbytes = 1", '{1} = "1 MB"')},
        gives=r'"makespan_s": 4\.0',
    ),
    "speeds that contradict each other": Remedy(
        SIMULATE,
        {"s.toml": SCENARIO, "map.gml": MAP.replace("LinkSpeedRaw 8000000", CONTRADICTION)},
        r"LinkSpeedRaw says 8 Mbit/s, but .*; correct one, or remove it",
        files={"map.gml": (CONTRADICTION, "LinkSpeedRaw 8000000")},
        gives=r'"complete": true',
    ),
    "a node of two parts": Remedy(
        SIMULATE,
        {"s.toml": SCENARIO, "map.gml": MAP.replace("node [", 'node [ id 7 label "E" ] node [', 1)},
        r"is not connected, .*; (largest_component)=True keeps the largest part",
        files={"s.toml": ("kind =", "{1} = true, kind =")},
        gives=r'"complete": true',
    ),
    "bytes that are no UTF-8": Remedy(
        ESTIMATE,
        {"s.txt": SAMPLES.replace("a,b", "ä,b").encode("latin-1")},
        r"must be UTF-8 text, got byte 0xe4; save it as UTF-8",
        files={"s.txt": ("", "")},
        gives=r"ä,b,1000000\.0",
    ),
    "half a packed file": Remedy(
        ESTIMATE,
        {"s.txt": gzip.compress(result(1).encode(), mtime=0)[:-9]},
        r"a packed file that is cut off or damaged .*; pack it again",
        files={"s.txt": ("", "")},
        gives=RATE,
    ),
}

# What only the writer of the file can do again.
ANEW = {
    "bytes that are no UTF-8": SAMPLES.replace("a,b", "ä,b").encode(),
    "half a packed file": gzip.compress(result(1).encode(), mtime=0),
}


def put(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("name", REMEDIES)
def test_the_remedy_that_a_message_gives_helps(name, here, call):
    remedy = REMEDIES[name]
    for file, content in remedy.given.items():
        put(here / file, content)
    code, _, err = call(*remedy.command)
    assert code == 2, err
    found = re.search(remedy.says, err)
    assert found, err
    (first,) = found.groups() or ("",)
    for file, (old, new) in remedy.files.items():
        if name in ANEW:
            put(here / file, ANEW[name])
            continue
        text = (here / file).read_text()
        assert text.count(old) == 1
        put(here / file, text.replace(old, new.replace("{1}", first)))
    command = remedy.instead or (*remedy.command, *remedy.more)
    code, out, err = call(*(word.replace("{1}", first) for word in command))
    assert code == 0, err
    assert re.search(remedy.gives, out), out


@pytest.mark.parametrize("name", ["from", "bandwidth_mbit_per_s", "method"])
def test_what_was_written_is_never_proposed_again(name):
    from datacollect.errors import nearest_hint

    assert nearest_hint(name, [name]) == ""
    assert nearest_hint(name, [name, f"{name}x"]) == f"; did you mean '{name}x'?"
