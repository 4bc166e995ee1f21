"""Pages of an inventory that are not what they should be, some without end."""

import time
from functools import partial

from transfer.hostile.hostile_agent import MTIME_NS
from transfer.hostile.json_lines import Raw


def entry_at(i):
    return {"path": f"p/{i:012}", "bytes": 1, "mtime_ns": MTIME_NS, "inode": i, "mode": 0o644}


def page_number(request):
    after = request.query.get("after", ["p/0"])[0]
    return int("".join(c for c in after.rsplit("/", 1)[-1] if c.isdigit()) or "0") + 1


def endless_pages(lines, request, n_entries):
    """Each page with so many new entries, and more to come."""
    i = page_number(request)
    entries = [entry_at(i + k) for k in range(n_entries)]
    return [*entries, {"next": entries[-1]["path"] if entries else f"p/{i:012}"}]


def many_names(lines, request):
    """A million names, a page of 10000 at a time."""
    i = page_number(request) - 1
    if i >= 10**6:
        return [{"next": None}]
    entries = [entry_at(i + k) for k in range(1, 10_001)]
    return [*entries, {"next": entries[-1]["path"]}]


def files_of(lines):
    return [line for line in lines if "path" in line]


def double(lines, request):
    first = files_of(lines)[0]
    at = lines.index(first)
    return [*lines[:at], first, *lines[at:]]


def double_differently(lines, request):
    first = files_of(lines)[0]
    at = lines.index(first)
    return [*lines[:at], first | {"inode": 99}, *lines[at:]]


def swap(lines, request):
    return [*reversed(lines[:-1]), lines[-1]]


def with_lines(*more):
    """Return a change that adds lines in front."""
    return lambda lines, _: [*more, *lines]


def as_file(path, n_bytes=1):
    return {"path": path, "bytes": n_bytes, "mtime_ns": MTIME_NS, "inode": 3, "mode": 0o644}


def in_order(*more):
    """Return a change that adds files where they belong by their names."""

    def change(lines, request):
        files = [*lines[:-1], *more]
        files.sort(key=lambda line: line.get("path", line.get("folder", "") + "/").encode())
        return [*files, lines[-1]]

    return change


PAGES = {
    "a line twice": double,
    "a file twice, not the same": double_differently,
    "backwards": swap,
    "without a last line": lambda lines, _: lines[:-1],
    "two last lines": lambda lines, _: [*lines, lines[-1]],
    "lines after the last": lambda lines, _: [lines[-1], *lines[:-1]],
    "a blank line": with_lines(Raw(b"\n")),
    "a line that is no JSON": with_lines(Raw(b"hello\n")),
    "a line of bytes": with_lines(Raw(bytes(range(11, 256)) + b"\n")),
    "a line with 200 KiB": with_lines({"left_out": "x" * 200_000, "why": ""}),
    "an empty object": with_lines({}),
    "a list as a line": with_lines([1]),
    "a number as a line": with_lines(7),
    "all kinds in one line": with_lines({"path": "0", "folder": "0", "left_out": "0", "next": "0"}),
    "the same key twice": with_lines(Raw(b'{"path":"0","path":"1","bytes":1,"bytes":2}\n')),
    "10001 lines": with_lines(*[Raw(b"{}\n")] * 10_001),
    "10000 malformed lines": with_lines(*[Raw(b"{}\n")] * 9_900),
    "10^6 malformed lines": with_lines(Raw(b"{}\n" * 10**6)),
    "a file that is a folder of others": in_order(as_file("c", 0), as_file("c/d", 0)),
    "a folder that is a file": in_order({"folder": "b", "mode": 0o755, "mtime_ns": 0}),
    "a folder twice": in_order(*[{"folder": "q", "mode": 0o755, "mtime_ns": 0}] * 2),
    "names that differ by case": in_order(as_file("B", 5), as_file("Z", 5)),
    "a name in two normal forms": in_order(as_file("e\u0301", 5), as_file("\xe9", 5)),
    "huge files": in_order(*[as_file(f"c{i}", 2**62) for i in range(9)]),
    "files of 2^63 - 1 bytes": in_order(*[as_file(f"c{i}", 2**63 - 1) for i in range(9)]),
    "files that are not there": in_order(*[as_file(f"c{i}", 10) for i in range(300)]),
    "empty files that are not there": in_order(*[as_file(f"c{i}", 0) for i in range(300)]),
    "modes 0": lambda lines, _: [ln | {"mode": 0} if "mode" in ln else ln for ln in lines],
    "modes with all bits": lambda lines, _: [
        ln | {"mode": 0o7777} if "mode" in ln else ln for ln in lines
    ],
    "times of long ago": lambda lines, _: [
        ln | {"mtime_ns": -(2**96)} if "mtime_ns" in ln else ln for ln in lines
    ],
    "times of far away": lambda lines, _: [
        ln | {"mtime_ns": 2**96} if "mtime_ns" in ln else ln for ln in lines
    ],
    "inodes of 2^63 - 1": lambda lines, _: [
        ln | {"inode": 2**63 - 1} if "inode" in ln else ln for ln in lines
    ],
    "other sizes": lambda lines, _: [
        ln | {"bytes": ln["bytes"] + 1} if "bytes" in ln else ln for ln in lines
    ],
    "smaller sizes": lambda lines, _: [
        ln | {"bytes": ln["bytes"] // 2} if "bytes" in ln else ln for ln in lines
    ],
    "the same page again and again": lambda lines, _: [*lines[:-1], {"next": "z"}],
    "the next page before this one": lambda lines, request: [
        *lines[:-1],
        {"next": "b" if "after" not in request.query else "a"},
    ],
    "the page after a name with a backslash": lambda lines, request: (
        [*lines[:-1], {"next": "z\\x00"}] if "after" not in request.query else [{"next": None}]
    ),
}


def late_pages(lines, request):
    """A new entry, 0.4 s after it was asked for, and more to come."""
    time.sleep(0.4)
    return endless_pages(lines, request, 1)


ENDLESS_PAGES = {
    "pages without end, each with an entry": partial(endless_pages, n_entries=1),
    "pages without end, each without an entry": partial(endless_pages, n_entries=0),
    "pages without end, each with 10000 entries": partial(endless_pages, n_entries=10_000),
    "pages without end, each with an entry after 0.4 s": late_pages,
    "a million names": many_names,
}
