"""Traces are read rightly: sites, the place of each call in its thread, what was injected."""

from __future__ import annotations

import pytest
from faults.sites import Names, Record, Site, calls_of, placed, resolved

NAMES = Names("/t/run/into", "/t/world", {"S1": 7001}, ("S1", "W"))
HERE = "AT_FDCWD</w>"
LINE_BY_KIND = {
    'openat(AT_FDCWD</w>, "/t/world/key", O_RDONLY) = 3</t/world/key>': "key",
    'openat(4</t/run/into/.datacollect>, "lock", O_RDWR) = 5</x>': ".datacollect/lock",
    'pwrite64(7</t/run/into/.datacollect/incoming/12>, "a = b", 5, 0) = 5': (
        ".datacollect/incoming/N"
    ),
    'renameat(6</t/run/into/.datacollect/incoming>, "1", 9</t/run/into/S1>, "a") = 0': "final",
    'mkdirat(3</t/run/into>, "W", 0777) = 0': "final",
    "fsync(3</t/run/into>) = 0": "DIR",
    'read(8</dev/urandom<char 1:9>>, "x", 1) = 1': "dev or proc",
    'read(8<TCP:[127.0.0.1:50->127.0.0.1:7001]>, "x", 1) = 1': "tcp to S1",
    "connect(8<TCP:[12]>, {sa_family=AF_INET, sin_port=htons(7001)}, 16) = 0": "tcp to S1",
    "connect(8<TCP:[12]>, {sa_family=AF_INET, sin_port=htons(1)}, 16) = 0": "tcp",
    "socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 4<TCP:[12]>": "new socket",
    'openat(AT_FDCWD</w>, "/usr/lib/python3/x.py", O_RDONLY) = 3': "import",
    'write(1</t/run/stdout>, "x", 1) = 1': "stdout",
    "clone3({flags=CLONE_VM}, 88) = 77": "process",
}


@pytest.mark.parametrize(("line", "kind"), LINE_BY_KIND.items())
def test_the_kind_of_thing_is_read_from_a_line(line, kind):
    (call,) = calls_of([f"12  {line}"], NAMES)
    assert call.site == Site(line.partition("(")[0], kind)


def test_calls_of_several_threads_are_told_apart_and_what_was_injected_is_found():
    lines = [
        "1  fsync(3</t/run/into/S1> <unfinished ...>",
        "2  fsync(4</t/run/into/W>)  = 0",
        "1  <... fsync resumed>)  = -1 EIO (Input/output error) (INJECTED)",
        "2  fsync(4</t/run/into/W>)  = -1 EIO (Input/output error) (INJECTED)",
        "2  +++ exited with 0 +++",
    ]
    assert [(c.thread, c.is_injected) for c in calls_of(lines, NAMES)] == [
        (1, True),
        (2, False),
        (2, True),
    ]


def test_places_are_counted_among_what_the_filter_lets_through():
    lines = [
        '1  openat(4</t/run/into/.datacollect>, "lock", O_RDWR) = 5',
        '1  openat(AT_FDCWD</w>, "/t/world/key", O_RDONLY) = 6',
        '1  openat(4</t/run/into/.datacollect>, "log.jsonl", O_RDWR) = 7',
    ]
    record = Record.of(calls_of(lines, NAMES), NAMES)
    site = Site("openat", ".datacollect/log.jsonl")
    assert record.filters[site] == {"INTO/.datacollect"}
    # The key is let through by no filter of this folder; the lock is.
    assert dict(record.places[site]) == {2: 1}


def test_places_of_other_sites_in_other_threads_are_left_out():
    lines = ["1  read(3</t/world/key>) = 1", *["2  read(4<TCP:[1->2:7001]>) = 1"] * 3]
    record = Record.of(calls_of(lines, NAMES), NAMES)
    assert record.chosen(Site("read", "tcp to S1"), 8) == [2, 3]


def test_places_are_spread_from_the_first_to_the_last():
    record = Record.of(calls_of(["1  fsync(3</t/run/into>) = 0"] * 100, NAMES), NAMES)
    chosen = record.chosen(Site("fsync", "DIR"), 8)
    assert chosen[:4] == [1, 2, 3, 4]
    assert chosen[-1] == 100
    assert len(chosen) == 8


@pytest.mark.parametrize("path", ["/t/run/into/S1/a", "/t/run/stdout", "/t/world/key", "/etc/x"])
def test_folders_of_a_run_are_replaced_and_put_back(path):
    assert resolved(placed(path, NAMES), NAMES) == path
    assert placed("/t/run/into/S1/a", NAMES) == "INTO/S1/a"
