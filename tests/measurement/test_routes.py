"""Routes in what traceroute and scamper have written: recorded in namespaces, and broken."""

from __future__ import annotations

import json

import pytest
from instances.installed_packages import without_package

from datacollect.errors import ProblemError
from datacollect.measurement.routes import (
    agree,
    merged,
    read_route,
    require_jc,
    route_of_scamper,
    route_of_traceroute,
)

FAR = "10.8.9.9"
HEADER = f"traceroute to {FAR} ({FAR}), 30 hops max, 60 byte packets\n"
BALANCED = HEADER + (
    " 1  10.8.0.2  0.041 ms  0.005 ms\n"
    " 2  10.8.2.2  0.020 ms 10.8.1.2  0.015 ms\n"
    " 3  10.8.9.9  0.016 ms  0.012 ms\n"
)
SILENT = HEADER + " 1  10.8.0.2  0.040 ms  0.005 ms\n 2  * *\n 3  * 10.8.9.9  0.011 ms\n"
UNREACHED = HEADER + " 1  10.8.0.2  0.074 ms  0.007 ms\n 2  * *\n 3  * *\n 4  * *\n"
UNREACHABLE = HEADER + " 1  * 10.8.0.2  0.033 ms !N\n"
BUSYBOX = (
    "traceroute to 10.8.9.9 (10.8.9.9), 30 hops max, 46 byte packets\n"
    " 1  10.8.0.2  0.005 ms  0.002 ms\n 2  10.8.9.9  0.002 ms  0.001 ms\n"
)
VERSION_6 = (
    "traceroute to 2001:db8::9 (2001:db8::9), 30 hops max, 80 byte packets\n"
    " 1  2001:db8:1::1  0.204 ms  0.005 ms\n 2  *  2001:db8:2::1  3.1 ms\n"
    " 3  2001:db8::9  4.1 ms !X  4 ms\n"
)


@pytest.mark.parametrize(
    ("text", "far", "one_flow", "route"),
    [
        (BALANCED, FAR, False, [["10.8.0.2"], ["10.8.2.2", "10.8.1.2"]]),
        # With one flow two answers of a hop are a path that has changed meanwhile.
        (BALANCED, FAR, True, ["10.8.0.2", "10.8.2.2"]),
        (SILENT, FAR, True, ["10.8.0.2", None]),
        (SILENT, FAR, False, [["10.8.0.2"], None]),
        (UNREACHED, FAR, True, ["10.8.0.2", None]),
        (UNREACHABLE, FAR, True, ["10.8.0.2", None]),
        (BUSYBOX, FAR, False, [["10.8.0.2"]]),
        (VERSION_6, "2001:db8::9", True, ["2001:db8:1::1", "2001:db8:2::1"]),
        (VERSION_6, "2001:DB8:0::9", True, ["2001:db8:1::1", "2001:db8:2::1"]),
    ],
)
def test_what_traceroute_says(text, far, one_flow, route):
    assert route_of_traceroute(text, far, one_flow=one_flow) == route


@pytest.mark.parametrize("length", range(len(HEADER), len(SILENT)))
def test_a_text_that_is_cut_anywhere_says_what_was_there_or_nothing(length):
    try:
        route = route_of_traceroute(SILENT[:length], FAR, one_flow=True)
    except ProblemError:
        return
    # An address that is cut is another one: only whole round trips count.
    assert route in ([None], ["10.8.0.2", None])


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEADER,
        "traceroute: unknown host",
        HEADER + " 1  999.8.0.2  0.040 ms  0.005 ms\n",
        HEADER + " 99  10.8.0.2  0.040 ms\n",
        HEADER + " 0  10.8.0.2  0.040 ms\n",
        HEADER + f" {'9' * 400}  10.8.0.2  0.040 ms\n",
        HEADER + f" 1  {'a' * 100_000}  0.040 ms\n",
        HEADER + "\x00\x1b[2J\n",
    ],
)
def test_what_is_no_traceroute_is_refused(text):
    with pytest.raises(ProblemError):
        route_of_traceroute(text, FAR, one_flow=True)


def test_names_that_a_router_has_given_itself_are_no_addresses():
    text = HEADER + " 1  9.9.9.9.evil.example (10.8.0.2)  0.1 ms\n 2  10.8.9.9  0.1 ms\n"
    assert route_of_traceroute(text, FAR, one_flow=True) == ["10.8.0.2"]


def a_hop(address, ttl):
    return {"addr": address, "probe_ttl": ttl, "probe_id": 1, "rtt": 0.035, "icmp_type": 11}


def line(hop_count, *hops, **more):
    tree = {"type": "trace", "version": "0.1", "method": "udp-paris", "hop_count": hop_count}
    return json.dumps({**tree, **({"hops": list(hops)} if hops else {}), **more})


@pytest.mark.parametrize(
    ("text", "route"),
    [
        (line(3, a_hop("10.8.0.2", 1), a_hop(FAR, 3)), ["10.8.0.2", None]),
        (line(6, a_hop("10.8.0.2", 1), stop_reason="GAPLIMIT"), ["10.8.0.2", None]),
        (line(5, stop_reason="GAPLIMIT"), [None]),
        (line(1, a_hop(FAR, 1)), []),
    ],
)
def test_what_scamper_says(text, route):
    assert route_of_scamper(text, FAR) == route


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"hop_count": 1e999}',
        '{"hop_count": "x"}',
        "[" * 100_000,
        line(10**9),
        line(1, "x"),
        line(1, {"addr": "10.8.0.2"}),
        line(1, a_hop("router", 1)),
        line(1, a_hop("10.8.0.2", -5)),
        line(1, a_hop("10.8.0.2", 10**30)),
        line(1, hops=7),
    ],
)
def test_what_is_none_of_scampers_lines_is_refused(text):
    with pytest.raises(ProblemError):
        route_of_scamper(text, FAR)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '["r"]', "[[]]", "[[null]]", '[["8.8.8.8", 1]]'])
def test_what_is_no_route_is_refused(text):
    with pytest.raises(ProblemError, match="routers must be a list of addresses"):
        read_route(text)


def test_without_jc_the_remedy_is_named(monkeypatch):
    without_package(monkeypatch, "jc")
    with pytest.raises(ProblemError, match=r"pip install .*\[measure\]"):
        require_jc()


def test_routes_that_agree_know_more_together():
    one, other = ["a", None], ["a", "b", "c"]
    assert agree(one, other)
    assert merged(one, other) == merged(other, one) == other
    assert not agree(["a", "x", None], other)
    assert not agree([], ["a"])
    assert agree([], [])
