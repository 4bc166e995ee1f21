"""Malformed input ends with exit code 2 and one message: file, place, rule, value, remedy."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import re
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import datacollect as dc
from datacollect.cli import run
from datacollect.files import problem_from_tree, schedule_from_tree

GOOD = """\
destination = "D"
[hosts.S1]
backlog_bytes = 10
[hosts.D]
[[links]]
from = "S1"
to = "D"
bandwidth_bytes_per_s = 5.0
"""
LINK = '[[links]]\nfrom = "S1"\nto = "D"\nbandwidth_bytes_per_s = 7.0\n'


def message_of(arguments, capsys):
    """Run a command that is to fail; return its message, which is all that it writes."""
    assert run([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1, err
    assert err.rstrip("\n").isprintable()
    assert len(err) < 600, err
    assert "Traceback" not in err
    assert "internal" not in err
    return err.removeprefix("error: ").rstrip("\n")


def complain(folder, capsys, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    message = message_of(["plan", path], capsys)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).removeprefix(": ")


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


def test_the_good_file_is_good(tmp_path, capsys):
    # Otherwise each test below might pass for another reason than its own.
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    assert run(["plan", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan_s"] == 2.0


BYTES = "hosts.S1.backlog_bytes must be a whole number of bytes >= 0"
RATE = "must be a finite number of bytes per second >= 0"
TOML = {
    # Numbers.
    "negative": (changed("= 10", "= -5"), f"{BYTES}, got -5; leave it out for 0"),
    "not a number": (changed("= 10", "= nan"), f"{BYTES}, got nan"),
    "infinite": (changed("= 10", "= inf"), f"{BYTES}, got inf"),
    "text for a number": (changed("= 10", '= "10"'), f"{BYTES}, got '10'; leave out the quotes"),
    "units in text": (changed("= 10", '= "5 GB"'), f"{BYTES}, got '5 GB'; write a number"),
    "true for a number": (changed("= 10", "= true"), f"{BYTES}, got true; write a number"),
    "date for a number": (changed("= 10", "= 2024-05-01"), f"{BYTES}, got 2024-05-01"),
    "list for a number": (changed("= 10", "= [1, 2]"), f"{BYTES}, got [1, 2]"),
    "table for a number": (changed("= 10", "= {a = 1}"), f"{BYTES}, got a table"),
    "half a byte": (changed("= 10", "= 50.5"), f"{BYTES}, got 50.5; round it"),
    "too many bytes": (changed("= 10", f"= {10**30}"), f"below 2**62, got {10**30}; plan in parts"),
    "too many bytes together": (
        changed("= 10", f"= {2**61}") + f"[hosts.S2]\nbacklog_bytes = {2**61}\n",
        f"all backlogs together must be below 2**62 bytes, got {2**62}",
    ),
    "a float too large": (
        changed("5.0", "1e400"),
        f"links[0].bandwidth_bytes_per_s {RATE}, got inf; use 0 for no capacity",
    ),
    "a whole number too large for a float": (
        changed("backlog_bytes = 10", f"storage_bytes = {10**400}"),
        "hosts.S1.storage_bytes must be a whole number of bytes >= 0, got about 401 digits",
    ),
    "thousands of digits": (changed("= 10", f"= {'9' * 5000}"), "thousands of digits"),
    "unlimited in numbers": (
        changed("backlog_bytes = 10", "uplink_bytes_per_s = inf"),
        f"hosts.S1.uplink_bytes_per_s {RATE}, got inf; leave it out for unlimited",
    ),
    "negative release": (
        changed("backlog_bytes = 10", "release_s = -0.5"),
        "hosts.S1.release_s must be a finite number of seconds >= 0, got -0.5",
    ),
    "negative price": (
        GOOD + "price_per_gb = -1\n",
        "links[0].price_per_gb must be a finite number of currency per 10^9 bytes >= 0, got -1",
    ),
    # Names.
    "number for a name": (changed('"D"', "5"), "destination must be text, got 5; put it in quotes"),
    "empty name": (changed("[hosts.D]", '[hosts.""]'), "a name in hosts must not be empty"),
    "unknown destination": (
        changed('destination = "D"', 'destination = "E"'),
        "destination must be one of the hosts, got 'E'; declare it: [hosts.E]",
    ),
    "unknown host": (
        changed('to = "D"', 'to = "D1"'),
        "links[0].to must be one of the hosts, got 'D1'; did you mean 'D'?",
    ),
    "unknown host that steers terminals": (
        changed('to = "D"', 'to = "\\u001b[31m"'),
        r"links[0].to must be one of the hosts, got '\x1b[31m'",
    ),
    "unknown host with a name without end": (
        changed('to = "D"', f'to = "{"x" * 100_000}"'),
        f"links[0].to must be one of the hosts, got '{'x' * 59}…'",
    ),
    "duplicate host": (
        GOOD + "[hosts.S1]\n",
        ", line 9, column 10: not valid TOML: Cannot declare ('hosts', 'S1') twice",
    ),
    # Links.
    "self link": (
        changed('to = "D"', 'to = "S1"'),
        "links[0] must join two different hosts, got 'S1' twice; remove it",
    ),
    "duplicate link": (
        GOOD + LINK,
        "links[1]: link 'S1' -> 'D' given twice, also in links[0]; keep one",
    ),
    "link without an end": (
        changed('to = "D"\n', ""),
        "links[0]: key to is missing; add it to the link",
    ),
    "table for a list": (
        changed("[[links]]", "[links]"),
        "links must be a list of tables, got a table; write [[links]]",
    ),
    # Keys.
    "no destination": (
        changed('destination = "D"\n', ""),
        "key destination is missing; add it to the problem",
    ),
    "no hosts": ('destination = "D"\n', "key hosts is missing"),
    "nothing needed": ("periods_s = [0]\n", "keys destination, hosts are missing; add them"),
    "unknown key of a host": (
        changed("backlog_bytes", "backlog_byte"),
        "hosts.S1.backlog_byte: unknown key; did you mean 'backlog_bytes'?",
    ),
    "unknown key of a host with a name to quote": (
        GOOD + '[hosts."New York"]\nbacklog = 1\n',
        "hosts.\"New York\".backlog: unknown key; did you mean 'backlog_bytes'?",
    ),
    "unknown key of a link": (
        changed("bandwidth_bytes_per_s", "bandwidth_mbit_per_s"),
        "links[0].bandwidth_mbit_per_s: unknown key; did you mean 'bandwidth_bytes_per_s'?",
    ),
    "unknown key at the top": (
        'dest = "D"\n' + GOOD,
        "dest: unknown key; known keys are $schema, format, destination, bandwidth_csv",
    ),
    "unknown key of a shared bottleneck": (
        GOOD + '[[shared]]\nnames = "x"\n',
        "shared[0].names: unknown key; did you mean 'name'?",
    ),
    "unknown key of held data": (
        GOOD + '[[held]]\noffset = 1\n',
        "held[0].offset: unknown key; did you mean 'offset_bytes'?",
    ),
    "unknown format": (
        'format = "datacollect-problem/2"\n' + GOOD,
        "format must be \"datacollect-problem/1\", got 'datacollect-problem/2'",
    ),
    "a schedule for a problem": (
        'format = "datacollect-schedule/1"\nmethod = "direct"\n',
        "this is a schedule; name the problem file first",
    ),
    # Forecasts.
    "forecast without periods": (
        changed("5.0", "[5.0, 6.0]"),
        "links[0].bandwidth_bytes_per_s must be one number, as there is no periods_s, got 2",
    ),
    "forecast of wrong length": (
        "periods_s = [0, 5, 9]\n" + changed("5.0", "[5.0, 6.0]"),
        "must be a number or one number per period of periods_s (3), got 2 numbers",
    ),
    "forecast with a bad number": (
        "periods_s = [0, 5]\n" + changed("5.0", "[5.0, -6.0]"),
        f"links[0].bandwidth_bytes_per_s[1] {RATE}, got -6.0",
    ),
    "periods that stand still": (
        "periods_s = [0, 5, 5]\n" + GOOD,
        "periods_s[2] must be > 5.0, the start before it, got 5.0",
    ),
    "periods that begin late": (
        "periods_s = [1, 5]\n" + GOOD,
        "periods_s must begin with 0, got [1.0, 5.0]",
    ),
    "no periods": ("periods_s = []\n" + GOOD, "periods_s must begin with 0, got []"),
    "one number for periods": ("periods_s = 0\n" + GOOD, "periods_s must be a list, got 0"),
    # Shared bottlenecks and held data.
    "shared without links": (
        GOOD + '[[shared]]\nname = "x"\nbandwidth_bytes_per_s = 1\nlinks = []\n',
        'shared[0].links must be a list of pairs ["from", "to"], at least one, got []',
    ),
    "half a pair": (
        GOOD + '[[shared]]\nname = "x"\nbandwidth_bytes_per_s = 1\nlinks = [["S1"]]\n',
        'shared[0].links[0] must be a pair ["from", "to"], got [\'S1\']',
    ),
    "shared link of nobody": (
        GOOD + '[[shared]]\nname = "x"\nbandwidth_bytes_per_s = 1\nlinks = [["S1", "E"]]\n',
        "shared[0].links[0] must be one of the hosts, got 'E'",
    ),
    "shared link that is none": (
        GOOD + '[[shared]]\nname = "x"\nbandwidth_bytes_per_s = 1\nlinks = [["D", "S1"]]\n',
        "shared bottleneck 'x': there is no link 'D' -> 'S1'; add it to links",
    ),
    "two shared of one name": (
        GOOD + 2 * '[[shared]]\nname = "x"\nbandwidth_bytes_per_s = 1\nlinks = [["S1", "D"]]\n',
        "shared[1].name must be unique, got 'x', also the name of shared[0]",
    ),
    "held by nobody": (
        GOOD + '[[held]]\nhost = "K"\nsource = "S1"\noffset_bytes = 0\nbytes = 1\n',
        "held[0].host must be one of the hosts, got 'K'",
    ),
    "held beyond the backlog": (
        GOOD + '[[held]]\nhost = "D"\nsource = "S1"\noffset_bytes = 5\nbytes = 10\n',
        "the range must lie within the backlog of 10 bytes, got offset_bytes = 5, bytes = 10",
    ),
    # TOML itself.
    "unit without quotes": (
        changed("= 10", "= 5 GB"),
        ", line 3, column 19: not valid TOML: Expected newline or end of document after a "
        "statement, got 'backlog_bytes = 5 GB'",
    ),
    "unfinished": (GOOD + "[[", "not valid TOML"),
    "key twice": (GOOD + "to = 'S1'\n", ", line 9, column 10: not valid TOML: Cannot overwrite"),
    "nested deeply": ("a = " + 50_000 * "[", "nested too deeply"),
    "NUL character": (GOOD + "\0", ", line 9: must be text, got a NUL character"),
    "empty": ("", "the file is empty"),
    "blank": (" \n\t\n", "the file is empty"),
    "UTF-16": (GOOD.encode("utf-16"), "must be UTF-8 text, got UTF-16; save it as UTF-8"),
    "UTF-16 without mark": (GOOD.encode("utf-16-le"), ", line 1: must be text, got a NUL"),
    "Latin-1": (
        (GOOD + "# Genève").encode("latin-1"),
        ", line 9: must be UTF-8 text, got byte 0xe8; save it as UTF-8",
    ),
    "noise": (random.Random(1).randbytes(10_000_000), "must be UTF-8 text"),
}


@pytest.mark.parametrize("case", TOML)
def test_bad_toml(case, tmp_path, capsys):
    text, expected = TOML[case]
    assert expected in complain(tmp_path, capsys, "collect.toml", text)


JSON = {
    "list at the top": ("[1]", "the top level must be a table of keys and values, got [1]"),
    "text at the top": ('"x"', "the top level must be a table of keys and values, got 'x'"),
    "NaN": (
        '{"destination": "D", "hosts": {"D": {"release_s": NaN}}}',
        "hosts.D.release_s must be a finite number of seconds >= 0, got nan",
    ),
    "null": (
        '{"destination": "D", "hosts": {"D": {"release_s": null}}}',
        "hosts.D.release_s must be a finite number of seconds >= 0, got null",
    ),
    "list for hosts": (
        '{"destination": "D", "hosts": ["D"]}',
        "hosts must hold a table for each name, got ['D']; write [hosts.NAME]",
    ),
    "text for a host": (
        '{"destination": "D", "hosts": {"D": "D"}}',
        "hosts.D must be a table of keys and values, got 'D'",
    ),
    "key twice": (
        '{"destination": "D", "hosts": {"D": {}, "S": {}, "D": {}}}',
        "key 'D' given twice in one object, beside S; keep one",
    ),
    "unfinished": (
        '{"destination": "D",\n "hosts": {"D": {}',
        ", line 2, column 19: not valid JSON: Expecting ',' delimiter, got '\"hosts\": {\"D\": {}'",
    ),
    "half a surrogate pair": (
        '{"destination": "D", "hosts": {"D": {}, "\\ud800": {}}}',
        r"a name in hosts must be Unicode text, got '\ud800'",
    ),
    "nested deeply": (100_000 * "[", "nested too deeply"),
    "thousands of digits": ('{"destination": ' + 5000 * "9" + "}", "thousands of digits"),
    "a key without end": (
        '{"destination": "D", "hosts": {"D": {}}, "' + 100_000 * "x" + '": 1}',
        f"{'x' * 59}…: unknown key",
    ),
}


@pytest.mark.parametrize("case", JSON)
def test_bad_json(case, tmp_path, capsys):
    text, expected = JSON[case]
    assert expected in complain(tmp_path, capsys, "collect.json", text)


HEAD = "from,to,bandwidth_mbit_per_s\n"
PERIODS = "from,to,period,bandwidth_mbit_per_s\n"
NUMBER = "bandwidth_mbit_per_s must be a finite number >= 0"
CSV = {
    "empty": ("", "line 1: must be a header, got an empty line"),
    "other columns": ("src,dst,bw\n", "line 1: unknown column 'src'; known columns are from, to"),
    "nearly a column": ("from, to\n", "line 1: unknown column ' to'; did you mean 'to'?"),
    "semicolons": ("from;to\n", "line 1: unknown column 'from;to'; separate the columns by commas"),
    "column twice": ("from,to,to\n", "line 1: column to given twice; keep one"),
    "no column to": ("from,period\n", "line 1: column to is missing; add it"),
    "no bandwidth": ("from,to\nS1,D\n", "line 1: must have exactly one of the columns"),
    "two bandwidths": (
        "from,to,bandwidth_bit_per_s,bandwidth_mbit_per_s\n",
        "line 1: must have exactly one of the columns bandwidth_bytes_per_s, bandwidth_bit_per_s, "
        "bandwidth_mbit_per_s, got bandwidth_bit_per_s and bandwidth_mbit_per_s; keep one",
    ),
    "host only here": (
        HEAD + "S1,D,5\nS1,X,5\n",
        "line 3: to must be a host of the problem, got 'X'; add [hosts.X] to the problem file",
    ),
    "no host": (HEAD + ",D,5\n", "line 2: from must be a host's name, got nothing"),
    "self link": (HEAD + "D,D,5\n", "line 2: a link must join two different hosts, got 'D' twice"),
    "duplicate": (
        HEAD + "S1,D,5\nD,S1,5\n\nS1,D,7\n",
        "line 5: link 'S1' -> 'D' given twice, also in",
    ),
    "negative": (HEAD + "S1,D,-5\n", f"line 2: {NUMBER}, got '-5'; use 0 for no capacity"),
    "nan": (HEAD + "S1,D,nan\n", f"line 2: {NUMBER}, got 'nan'"),
    "too large": (HEAD + "S1,D,1e400\n", f"line 2: {NUMBER}, got '1e400'"),
    "too large in bytes": (HEAD + "S1,D,1e305\n", f"line 2: {NUMBER}, got '1e305'"),
    "text": (HEAD + "S1,D,fast\n", f"line 2: {NUMBER}, got 'fast'"),
    "nothing": (HEAD + "S1,D,\n", f"line 2: {NUMBER}, got ''"),
    "negative price": (
        "from,to,bandwidth_bit_per_s,price_per_gb\nS1,D,5,-1\n",
        "line 2: price_per_gb must be a finite number >= 0, got '-1'",
    ),
    "too few fields": (HEAD + "S1,D\n", "line 2: must have 3 fields like the header, got 2"),
    "too many fields": (HEAD + "New York, NY,D,5\n", "line 2: must have 3 fields like the header"),
    "line after a name of two lines": (
        HEAD + '"S\n1",D,5\n',
        r"line 2: from must be a host of the problem, got 'S\n1'",
    ),
    "quote without end": (HEAD + '"S1,D,5\n', "line 2: must have 3 fields like the header, got 1"),
    "NUL": (HEAD + "S1,D,\0005\n", "line 2: must be text, got a NUL character"),
    "UTF-16": (HEAD.encode("utf-16"), "must be UTF-8 text, got UTF-16"),
    "Latin-1": ((HEAD + "Genève,D,5\n").encode("latin-1"), "line 2: must be UTF-8 text, got byte"),
    "periods without starts": (
        PERIODS + "S1,D,0,5\n",
        "line 1: column period needs periods_s in the problem file",
    ),
}
FORECAST_CSV = {
    "twice": (
        "S1,D,0,5\nS1,D,1,5\nS1,D,1,5\n",
        "line 4: the link is given twice for period 1, also in",
    ),
    "missing": ("S1,D,1,5\n", "line 2: the link lacks a row for period 0; periods 0 to 1 need one"),
    "out of range": (
        "S1,D,0,5\nS1,D,2,5\n",
        "line 3: period must be a whole number from 0 to 1, got 2",
    ),
    "half": ("S1,D,0.5,5\n", "line 2: period must be a whole number from 0 to 1, got 0.5"),
    "negative": ("S1,D,-1,5\n", "line 2: period must be a finite number >= 0, got '-1'"),
}


@pytest.fixture(params=["row by row", "through Arrow"])
def complain_csv(request, tmp_path, capsys, monkeypatch):
    """Both ways to read a CSV end in the same message."""
    if request.param == "through Arrow":
        monkeypatch.setattr("datacollect.link_table.LARGE_BYTES", 0)

    def complain_csv(csv, head="", tail=""):
        (tmp_path / "grid.csv").write_bytes(csv if isinstance(csv, bytes) else csv.encode())
        text = f'{head}\ndestination = "D"\nbandwidth_csv = "grid.csv"\n[hosts.S1]\n[hosts.D]\n'
        message = complain(tmp_path, capsys, "collect.toml", text + tail)
        assert "grid.csv" in message
        return message

    return complain_csv


@pytest.mark.parametrize("case", CSV)
def test_bad_csv(case, complain_csv):
    csv, expected = CSV[case]
    assert expected in complain_csv(csv)


@pytest.mark.parametrize("case", FORECAST_CSV)
def test_bad_csv_with_periods(case, complain_csv):
    rows, expected = FORECAST_CSV[case]
    assert expected in complain_csv(PERIODS + rows, head="periods_s = [0, 60]")


def test_price_that_changes_between_periods(complain_csv):
    csv = "from,to,period,bandwidth_bit_per_s,price_per_gb\nS1,D,0,5,1\nS1,D,1,5,2\n"
    message = complain_csv(csv, head="periods_s = [0, 60]")
    assert "line 3: price_per_gb must be the same in all periods of a link, got 2" in message


def test_link_in_csv_and_in_links_names_both_places(complain_csv):
    message = complain_csv(HEAD + "D,S1,1\nS1,D,1\n", tail=LINK)
    assert re.search(r"grid\.csv, line 3: link 'S1' -> 'D' given twice, also in links\[0\]", message)


NOISE = {
    "bytes": random.Random(2).randbytes(10_000_000),
    "letters": random.Random(3).randbytes(7_500_000).translate(bytes(33 + i % 90 for i in range(256))),
    "letters below a header": HEAD.encode()
    + random.Random(4).randbytes(10_000_000).translate(bytes(32 + i % 90 for i in range(256))),
    "lines below a header": HEAD.encode()
    + random.Random(5).randbytes(10_000_000).translate(bytes(b'a1,"\n;' * 43)[:256]),
}


@pytest.mark.parametrize("case", NOISE)
def test_ten_megabytes_of_noise_fail_fast(case, complain_csv):
    began = time.perf_counter()
    complain_csv(NOISE[case])
    # Takes 0.1 s; the limit is for busy machines.
    assert time.perf_counter() - began < 3


# Files that are none ------------------------------------------------------------------------


def test_missing_file_suggests_its_neighbour(tmp_path, capsys):
    (tmp_path / "collect.toml").write_text(GOOD)
    message = message_of(["plan", tmp_path / "colect.toml"], capsys)
    assert "colect.toml: no such file; did you mean 'collect.toml'?" in message


def test_folder_for_a_file(tmp_path, capsys):
    assert "is a folder; name a file in it" in message_of(["plan", tmp_path], capsys)


@pytest.mark.skipif(os.name == "nt", reason="permissions differ")
def test_no_permission(tmp_path, capsys, monkeypatch):
    path = tmp_path / "collect.toml"
    path.write_text(GOOD)

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    # Not by chmod: whoever runs tests as root may read everything.
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert "cannot be read: Permission denied" in message_of(["plan", path], capsys)


def test_names_that_no_file_can_have(capsys):
    assert "no file can have a name with a NUL" in message_of(["plan", "a\0b"], capsys)
    assert "File name too long" in message_of(["plan", "x" * 5000], capsys)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ('"missing.csv"', "missing.csv: no such file"),
        ('"."', "is a folder"),
        ('"-"', "bandwidth_csv must name a file, got '-'"),
        ("5", "bandwidth_csv must be text, got 5"),
        ('"\\u0000"', "no file can have a name with a NUL"),
    ],
)
def test_csv_that_is_none(name, expected, tmp_path, capsys):
    text = f"bandwidth_csv = {name}\n{GOOD}"
    assert expected in complain(tmp_path, capsys, "collect.toml", text)


def test_empty_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    message = message_of(["plan", "-"], capsys)
    assert message.startswith("standard input: no input; pipe a file into it")


def test_bad_standard_input_is_named(capsys, monkeypatch):
    text = changed("= 10", "= -5").encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert message_of(["plan", "-"], capsys).startswith("standard input: hosts.S1.backlog_bytes")


# Schedules ----------------------------------------------------------------------------------

SCHEDULE = {
    "format": "datacollect-schedule/1",
    "method": "direct",
    "destination": "D",
    "makespan_s": 2.0,
    "lower_bound_s": 2.0,
    "slot_s": None,
    "chunk_s": None,
    "solver": "none",
    "problem_sha256": "…",
    "transfers": [
        {
            "source": "S1",
            "route": ["S1", "D"],
            "hop": 0,
            "offset_bytes": 0,
            "bytes": 10,
            "start_s": 0.0,
            "finish_s": 2.0,
        }
    ],
}


def altered(place, value):
    tree = copy.deepcopy(SCHEDULE)
    *path, last = place
    inner = tree
    for key in path:
        inner = inner[key]
    inner[last] = value
    return tree


def without(*keys):
    return {key: value for key, value in SCHEDULE.items() if key not in keys}


ROW = ("transfers", 0)
SCHEDULES = {
    "missing keys": (without("solver", "slot_s"), "keys slot_s, solver are missing"),
    "unknown key": (altered(["makespan"], 1), "makespan: unknown key; did you mean 'makespan_s'?"),
    "unknown key of a transfer": (
        altered([*ROW, "offset"], 1),
        "transfers[0].offset: unknown key; did you mean 'offset_bytes'?",
    ),
    "other format": (altered(["format"], "x"), 'format must be "datacollect-schedule/1", got \'x\''),
    "negative bytes": (altered([*ROW, "bytes"], -1), "transfers[0].bytes must be a whole number"),
    "half a byte": (altered([*ROW, "bytes"], 0.5), "got 0.5; round it"),
    "text for a time": (altered([*ROW, "start_s"], "0"), "transfers[0].start_s must be a finite"),
    "infinite time": (altered([*ROW, "finish_s"], float("inf")), "must be a finite number of"),
    "no route": (altered([*ROW, "route"], ["S1"]), "route must be a list of at least two hosts"),
    "hop beyond the route": (
        altered([*ROW, "hop"], 1),
        "transfers[0].hop must be below 1, the route's number of hops, got 1",
    ),
    "no streams": (altered([*ROW, "streams"], 0), "must be a whole number >= 1, got 0"),
    "slot of no length": (altered(["slot_s"], 0), "slot_s must be a finite number of seconds > 0"),
    "a table for transfers": (altered(["transfers"], {}), "transfers must be a list of tables"),
    "unknown status": (altered(["status"], "best"), 'must be "optimal" or "heuristic"'),
    "a problem": ({"destination": "D", "hosts": {}}, "this is a problem; name the problem file"),
    "a list": ([], "the top level must be a table"),
}


@pytest.mark.parametrize("case", SCHEDULES)
def test_bad_schedule(case, tmp_path, capsys):
    (tmp_path / "collect.toml").write_text(GOOD)
    path = tmp_path / "plan.json"
    tree, expected = SCHEDULES[case]
    path.write_text(json.dumps(tree))
    message = message_of(["check", tmp_path / "collect.toml", path], capsys)
    assert message.startswith(str(path))
    assert expected in message


def test_the_good_schedule_is_good(tmp_path, capsys):
    (tmp_path / "collect.toml").write_text(GOOD)
    (tmp_path / "plan.json").write_text(json.dumps(SCHEDULE))
    assert run(["check", str(tmp_path / "collect.toml"), str(tmp_path / "plan.json")]) == 0
    assert capsys.readouterr().out.startswith("valid")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_bad_parquet(data, tmp_path, capsys):
    (tmp_path / "collect.toml").write_text(GOOD)
    (tmp_path / "plan.parquet").write_bytes(data)
    message = message_of(["check", tmp_path / "collect.toml", tmp_path / "plan.parquet"], capsys)
    assert "not a Parquet file" in message


def test_parquet_of_others(tmp_path, capsys):
    import pandas as pd

    (tmp_path / "collect.toml").write_text(GOOD)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "plan.parquet")
    message = message_of(["check", tmp_path / "collect.toml", tmp_path / "plan.parquet"], capsys)
    assert "no schedule: metadata datacollect-schedule is missing" in message


# Anything -----------------------------------------------------------------------------------

TREE = {
    "destination": "D",
    "periods_s": [0.0, 5.0],
    "hosts": {"S": {"backlog_bytes": 10, "storage_bytes": 5}, "K": {"release_s": 1.0}, "D": {}},
    "links": [
        {"from": "S", "to": "D", "bandwidth_bytes_per_s": [5.0, 0.0], "price_per_gb": 1.0},
        {"from": "S", "to": "K", "bandwidth_bytes_per_s": 5},
    ],
    "shared": [{"name": "x", "bandwidth_bytes_per_s": 5.0, "links": [["S", "D"]]}],
    "held": [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 3}],
}
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["S", "K", "D", "X", "", "0", "backlog_bytes", 10**400, -(10**400)])
    | st.text(max_size=3)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


def places(tree, place=()):
    yield place
    if isinstance(tree, dict | list):
        for key, inner in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(inner, (*place, key))


def with_value(tree, place, value):
    if not place:
        return value
    tree = copy.deepcopy(tree)
    inner = tree
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return tree


@given(st.sampled_from(list(places(TREE))), values)
@example(place=("hosts", "S", "storage_bytes"), value=10**400)
def test_any_value_anywhere_in_a_problem_is_read_or_refused(place, value):
    try:
        problem = problem_from_tree(with_value(TREE, place, value))
    except dc.ProblemError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 400
    else:
        assert problem.names


@given(st.sampled_from(list(places(SCHEDULE))), values)
def test_any_value_anywhere_in_a_schedule_is_read_or_refused(place, value):
    try:
        schedule = schedule_from_tree(with_value(SCHEDULE, place, value))
    except dc.ProblemError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 400
    else:
        assert schedule.n_transfers <= 1


@given(st.integers(0, len(GOOD)), st.integers(0, 9), st.binary(max_size=4) | st.text(max_size=3))
def test_any_change_to_a_file_is_read_or_refused(tmp_path_factory, start, cut, new):
    new = new if isinstance(new, bytes) else new.encode(errors="surrogatepass")
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(GOOD.encode()[:start] + new + GOOD.encode()[start + cut :])
    try:
        dc.Problem.from_file(path)
    except dc.ProblemError as error:
        assert str(error).isprintable()
