"""Problem files: what is written reads back equal, what is read means what it says."""

from __future__ import annotations

import io
import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datacollect as dc
from datacollect.files.host_names import fault_of
from datacollect.problem import link_table
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.fields import LINK, PROBLEM
from datacollect.schedule.data.fields import SCHEDULE, TRANSFER

EVERYTHING = """
format = "datacollect-problem/1"
destination = "D"
periods_s = [0.0, 600.0]

[hosts.S1]
backlog_bytes = 50_000_000
release_s = 30
storage_bytes = 100_000_000
uplink_bytes_per_s = 1.25e6
downlink_bytes_per_s = 2.5e6
[hosts.S2]
[hosts.K]
storage_bytes = 0
[hosts.D]

[[links]]
from = "S2"
to = "D"
bandwidth_bytes_per_s = 5
[[links]]
from = "S1"
to = "D"
bandwidth_bytes_per_s = [312_500.0, 0.0]
price_per_gb = 0.02

[[shared]]
name = "peering-1"
bandwidth_bytes_per_s = 625_000.0
links = [["S1", "D"], ["S2", "D"]]

[[held]]
host = "K"
source = "S1"
offset_bytes = 10
bytes = 0
"""
INFINITE = math.inf


def write(folder, **files):
    """Write files; an underscore stands for the dot. Return the path of the first."""
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        paths.append(path)
    return paths[0]


def csv_problem(folder, csv, head="", hosts=("S", "K", "D")):
    text = f'destination = "D"\nbandwidth_csv = "g.csv"\n{head}\n'
    text += "".join(f"[hosts.{json.dumps(name)}]\n" for name in hosts)
    return dc.Problem.from_file(write(folder, p_toml=text, g_csv=csv))


def links_of(problem):
    rates = problem.bandwidth_bytes_per_s.T.tolist()
    ends = zip(problem.link_from, problem.link_to, rates, strict=True)
    return {(problem.names[a], problem.names[b]): forecast for a, b, forecast in ends}


# Problems -----------------------------------------------------------------------------------


def test_every_field_arrives_in_its_array(tmp_path):
    problem = dc.Problem.from_file(write(tmp_path, p_toml=EVERYTHING))
    assert problem.names == ("S1", "S2", "K", "D")
    assert problem.destination == "D"
    assert problem.periods_s.tolist() == [0.0, 600.0]
    assert problem.backlog_bytes.tolist() == [50_000_000, 0, 0, 0]
    assert problem.release_s.tolist() == [30.0, 0.0, 0.0, 0.0]
    assert problem.storage_bytes.tolist() == [1e8, INFINITE, 0.0, INFINITE]
    assert problem.uplink_bytes_per_s[0].tolist() == [1.25e6, INFINITE, INFINITE, INFINITE]
    assert problem.downlink_bytes_per_s[0].tolist() == [2.5e6, INFINITE, INFINITE, INFINITE]
    assert links_of(problem) == {("S1", "D"): [312_500.0, 0.0], ("S2", "D"): [5.0, 5.0]}
    assert problem.price_per_gb.tolist() == [0.02, 0.0]
    assert problem.shared == (
        dc.SharedBottleneck("peering-1", 625_000.0, (("S1", "D"), ("S2", "D"))),
    )
    assert problem.held == (dc.Held("K", "S1", 10, 0),)


def test_json_says_the_same_as_toml(tmp_path):
    import tomllib

    same = json.dumps(tomllib.loads(EVERYTHING))
    one = dc.Problem.from_file(write(tmp_path, p_toml=EVERYTHING))
    two = dc.Problem.from_file(write(tmp_path, p_json=same))
    assert one.sha256 == two.sha256


@pytest.mark.parametrize("as_json", [False, True])
def test_standard_input_takes_either_format(as_json, monkeypatch):
    text = '{"destination": "D", "hosts": {"D": {}}}' if as_json else 'destination="D"\n[hosts.D]'
    stdin = SimpleNamespace(buffer=io.BytesIO(text.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert dc.Problem.from_file("-").names == ("D",)


def test_from_standard_input_the_csv_is_relative_to_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path, g_csv="from,to,bandwidth_bit_per_s\nS,D,8\n")
    text = 'destination="D"\nbandwidth_csv="g.csv"\n[hosts.S]\n[hosts.D]'
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    monkeypatch.chdir(tmp_path)
    assert links_of(dc.Problem.from_file("-")) == {("S", "D"): [1.0]}


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    text = "\ufeff" + EVERYTHING.replace("\n", "\r\n")
    plain = dc.Problem.from_file(write(tmp_path, q_toml=EVERYTHING))
    assert dc.Problem.from_file(write(tmp_path, p_toml=text)).sha256 == plain.sha256


def test_whole_floats_are_whole_bytes():
    tree = {"destination": "D", "hosts": {"D": {"backlog_bytes": 5e7, "storage_bytes": 1e19}}}
    problem = dc.Problem.from_dict(tree)
    assert problem.backlog_bytes.tolist() == [50_000_000]
    assert problem.storage_bytes.tolist() == [1e19]


def test_numbers_of_numpy_are_numbers():
    tree = {
        "destination": "D",
        "periods_s": np.array([0.0, 5.0]),
        "hosts": {"S": {"backlog_bytes": np.int64(7)}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": np.array([1.0, 2.0])}],
    }
    problem = dc.Problem.from_dict(tree)
    assert problem.backlog_bytes.tolist() == [7, 0]
    assert links_of(problem) == {("S", "D"): [1.0, 2.0]}


def test_editors_may_name_the_schema():
    tree = {"$schema": "problem.schema.json", "destination": "D", "hosts": {"D": {}}}
    assert dc.Problem.from_dict(tree).names == ("D",)


def test_a_list_of_one_forecast_fits_one_period():
    tree = {
        "destination": "D",
        "periods_s": [0],
        "hosts": {"S": {}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": [3.0]}],
    }
    assert links_of(dc.Problem.from_dict(tree)) == {("S", "D"): [3.0]}


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(
    lambda name: not fault_of(name)
)
rates = st.floats(0, 1e18) | st.integers(0, 10**12).map(float)
limits = st.just(INFINITE) | rates


@st.composite
def problems(draw):
    hosts = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    starts = [0.0, *draw(st.sets(st.floats(0.001, 1e6), max_size=2).map(sorted))]
    pairs = [(a, b) for a in hosts for b in hosts if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True) if pairs else st.just([]))
    backlogs = {name: draw(st.integers(0, 2**59)) for name in hosts}
    links = [
        dc.Link(a, b, [draw(rates) for _ in starts], draw(st.floats(0, 10))) for a, b in chosen
    ]
    shared = [dc.SharedBottleneck("x\ny", draw(rates), chosen[:2])] if chosen else []
    held = [dc.Held(hosts[-1], hosts[0], 0, min(5, backlogs[hosts[0]]))]
    return dc.Problem.from_hosts(
        [
            dc.Host(
                name,
                backlogs[name],
                draw(st.floats(0, 1e9)),
                draw(st.just(INFINITE) | st.integers(10, 2**70).map(float)),
                draw(limits),
                draw(limits),
            )
            for name in hosts
        ],
        links,
        draw(st.sampled_from(hosts)),
        shared=shared,
        held=held,
        periods_s=starts,
    )


@given(problems())
def test_problem_survives_its_tree_and_json(problem):
    tree = problem.to_dict()
    again = dc.Problem.from_dict(json.loads(json.dumps(tree, allow_nan=False)))
    assert again.sha256 == problem.sha256
    assert again.to_dict() == tree


def test_only_what_differs_from_the_default_is_written():
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    assert problem.to_dict() == {
        "format": "datacollect-problem/1",
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": 10}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0}],
    }


def test_storage_of_half_a_byte_is_refused():
    with pytest.raises(dc.ProblemError, match=r"'D': storage_bytes must be whole, got 0.5"):
        dc.Problem.from_hosts([dc.Host("D", storage_bytes=0.5)], [], "D")


# CSV ----------------------------------------------------------------------------------------


@pytest.fixture(params=["row by row", "through Arrow"])
def both_readers(request, monkeypatch):
    """Read every CSV row by row, or every CSV through Arrow, however large."""
    limit = 0 if request.param == "through Arrow" else math.inf
    monkeypatch.setattr(link_table, "LARGE_BYTES", limit)


@pytest.mark.usefixtures("both_readers")
@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("bandwidth_bytes_per_s", 2.5),
        ("bandwidth_bit_per_s", 0.3125),
        ("bandwidth_mbit_per_s", 312_500.0),
    ],
)
def test_csv_units(tmp_path, column, expected):
    problem = csv_problem(tmp_path, f"from,to,{column}\nS,D,2.5\n")
    assert links_of(problem) == {("S", "D"): [expected]}


@pytest.mark.usefixtures("both_readers")
def test_csv_in_any_order_of_columns_with_prices_and_zeros(tmp_path):
    csv = "price_per_gb,bandwidth_bytes_per_s,to,from\n0.5,0,D,S\n\n0,1e3,D,K\r\n"
    problem = csv_problem(tmp_path, csv)
    assert links_of(problem) == {("S", "D"): [0.0], ("K", "D"): [1000.0]}
    assert problem.price_per_gb.tolist() == [0.5, 0.0]


def test_no_price_is_price_zero(tmp_path):
    csv = "from,to,bandwidth_bytes_per_s,price_per_gb\nS,D,1,\nK,D,1,2\n"
    assert csv_problem(tmp_path, csv).price_per_gb.tolist() == [0.0, 2.0]


@pytest.mark.usefixtures("both_readers")
def test_an_empty_period_is_all_periods(tmp_path):
    """K's link has one row for both periods; it is named by its own line where it is wrong."""
    csv = "from,to,period,bandwidth_bytes_per_s\nS,D,1,20\nK,D,,7\nS,D,0,10\n"
    problem = csv_problem(tmp_path, csv, head="periods_s = [0, 60]")
    assert links_of(problem) == {("S", "D"): [10.0, 20.0], ("K", "D"): [7.0, 7.0]}
    with pytest.raises(dc.ProblemError, match=r"line 5: the link is given twice for period 1, als"):
        csv_problem(tmp_path, f"{csv}K,D,1,8\n", head="periods_s = [0, 60]")


def test_csv_with_periods_has_a_row_each_in_any_order(tmp_path):
    rows = "S,D,1,20,0.5\nK,D,0,7,0\nS,D,0,10,0.5\nK,D,1,8,0\n"
    csv = f"from,to,period,bandwidth_bytes_per_s,price_per_gb\n{rows}"
    problem = csv_problem(tmp_path, csv, head="periods_s = [0, 60]")
    assert links_of(problem) == {("S", "D"): [10.0, 20.0], ("K", "D"): [7.0, 8.0]}
    assert problem.price_per_gb.tolist() == [0.5, 0.0]


@pytest.mark.usefixtures("both_readers")
def test_without_periods_a_csv_holds_in_all_of_them(tmp_path):
    csv = "from,to,bandwidth_bytes_per_s\nS,D,10\n"
    problem = csv_problem(tmp_path, csv, head="periods_s = [0, 60, 90]")
    assert links_of(problem) == {("S", "D"): [10.0, 10.0, 10.0]}


@pytest.mark.usefixtures("both_readers")
def test_csv_and_links_add_up(tmp_path):
    text = """
    destination = "D"
    bandwidth_csv = "g.csv"
    hosts = {S = {}, K = {}, D = {}}
    links = [{from = "K", to = "D", bandwidth_bytes_per_s = 4.0, price_per_gb = 3}]
    """
    csv = "from,to,bandwidth_bytes_per_s\nS,K,5\n"
    problem = dc.Problem.from_file(write(tmp_path, p_toml=text, g_csv=csv))
    assert links_of(problem) == {("K", "D"): [4.0], ("S", "K"): [5.0]}
    assert problem.price_per_gb.tolist() == [0.0, 3.0]


@pytest.mark.usefixtures("both_readers")
def test_csv_quotes_names_as_spreadsheets_do(tmp_path):
    hosts = ("Paris, Texas", 'the "big" one', "Zürich 東京", "two\nlines", "D")
    frame = pd.DataFrame({"from": hosts[:4], "to": "D", "bandwidth_bytes_per_s": [1, 2, 3, 4]})
    problem = csv_problem(tmp_path, "\ufeff" + frame.to_csv(index=False), hosts=hosts)
    assert links_of(problem) == {(name, "D"): [i + 1.0] for i, name in enumerate(hosts[:4])}


numbers = st.sampled_from(
    ["1", " 2 ", "+3", "4e2", ".5", "6.", "1_0", "nan", "inf", "", "0x1", "\u0661"]
)
cells = st.sampled_from(["S", "K", "D", "", "X", '"S"', '"a""b"', "a", "a b"]) | numbers


@given(st.lists(st.tuples(cells, cells, numbers | cells, cells)), st.sampled_from(["\n", "\r\n"]))
def test_both_readers_of_csv_agree(tmp_path_factory, rows, end):
    # Arrow's reader is to accept only what reading row by row accepts, and to mean the same.
    head = "from,to,bandwidth_mbit_per_s,price_per_gb"
    csv = end.join([head, *map(",".join, rows), ""])
    path = tmp_path_factory.getbasetemp() / "agree.csv"
    path.write_bytes(csv.encode())
    index = {name: i for i, name in enumerate(["S", "K", "D", 'a"b', "a"])}
    outcomes = []
    for limit in (0, math.inf):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(link_table, "LARGE_BYTES", limit)
            try:
                table = link_table.read_link_table(path, index)
            except dc.ProblemError as error:
                outcomes.append(str(error))
            else:
                columns = (table.link_from, table.link_to, table.price_per_gb, table.row)
                rates = table.bandwidth_bytes_per_s.tolist()
                outcomes.append((rates, *(column.tolist() for column in columns)))
    assert outcomes[0] == outcomes[1]


@given(st.lists(st.floats(0, 1e308), min_size=1, max_size=20))
def test_numbers_in_a_csv_survive_exactly(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "exact.csv"
    lines = [f"S{i},D,{value!r}\n" for i, value in enumerate(values)]
    path.write_text("from,to,bandwidth_bytes_per_s\n" + "".join(lines))
    index = {"D": 0} | {f"S{i}": i + 1 for i in range(len(values))}
    for limit in (0, math.inf):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(link_table, "LARGE_BYTES", limit)
            table = link_table.read_link_table(path, index)
            assert table.bandwidth_bytes_per_s.tolist() == [values]


# The table of fields ------------------------------------------------------------------------


def test_fields_are_those_of_the_published_format():
    assert list(PROBLEM.by_name)[1:] == [
        "format",
        "destination",
        "bandwidth_csv",
        "periods_s",
        "daily_periods",
        "start",
        "timezone",
        "measured_at",
        "manifest",
        "file_tolerance",
        "hosts",
        "links",
        "shared",
        "held",
    ]
    assert list(LINK.by_name) == [
        "from",
        "to",
        "bandwidth_bytes_per_s",
        "price_per_gb",
        *RATE_COLUMNS,
        "bandwidth_low_bytes_per_s",
        "bandwidth_high_bytes_per_s",
    ]
    assert not SCHEDULE.by_name["bottleneck"].required
    assert TRANSFER.by_name["streams"].default == 1
