"""Broken problem files, each with a part of the message in which it is to end."""

from __future__ import annotations

import gzip
import random

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


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


BYTES = "hosts.S1.backlog_bytes must be a whole number of bytes >= 0"
RATE = "must be a finite number of bytes per second >= 0"
TOML = {
    # Numbers.
    "negative": (changed("= 10", "= -5"), f"{BYTES}, got -5; leave it out for 0"),
    "not a number": (changed("= 10", "= nan"), f"{BYTES}, got nan"),
    "infinite": (changed("= 10", "= inf"), f"{BYTES}, got inf"),
    "text for a number": (changed("= 10", '= "10"'), f"{BYTES}, got '10'; leave out the quotes"),
    "bits or bytes": (changed("= 10", '= "5 Gb"'), f"{BYTES}, got '5 Gb'; 'Gb' may be bits or"),
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
        "links[0].bandwidth_mbit_per_s: unknown key; the nearest, 'bandwidth_bytes_per_s', is in",
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
        GOOD + "[[held]]\noffset = 1\n",
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
        ", line 3, column 19: not valid TOML: Expected newline",
    ),
    "unfinished": (GOOD + "[[", "not valid TOML"),
    "key twice": (GOOD + "to = 'S1'\n", ", line 9, column 10: not valid TOML: Cannot overwrite"),
    "nested deeply": ("a = " + 50_000 * "[", "nested too deeply"),
    "NUL character": (GOOD + "\0", ", line 9: must be text, got a NUL character"),
    "empty": ("", "the file is empty"),
    "blank": (" \n\t\n", "the file is empty"),
    "half of UTF-16": (GOOD.encode("utf-16")[:-1], "begins as UTF-16, but byte"),
    "UTF-16 without mark": (GOOD.encode("utf-16-le"), ", line 1: must be text, got a NUL"),
    "Latin-1": (
        (GOOD + "# Genève").encode("latin-1"),
        ", line 9: must be UTF-8 text, got byte 0xe8; save it as UTF-8",
    ),
}


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


HEAD = "from,to,bandwidth_mbit_per_s\n"
PERIODS = "from,to,period,bandwidth_mbit_per_s\n"
NUMBER = "bandwidth_mbit_per_s must be a finite number >= 0"
CSV = {
    "empty": ("", "line 1: must be a header, got an empty line"),
    "other columns": ("src,dst,bw\n", "line 1: unknown column 'src'; known columns are from, to"),
    "nearly a column": ("from, to\n", "line 1: unknown column ' to'; did you mean 'to'?"),
    "bars": ("from|to\n", "line 1: unknown column 'from|to'; separate the columns by commas"),
    "commas and semicolons": (
        "from,to;x\n",
        "line 1: the header has commas and semicolons; say which separate its columns by a line",
    ),
    "column twice": ("from,to,to\n", "line 1: column to given twice; keep one"),
    "no column to": ("from,period\n", "line 1: column to is missing; add it"),
    "no bandwidth": ("from,to\nS1,D\n", "line 1: must have exactly one of the columns"),
    "two bandwidths": (
        "from,to,bandwidth_bit_per_s,bandwidth_mbit_per_s\n",
        "got bandwidth_bit_per_s and bandwidth_mbit_per_s; keep one",
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
    "half of UTF-16": (HEAD.encode("utf-16")[:-1], "begins as UTF-16, but byte"),
    "half of gzip": (
        gzip.compress(HEAD.encode(), mtime=0)[:-9],
        "a packed file that is cut off or damaged",
    ),
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


def noise(kind):
    """Return 10 MB of noise."""
    data = random.Random(1).randbytes(10_000_000)
    if kind == "bytes":
        return data
    letters = (
        b"a1,\n;" * 52 if kind == "lines below a header" else bytes(33 + i % 90 for i in range(256))
    )
    letters = data.translate(letters[:256])
    return letters if kind == "letters" else HEAD.encode() + letters


NOISE = ("bytes", "letters", "letters below a header", "lines below a header")
