"""Promises of plans on the command line: deadlines, the most by then, scripts that keep them."""

from __future__ import annotations

import json

import pytest

import datacollect as dc

MB = 10**6


@pytest.fixture
def two(here):
    """A and B with 10 MB each, at 5 and 1 MB a second: 13 MB after 3 s, all after 10."""
    links = [dc.Link("A", "D", 5.0 * MB), dc.Link("B", "D", 1.0 * MB)]
    hosts = [dc.Host("A", 10 * MB), dc.Host("B", 10 * MB), dc.Host("D")]
    tree = dc.Problem.from_hosts(hosts, links, "D").to_dict()
    (here / "two.json").write_text(json.dumps(tree))
    return here


def in_one_line(text):
    return " ".join(text.split())


def test_the_most_by_an_instant_in_words_and_json(two, call):
    code, out, err = call("plan", "two.json", "--deadline", "3")
    assert code == 1
    assert "By then 13 MB of 20 MB can be there: most_by_s (--most-by) plans that." in err
    code, out, _ = call("plan", "two.json", "--most-by", "3")
    assert code == 0
    assert "13 MB of 20 MB, by 3 s" in in_one_line(out)
    code, out, _ = call("plan", "two.json", "--most-by", "3 s", "--json")
    tree = json.loads(out)
    assert (tree["most_by_s"], tree["arrived_by_then_bytes"]) == (3.0, pytest.approx(13e6, abs=2))


@pytest.mark.parametrize("text", ["soon", "25:00", "-3"])
def test_deadlines_may_be_clock_times(two, call, text):
    code, _, err = call("plan", "two.json", f"--deadline={text}")
    assert code == 2
    assert '18:00, "tomorrow 18:00", "Sun 18:00" or 2026-11-23T18:00' in err


SIZE = 98_000 * MB


@pytest.fixture
def relayed(here, call):
    """S -> K -> D at 10 MB a second until 10 000 s, then not until 100 000; by 10 000 s."""
    rate = [10.0 * MB, 0.0, 10.0 * MB]
    hosts = [dc.Host("S", SIZE), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate)]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 10_000.0, 100_000.0])
    (here / "p.json").write_text(json.dumps(problem.to_dict()))
    (here / "files.csv").write_text(f"host,path,bytes\nS,a.tar,{SIZE}\n")
    assert call("plan", "p.json", "--deadline", "10000", "--chunk", "10", "-o", "s.json")[0] == 0
    return "pulls", "p.json", "s.json", "--manifest", "files.csv", "--as"


URL = ("--url", "https://{host}.example/{source}/{path}", "-o", "scripts", "--force")


def test_scripts_keep_the_deadline_of_their_plan_and_say_so(relayed, call):
    code, out, _ = call(*relayed, "curl", *URL)
    assert code == 0
    assert "deadline" in out
    code, out, _ = call(*relayed, "curl", *URL, "--json")
    tree = json.loads(out)
    assert tree["deadline_s"] == 10_000.0
    assert 9_800 < tree["makespan_s"] <= 10_000.0


def test_pieces_too_large_for_the_deadline_are_refused(relayed, call):
    code, _, err = call(*relayed, "curl", *URL, "--piece-bytes", "2 GB")
    assert code == 1
    assert "with --piece-bytes 500000000 they keep it" in err
    assert call(*relayed, "curl", *URL, "--piece-bytes", "500000000")[0] == 0
    assert call(*relayed, "curl", *URL, "--piece-bytes", "0.5 GB")[0] == 0


@pytest.mark.parametrize(
    ("text", "said"), [("0", "write 1 or more"), ("1.5", "round it"), ("x", '"6 TB"')]
)
def test_sizes_of_pieces_are_whole_bytes(relayed, call, text, said):
    code, _, err = call(*relayed, "curl", *URL, "--piece-bytes", text)
    assert (code, said in in_one_line(err)) == (2, True)


@pytest.mark.parametrize("name", ["plan.svg", "plan.html"])
def test_pictures_and_pages_show_deadline_and_money(here, call, name):
    hosts = [dc.Host("S", 10 * MB), dc.Host("D")]
    links = [dc.Link("S", "D", 5.0 * MB, price_per_gb=100.0)]
    tree = dc.Problem.from_hosts(hosts, links, "D").to_dict()
    (here / "p.json").write_text(json.dumps(tree))
    assert call("plan", "p.json", "--deadline", "7", "-o", "s.json")[0] == 0
    assert call("plot", "p.json", "s.json", "-o", name)[0] == 0
    text = (here / name).read_text()
    assert "Deadline: 7 s, 5 s before it. Money: 1, the price of all links." in text
