"""Values that fields of messages should not have, and the fields."""

from transfer.hostile.json_lines import Raw

MISSING = object()

DEEP = Raw(b"[" * 100_000 + b"]" * 100_000)
DEEP_OBJECT = Raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)

VALUES = {
    "missing": MISSING,
    "null": None,
    "true": True,
    "an empty text": "",
    "a text": "text",
    "0": 0,
    "negative": -1,
    "a fraction": 1.5,
    "a whole number with a point": 7.0,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "1e400": Raw(b"1e400"),
    "2^63 - 1": 2**63 - 1,
    "2^63": 2**63,
    "-2^63 - 1": -(2**63) - 1,
    "2^62": 2**62,
    "2^96": 2**96,
    "10^30": 10**30,
    "-10^30": -(10**30),
    "a number of 5000 digits": Raw(b"9" * 5000),
    "an empty list": [],
    "a list of null": [None],
    "an object": {"a": 1},
    "100000 lists deep": DEEP,
    "100000 objects deep": DEEP_OBJECT,
    "half a surrogate pair": "\ud800",
    "half a surrogate pair within": "a\udfffb",
    "not UTF-8": Raw(b'"\xff\xfe\xc0\x80"'),
    "overlong UTF-8": Raw(b'"\xc0\xaf"'),
    "a NUL": "a\0b",
    "terminal escapes": "\x1b[31mred\x1b[2J\x07\x9b1m",
    "newlines": "a\nb\r\nc",
    "turned by bidi": "a\u202eb\u2066",
    "100000 characters": "x" * 100_000,
    "5000 emoji": "\U0001f600" * 5000,
    "dots": "..",
    "a way out": "../../../outside",
    "a way out within": "a/../../outside",
    "absolute": "/tmp/datacollect-hostile-outside",
    "the collector's own folder": ".datacollect",
    "the collector's own state": ".datacollect/state.sqlite",
    "the collector's own folder in wide letters": "\uff0edatacollect",
    "the collector's own folder in capitals": ".DataCollect/x",
    "an empty part": "a//b",
    "a dot within": "a/./b",
    "a slash at the end": "a/",
    "a part of 300 bytes": "x" * 300,
    "1000 folders deep": "a/" * 1000 + "a",
    "a path of 4000 bytes": "/".join(["y" * 200] * 19),
    "a backslash and x00": "a\\x00b",
    "a text that is a number": "12",
    "an escape for a tilde": "~",
}

FACTS = ("format", "name", "version", "time_s", "serves", "relays_to", "features")
FACT_ITEMS = ("relays_to", "features")
FILE = ("path", "bytes", "mtime_ns", "inode", "mode", "extents")
FOLDER = ("folder", "mode", "mtime_ns")
LEFT_OUT = ("left_out", "why", "hex")
CONFIRMATION = ("changed", "gone", "unreadable")
EXTENTS = {
    "overlapping": [[0, 10], [5, 10]],
    "beyond the file": [[0, 10**9]],
    "empty": [[3, 0]],
    "negative": [[-5, 3]],
    "in pairs of three": [[0, 1, 2]],
    "half of it": [[0, 20]],
    "none, as if all were holes": [],
    "100000 of them": [[2 * i, 1] for i in range(100_000)],
    "of 10^30": [[10**30, 1]],
    "out of order": [[30, 5], [10, 5]],
}


def with_value(tree, key, value):
    """Return an object with another value, or without."""
    changed = {k: v for k, v in tree.items() if k != key}
    return changed if value is MISSING else changed | {key: value}


def change_field(tree, _, key, value):
    return with_value(tree, key, value)


def change_item(tree, _, key, value):
    return tree | {key: [*tree.get(key, ()), None if value is MISSING else value]}


def change_line(lines, _, kind, key, value, every):
    """Change a field of the first line of a kind, or of all."""
    found = False
    out = []
    for line in lines:
        if isinstance(line, dict) and kind in line and (every or not found):
            found, line = True, with_value(line, key, value)
        out.append(line)
    if kind == "left_out":
        extra = {"left_out": "odd", "why": "it is odd", "hex": "6f64"}
        out.insert(0, with_value(extra, key, value))
    return out


def change_last(lines, _, value):
    return [*lines[:-1], with_value(lines[-1], "next", value)]
