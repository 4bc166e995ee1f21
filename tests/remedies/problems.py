"""Remedies about problems: hosts, links, periods, clock times, tables and graphs."""

from __future__ import annotations

from datetime import UTC, datetime

import networkx as nx
import pandas as pd
from remedies.trying import Example, in_new_folder

import datacollect as dc
from datacollect.examples import upload_server

START = "2026-11-22T20:00:00+01:00"
BY_CONNECTIONS = {"per_connection_bytes_per_s": 1e6, "competitors": 1}
BOTTLENECKED = {"per_connection_bytes_per_s": 1e6, "capacity_bytes_per_s": 5e6}
# One connection would get 2 MB/s, or half a MB/s, where 1 MB/s is written.
FOUR = {"per_connection_bytes_per_s": 2e6, "capacity_bytes_per_s": 5e6, "competitors": 1}
THREE = {"capacity_bytes_per_s": 5e6, "competitors": 9}
HOURS = "08:00 1 MB/s, 20:00 2 MB/s"
BY_DAY = ["08:00", "20:00"]
FORECAST = {"bandwidth_bytes_per_s": [1e6, 2e6]}
CSV = (
    'destination = "D"\nbandwidth_csv = "b.csv"\n[hosts.D]\n[hosts.S]\nbacklog_bytes = 1_000_000\n'
)


MADE = {"produces_bytes_per_s": 5e5}
HELD_AT_D = {"host": "D", "source": "S", "offset_bytes": 0, "bytes": 10}


def read(host=None, link=None, **top):
    """Read a problem of S with 1 MB and a link to D; what is None is left out."""
    first = {"backlog_bytes": 1_000_000} | (host or {})
    between = {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e6} | (link or {})
    between = {key: value for key, value in between.items() if value is not None}
    tree = {"destination": "D", "hosts": {"S": first, "K": {}, "D": {}}, "links": [between]} | top
    return dc.Problem.from_dict(tree)


def in_frame(hosts=None, backlog=None, periods_s=None, n_rows=1, **columns):
    """Read a table of links from S to D, which has more columns."""
    rows = {"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0}
    links = pd.DataFrame([rows] * n_rows).assign(**columns)
    hosts = None if hosts is None else pd.DataFrame(hosts).set_index("host")
    return dc.Problem.from_dataframe(
        links, backlog or {"S": 10}, "D", hosts=hosts, periods_s=periods_s
    )


def of_matrix(rate=5.0, backlog_bytes=(10, 0)):
    return dc.Problem.from_matrix(["S", "D"], [[0.0, rate], [0.0, 0.0]], backlog_bytes, "D")


def served(tree, what):
    """Post to the shipped service."""
    problem = of_matrix()
    now = datetime(2026, 11, 29, tzinfo=UTC)
    upload_server.Served.of(problem, dc.direct(problem), now).after(what, tree)


def from_graph(graph):
    nx.set_edge_attributes(graph, 5.0, "bandwidth_bytes_per_s")
    first, last = list(graph)
    return dc.Problem.from_networkx(graph, last, backlog={first: 10})


def holding(storage_bytes=10, held_bytes=50):
    return read(
        hosts={"S": {"backlog_bytes": 100}, "K": {"storage_bytes": storage_bytes}, "D": {}},
        held=[{"host": "K", "source": "S", "offset_bytes": 0, "bytes": held_bytes}],
    )


def of_csv(rows, periods_s=""):
    """Read a problem whose links stand in a CSV."""

    def read_file():
        with in_new_folder(p_toml=periods_s + CSV, b_csv=rows):
            return dc.Problem.from_file("p.toml")

    return read_file


ONE_ROW = "from,to,bandwidth_bytes_per_s\nS,D,1000000\n"
TWO_PERIODS = "from,to,period,bandwidth_bytes_per_s\nS,D,0,1000000\nS,D,1,1000000\n"


def uplinks(of_s):
    return {"host": ["S", "D"], "uplink_bytes_per_s": [of_s, None]}


def of_host(**limits):
    return dc.Problem.from_hosts([dc.Host("S", 10, **limits), dc.Host("D")], LINKS, "D")


LINKS = [dc.Link("S", "D", 5.0)]

EXAMPLES = [
    Example(
        "open needs start, the clock time of 0 s; add start = 2026-11-22T20:00:00+01:00",
        lambda: read({"open": "20:00-06:00"}),
        lambda: read({"open": "20:00-06:00"}, start=START),
    ),
    Example(
        "open and periods_s cannot be combined; give daily_periods",
        lambda: read({"open": "20:00-06:00"}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read({"open": "20:00-06:00"}, FORECAST, start=START, daily_periods=BY_DAY),
    ),
    Example(
        "or 0 in the periods in which nothing moves",
        lambda: read({"open": "20:00-06:00"}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read(None, {"bandwidth_bytes_per_s": [0.0, 1e6]}, start=START, periods_s=[0, 60]),
    ),
    Example(
        "leave per_connection_bytes_per_s, capacity_bytes_per_s and competitors out",
        lambda: read({"open": "20:00-06:00"}, BY_CONNECTIONS, start=START),
        lambda: read({"open": "20:00-06:00"}, start=START),
    ),
    Example(
        "capacity_bytes_per_s and competitors out, or open",
        lambda: read({"open": "20:00-06:00"}, BY_CONNECTIONS, start=START),
        lambda: read(None, BY_CONNECTIONS, start=START),
    ),
    Example(
        "a clock time needs start, the clock time of 0 s, got '{}'; add start = 2026-11-22T20:00",
        lambda: read({"release_s": "2026-11-22T21:00"}),
        lambda: read({"release_s": "2026-11-22T21:00"}, start=START),
    ),
    Example(
        "a clock time needs start, the clock time of 0 s, got '{}'; add start = "
        "2026-11-22T20:00:00+01:00, or write seconds",
        lambda: read({"release_s": "21:00"}),
        lambda: read({"release_s": 3600}),
    ),
    Example(
        "{} needs start, the clock time of 0 s; add start = 2026-11-22T20:00:00",
        lambda: read(None, FORECAST, daily_periods=BY_DAY),
        lambda: read(None, FORECAST, daily_periods=BY_DAY, start=START),
    ),
    Example(
        "periods_s and daily_periods cannot be combined; give one of them",
        lambda: read(None, FORECAST, daily_periods=BY_DAY, periods_s=[0, 60], start=START),
        lambda: read(None, FORECAST, periods_s=[0, 60], start=START),
    ),
    Example(
        "write the windows in the hours of the problem's timezone",
        lambda: read(
            {"open": "20:00-06:00 Europe/London"}, FORECAST, start=START, daily_periods=BY_DAY
        ),
        lambda: read({"open": "20:00-06:00"}, FORECAST, start=START, daily_periods=BY_DAY),
    ),
    Example(
        "{}: hours of the day need start, the clock time of 0 s; add start",
        lambda: read({"uplink_bytes_per_s": HOURS}),
        lambda: read({"uplink_bytes_per_s": HOURS}, start=START),
    ),
    Example(
        "hours of the day and periods_s cannot be combined; give daily_periods",
        lambda: read({"uplink_bytes_per_s": HOURS}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read({"uplink_bytes_per_s": HOURS}, FORECAST, start=START, daily_periods=BY_DAY),
    ),
    Example(
        "give daily_periods, or a list of one number per period",
        lambda: read({"uplink_bytes_per_s": HOURS}, FORECAST, start=START, periods_s=[0, 60]),
        lambda: read({"uplink_bytes_per_s": [1e6, 2e6]}, FORECAST, start=START, periods_s=[0, 60]),
    ),
    Example(
        "must have an offset from UTC, or timezone be given, got '{}'; add +01:00",
        lambda: read(start="2026-11-22T20:00:00"),
        lambda: read(start="2026-11-22T20:00:00+01:00"),
    ),
    Example(
        """is an hour of the day, so it needs a time zone; add timezone = "Europe/Zurich\"""",
        lambda: read(start="20:00"),
        lambda: read(start="20:00", timezone="Europe/Zurich"),
    ),
    Example(
        'add +01:00, or timezone = "Europe/Zurich"',
        lambda: read(start="2026-11-22T20:00:00"),
        lambda: read(start="2026-11-22T20:00:00", timezone="Europe/Zurich"),
    ),
    Example(
        "say what limits it: capacity_bytes_per_s or competitors",
        lambda: read(link={"per_connection_bytes_per_s": 2e6}),
        lambda: read(link={"per_connection_bytes_per_s": 2e6, "competitors": 1}),
    ),
    Example(
        "say what limits it: capacity_bytes_per_s or competitors",
        lambda: read(link={"per_connection_bytes_per_s": 2e6}),
        lambda: read(link={"per_connection_bytes_per_s": 2e6, "capacity_bytes_per_s": 3e6}),
    ),
    Example(
        "it does not tell how many share the capacity of {}; 0 if nobody else does",
        lambda: read(link=BOTTLENECKED),
        lambda: read(link=BOTTLENECKED | {"competitors": 0}),
    ),
    *(
        Example(
            "but the bandwidth is {}; correct one of the four",
            lambda: read(link=FOUR),
            lambda change=change: read(link=FOUR | change),
        )
        for change in (
            {"competitors": 4},
            {"capacity_bytes_per_s": 2e6},
            {"per_connection_bytes_per_s": 1e6},
            {"bandwidth_bytes_per_s": 2e6},
        )
    ),
    *(
        Example(
            "but the bandwidth is {}; correct one of the three",
            lambda: read(link=THREE),
            lambda change=change: read(link=THREE | change),
        )
        for change in (
            {"competitors": 4},
            {"capacity_bytes_per_s": 1e7},
            {"bandwidth_bytes_per_s": 5e5},
        )
    ),
    Example("raise storage_bytes or correct held", holding, lambda: holding(storage_bytes=50)),
    Example("raise storage_bytes or correct held", holding, lambda: holding(held_bytes=10)),
    Example(
        "host {}: backlog_bytes must be whole, got {}; round it",
        lambda: of_matrix(backlog_bytes=[10.5, 0]),
        lambda: of_matrix(backlog_bytes=[round(10.5), 0]),
    ),
    Example(
        "host {}: storage_bytes must be whole, got {}; round it",
        lambda: of_host(storage_bytes=10.5),
        lambda: of_host(storage_bytes=round(10.5)),
    ),
    Example(
        "bandwidth_bytes_per_s must be >= 0 and finite, got {}{}; use 0 for no capacity",
        lambda: of_matrix(rate=-1.0),
        lambda: of_matrix(rate=0.0),
    ),
    Example(
        "periods_s must be at most {}, got {}; count seconds from a later instant",
        lambda: read(None, FORECAST, periods_s=[0, 1e16]),
        lambda: read(None, FORECAST, periods_s=[0, 1e16 - 9.9999e15]),
    ),
    Example(
        "release_s must be at most {}, got {}; count seconds from a later instant",
        lambda: read({"release_s": 1e16}),
        lambda: read({"release_s": 1e16 - 9.9999e15}),
    ),
    Example(
        "but {} has made {} bytes so far; set made_bytes to at least the end of the range",
        lambda: read(MADE, held=[HELD_AT_D]),
        lambda: read(MADE | {"made_bytes": 10}, held=[HELD_AT_D]),
    ),
    Example(
        "made_bytes must be whole and at most the backlog of {} bytes, got {}; made_bytes says "
        "how many",
        lambda: read(MADE | {"made_bytes": 1_000_001}),
        lambda: read(MADE | {"made_bytes": 1_000_000}),
    ),
    Example(
        "produces_bytes_per_s must be > 0, got {}; leave it out where all is there at release_s",
        lambda: of_host(produces_bytes_per_s=0.0),
        of_host,
    ),
    Example(
        "made_bytes needs produces_bytes_per_s, got {} alone; add the rate, or leave it out",
        lambda: read({"made_bytes": 1}),
        lambda: read(MADE | {"made_bytes": 1}),
    ),
    Example(
        "got {} bytes/s of nothing; add it: the rate times the seconds",
        lambda: read({"backlog_bytes": 0, "produces_bytes_per_s": 5e5}),
        lambda: read(MADE),
    ),
    Example(
        "most_connections must be a whole number >= 0, got {}; leave it out for unlimited",
        lambda: of_host(most_connections=1.5),
        of_host,
    ),
    Example(
        "got {} and {}; correct one of them",
        lambda: read(link={"bandwidth_low_bytes_per_s": 2e6}),
        lambda: read(link={"bandwidth_low_bytes_per_s": 2e5}),
    ),
    Example(
        "got {} and {}; correct one of them",
        lambda: read(link={"bandwidth_low_bytes_per_s": 2e6}),
        lambda: read(link={"bandwidth_low_bytes_per_s": 2e6, "bandwidth_bytes_per_s": 3e6}),
    ),
    Example(
        "bandwidth_csv must name a file, got '-'; only the problem can be piped in",
        lambda: read(links=[], bandwidth_csv="-"),
        of_csv(ONE_ROW),
    ),
    Example(
        "a host's name must be text; networkx.relabel_nodes(graph, str) turns all names into text",
        lambda: from_graph(nx.DiGraph([(1, 2)])),
        lambda: from_graph(nx.relabel_nodes(nx.DiGraph([(1, 2)]), str)),
    ),
    Example(
        "graph.to_directed() makes two links of each edge",
        lambda: from_graph(nx.Graph([("1", "2")])),
        lambda: from_graph(nx.Graph([("1", "2")]).to_directed()),
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
        "links, row {}: period must be a whole number from 0 to {}, got {}; periods_s lists",
        lambda: in_frame(n_rows=2, period=[0, 1], periods_s=[0.0]),
        lambda: in_frame(n_rows=2, period=[0, 1], periods_s=[0.0, 60.0]),
    ),
    Example(
        "periods_s lists the starts of {} periods",
        of_csv(TWO_PERIODS, "periods_s = [0]\n"),
        of_csv(TWO_PERIODS, "periods_s = [0, 60]\n"),
    ),
    Example(
        "column period needs periods_s in the problem file, the starts of the periods; add it",
        of_csv(TWO_PERIODS),
        of_csv(TWO_PERIODS, "periods_s = [0, 60]\n"),
    ),
    Example(
        "the starts of the periods; add it, or remove the column",
        of_csv(TWO_PERIODS),
        of_csv(ONE_ROW),
    ),
    Example(
        "newest_s must be seconds since 1970, got {}; divide milliseconds by 1000",
        lambda: in_frame(newest_s=[1_780_000_000_000.0]),
        lambda: in_frame(newest_s=[1_780_000_000_000.0 / 1000]),
    ),
    Example(
        "newest_s must be seconds since 1970, got {}; divide milliseconds by 1000, or leave the",
        lambda: in_frame(newest_s=[1_780_000_000_000.0]),
        in_frame,
    ),
    Example(
        "backlog_bytes: unknown host {}; add it to hosts",
        lambda: in_frame({"host": ["S", "D"]}, {"S": 10, "T": 10}),
        lambda: in_frame({"host": ["S", "D", "T"]}, {"S": 10, "T": 10}),
    ),
    Example(
        "got {} numbers; periods_s lists the starts of periods",
        lambda: in_frame(uplinks([1.0, 2.0])),
        lambda: in_frame(uplinks([1.0, 2.0]), periods_s=[0.0, 60.0]),
    ),
    Example(
        "{} must be a number or one number per period ({}), got {}; periods_s lists the starts",
        lambda: dc.NewLinks.from_names(of_matrix(), {("S", "D"): [1, 2]}),
        lambda: dc.NewLinks.from_names(of_matrix(), {("S", "D"): [1, 2]}, periods_s=[0, 60]),
    ),
    Example(
        "bandwidth_csv would be a file of this server; post links",
        lambda: served({"bandwidth_csv": "links.csv"}, "progress"),
        lambda: served({"S": {"D": 1}}, "links"),
    ),
    Example(
        "hours of the day need start, which tables do not have; use Problem.from_hosts",
        lambda: in_frame(uplinks(HOURS)),
        lambda: dc.Problem.from_hosts(
            [dc.Host("S", 10, uplink_bytes_per_s=HOURS), dc.Host("D")], LINKS, "D", start=START
        ),
    ),
    Example(
        "use Problem.from_hosts, or periods_s and a list of one number per period",
        lambda: in_frame(uplinks(HOURS)),
        lambda: in_frame(uplinks([1e6, 2e6]), periods_s=[0.0, 60.0]),
    ),
]
